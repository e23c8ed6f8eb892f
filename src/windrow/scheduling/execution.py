"""Tasks that a scheduler hands out to be executed together, once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from windrow.scheduling.atom import Atom
from windrow.scheduling.group import Block, Group
from windrow.scheduling.task import Task


class Execution:
    """Tasks of one group; iterate over it, before it is done, for the tasks themselves."""

    __slots__ = ("alone", "atoms", "blocks", "cost", "lateness", "queries", "update", "version", "within")

    def __init__(
        self,
        within: Group,
        update: int,
        queries: int,
        cost: float,
        alone: float,
        lateness: int,
        blocks: Sequence[Block],
        atoms: Sequence[Atom],
    ) -> None:
        self.within = within
        self.version = within.version
        self.update = update
        """The newest update when it was handed out: the answers are as of this one."""
        self.queries = queries
        """How many tasks."""
        self.cost = cost
        """What it should cost, by the cost model of the group."""
        self.alone = alone
        """What it would cost to execute each of its tasks by itself."""
        self.lateness = lateness
        """Updates since the deadline of the most urgent task; negative when it is early."""
        self.blocks = blocks
        self.atoms = atoms

    @property
    def group(self) -> Hashable:
        """The group of its tasks."""
        return self.within.key

    def __iter__(self) -> Iterator[Task]:
        for atom in self.atoms:
            yield from atom.taking_part()
