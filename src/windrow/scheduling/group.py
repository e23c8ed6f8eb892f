"""One group of similar queries (thesis 8.4.3): its atoms, how a policy makes tasks of them, and the tasks' deadlines.

A *block* is what is scheduled as one task: one atom, or several that are always executed together. Its deadline is not
stored but follows from when its atoms ran last, so a change of the policy or of the queries can neither lose a deadline
nor move it back. Deadlines are kept on multiples of the period where that makes them earlier and nobody is late: blocks
that are in phase meet at the common multiples of their periods, as the cost model has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from windrow.scheduling.atom import Atom
from windrow.scheduling.cost import JointCost
from windrow.scheduling.deadlines import Deadlines
from windrow.scheduling.hybrid import choose
from windrow.scheduling.policy import Policy
from windrow.scheduling.task import SubGroup

_REMEMBERED = 4096
"""Costs of sets of blocks; under late sharing there can be very many different sets."""


@dataclass(frozen=True, eq=False)
class Question:
    """Which sub-groups of a group shall have the same schedule: thinking this over may take a while."""

    group: Group
    members: tuple[SubGroup, ...]
    cost: JointCost

    def asks_like(self, other: Question) -> bool:
        """Whether both have the same answer."""
        return (self.members, self.cost) == (other.members, other.cost)

    def think(self) -> tuple[int, ...]:
        """The answer, in any thread."""
        return choose(list(self.members), self.cost).leaders


class Block:
    """Atoms that are always executed together, with the shortest of their periods."""

    __slots__ = ("alone", "atoms", "period", "priority", "queries")

    def __init__(self, atoms: Sequence[Atom], cost: JointCost) -> None:
        self.atoms = atoms
        self.period = min(atom.period for atom in atoms)
        self.priority = max(atom.priority for atom in atoms)
        self.queries = sum(len(atom.members) for atom in atoms)
        self.alone = sum(atom.alone(cost) for atom in atoms)

    def due(self) -> int:
        """The deadline that its atoms ask for."""
        return min([atom.last + atom.period for atom in self.atoms])


class Group:
    """The queries that may be executed together."""

    def __init__(self, key: Hashable, cost: JointCost) -> None:
        self.key = key
        self.cost = cost
        self.atoms: dict[Hashable, Atom] = {}
        self.blocks: dict[Atom, Block] = {}
        self.deadlines: Deadlines[Block] = Deadlines()
        self._costs: dict[frozenset[Block], float] = {}
        self.version = 0
        """How often the tasks were made anew."""
        self._chosen: tuple[tuple[SubGroup, ...], JointCost, tuple[int, ...]] | None = None

    def plan(self, policy: Policy, now: int, *, later: bool = False) -> Question | None:
        """Make tasks of the atoms as the policy says.

        With `later`, a choice that is not known yet is left to others, and as much as possible stays as it was.
        """
        atoms = list(self.atoms.values())
        question = None
        if policy.unit == "group":
            leaders = [0] * len(atoms)
        elif policy.unit == "hybrid":
            question = Question(self, tuple(atom.summary for atom in atoms), self.cost)
            if self._chosen is not None and self._chosen[:2] == (question.members, question.cost):
                question = None
            elif not later:
                self.choose(question, question.think())
                question = None
            leaders = self._leaders(atoms)
        else:
            leaders = list(range(len(atoms)))
        together: dict[int, list[Atom]] = {}
        for atom, leader in zip(atoms, leaders, strict=True):
            together.setdefault(leader, []).append(atom)
        self._costs.clear()
        self.version += 1
        self.blocks, self.deadlines = {}, Deadlines()
        for members in together.values():
            block = Block(members, self.cost)
            self.blocks.update(dict.fromkeys(members, block))
            if not any(atom.running for atom in members):
                self.wait([block], now, in_phase=True)
        return question

    def choose(self, question: Question, leaders: tuple[int, ...]) -> None:
        """From the next plan on this is the choice, if the members are those of the question."""
        self._chosen = question.members, question.cost, leaders

    def wait(self, blocks: Iterable[Block], now: int, in_phase: bool) -> None:
        """Put blocks among those that wait for their deadline."""
        for block in blocks:
            due = block.due()
            if in_phase:
                early = due - due % block.period
                if early > now:
                    due = early
            self.deadlines.set(block, due, block.priority)

    def price(self, blocks: Sequence[Block]) -> float:
        """The cost of executing these blocks together."""
        key = frozenset(blocks)
        found = self._costs.get(key)
        if found is None:
            if len(self._costs) >= _REMEMBERED:
                self._costs.clear()
            found = self._costs[key] = self.cost([atom.summary for block in blocks for atom in block.atoms])
        return found

    def _leaders(self, atoms: Sequence[Atom]) -> list[int]:
        """By the newest choice; sub-groups that it does not know, or whose leader has gone, go by themselves."""
        members, leaders = ((), ()) if self._chosen is None else (self._chosen[0], self._chosen[2])
        lead = {one.period: members[leader].period for one, leader in zip(members, leaders, strict=True)}
        place = {atom.period: i for i, atom in enumerate(atoms)}
        return [place.get(lead.get(atom.period, atom.period), i) for i, atom in enumerate(atoms)]
