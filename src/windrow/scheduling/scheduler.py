"""The scheduler: which tasks are executed together now (thesis Algorithms 9, 10 and 11).

It has no clock of updates and executes nothing: its owner says `updated()` when the synopses have taken in an update,
asks `next()` for work, does it, and says `done()`. What `next` gives reads the state of the newest update; updates may
come while it is executed.

Nobody starves: the task with the lowest deadline goes first, and every run moves a deadline beyond the update that it
read. So once a task is late, each other task runs at most once before it, whatever the policy and the priorities, which
only decide among equal deadlines. Under overload periods get longer, and no query is dropped.

Cost: an update O(1); an execution of k blocks O(k log n); a change of the queries makes the blocks of its group anew
before the next execution (see `hybrid` for the cost of that).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from time import monotonic

from windrow.errors import CatalogError, StateError
from windrow.scheduling.atom import Atom, Member
from windrow.scheduling.cost import JointCost, ProbeCost
from windrow.scheduling.deadlines import Deadlines
from windrow.scheduling.execution import Execution
from windrow.scheduling.figures import QueryFigures, SystemFigures
from windrow.scheduling.group import Block, Group, Question
from windrow.scheduling.policy import DEFAULT, Policy, policy
from windrow.scheduling.task import Task


class Scheduler:
    """Tasks, their deadlines, and a policy.

    >>> scheduler = Scheduler("conservative")
    >>> for name, period in (("a", 2), ("b", 3)): scheduler.add(Task(name, period))
    >>> for update in range(1, 7):
    ...     scheduler.updated()
    ...     while (work := scheduler.next()) is not None:
    ...         print(update, sorted(task.name for task in work))
    ...         scheduler.done(work)
    2 ['a']
    3 ['b']
    4 ['a']
    6 ['a', 'b']
    """

    def __init__(
        self,
        name: str | Policy = DEFAULT,
        cost: JointCost | None = None,
        early: bool = False,
        update: int = 0,
        clock: Callable[[], float] = monotonic,
        later: bool = False,
    ) -> None:
        """`early`: when nothing is due, execute what will be next, at most once per update (as Algorithm 9 does).

        `cost` is the cost model of groups that have none of their own; `update` the number of the newest update. With
        `later`, hybrid choices are not made here: `questions` has those that wait, and `answered` brings one.
        """
        self._policy = policy(name)
        self._coming: Policy | None = None
        self._cost = cost or ProbeCost()
        self._costs: dict[Hashable, JointCost] = {}
        self._early = early
        self._now = update
        self._clock = clock
        self._began = clock()
        self._groups: dict[Hashable, Group] = {}
        self._atoms: dict[str, Atom] = {}
        self._later = later
        self.questions: dict[Group, Question] = {}
        """Choices that somebody should think over; until then a group goes on as it was, or by sub-groups."""
        self._urgent: Deadlines[Group] = Deadlines()
        self._stale: dict[Group, None] = {}
        self._running: set[Execution] = set()
        self._rested: list[tuple[Group, int, Iterable[Block]]] = []
        self._executions = 0
        self._runs = 0
        self._work = 0.0
        self._alone = 0.0

    # -- tasks ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._atoms)

    def __contains__(self, name: str) -> bool:
        return name in self._atoms

    @property
    def update(self) -> int:
        """The number of the newest update."""
        return self._now

    @property
    def policy(self) -> Policy:
        """The policy in force, or about to be."""
        return self._coming or self._policy

    def add(self, task: Task) -> None:
        """A query comes; its first run is due within one period."""
        if task.name in self._atoms:
            raise CatalogError(f"there is a task named {task.name!r} already; remove it first, or choose another name")
        self._enter(Member(task, self._now, self._now))

    def remove(self, name: str) -> None:
        """A query goes, also from an execution that has not ended."""
        if name not in self._atoms:
            raise CatalogError(f"there is no task named {name!r}")
        self._leave(name)

    def set_policy(self, name: str | Policy) -> None:
        """Go on with another policy: no task is lost, and no deadline becomes later.

        Between policies that schedule single queries and those that do not, what is being executed ends first, and
        `next` waits for that.
        """
        self._coming = policy(name)
        if self._coming.unit != "query" != self._policy.unit or not self._running:
            self._turn()

    def set_cost(self, group: Hashable, cost: JointCost) -> None:
        """The cost model of one group, now and when it comes again."""
        self._costs[group] = cost
        if group in self._groups:
            self._groups[group].cost = cost
            self._stale[self._groups[group]] = None

    def answered(self, question: Question, leaders: tuple[int, ...]) -> None:
        """Somebody has thought a question over; one that is out of date is better than none."""
        if self._groups.get(question.group.key) is question.group:
            question.group.choose(question, leaders)
            self._stale[question.group] = None

    def set_early(self, early: bool) -> None:
        """Whether tasks may be executed before they are due, when nothing else is to be done."""
        self._early = early

    def _enter(self, member: Member) -> None:
        task = member.task
        group = self._groups.get(task.group)
        if group is None:
            group = self._groups[task.group] = Group(task.group, self._costs.get(task.group, self._cost))
        key = (task.period, task.name) if self._policy.unit == "query" else task.period
        if key not in group.atoms:
            group.atoms[key] = Atom(task.group, key, task.period)
        group.atoms[key].add(member)
        self._atoms[task.name] = group.atoms[key]
        self._stale[group] = None

    def _leave(self, name: str) -> Member:
        atom = self._atoms.pop(name)
        group = self._groups[atom.group]
        member = atom.remove(name)
        if not atom.members:
            del group.atoms[atom.key]
        self._stale[group] = None
        if not group.atoms:
            del self._groups[atom.group], self._stale[group]
            self.questions.pop(group, None)
            self._urgent.remove(group)
        return member

    def _turn(self) -> None:
        """Let the coming policy rule."""
        if self._coming is None:
            return
        regroup = (self._coming.unit == "query") != (self._policy.unit == "query")
        members = [self._leave(name) for name in list(self._atoms)] if regroup else []
        self._policy, self._coming = self._coming, None
        for member in members:
            self._enter(member)
        self._stale.update(dict.fromkeys(self._groups.values()))

    # -- time and work --------------------------------------------------------------------------------------------

    def updated(self, updates: int = 1) -> None:
        """The synopses have taken in one more update, or several."""
        self._now += updates
        if self._rested:
            for group, version, blocks in self._rested:
                if group.version == version:
                    group.wait(blocks, self._now, in_phase=False)
                    self._rank(group)
            self._rested = []

    def due(self) -> int | None:
        """The update at which something is due next (or was); None when nothing waits."""
        self._plan()
        first = self._urgent.lowest()
        return None if first is None else first[0]

    def next(self) -> Execution | None:
        """What to execute now; None when nothing is due."""
        if self._coming is not None:
            return None  # what is being executed ends first
        if self._stale:
            self._plan()
        first = self._urgent.lowest()
        now = self._now
        if first is None or (first[0] > now and not self._early):
            return None
        deadline, _, group = first
        if self._policy.joint:
            blocks = group.deadlines.take(self._policy.reach(deadline, now))
        else:
            lowest = group.deadlines.lowest()
            assert lowest is not None
            blocks = [lowest[2]]
            group.deadlines.remove(lowest[2])
        self._rank(group)
        atoms: list[Atom] = []
        queries, alone = 0, 0.0
        for block in blocks:
            queries += block.queries
            alone += block.alone
            atoms += block.atoms
        for atom in atoms:
            atom.begin(now)
        work = Execution(group, now, queries, group.price(blocks), alone, now - deadline, blocks, atoms)
        self._running.add(work)
        return work

    def done(self, work: Execution) -> None:
        """An execution has ended."""
        self._end(work)
        now = self._now
        for atom in work.atoms:
            atom.end(now)
        self._executions += 1
        self._runs += work.queries
        self._work += work.cost
        self._alone += work.alone
        first = self._urgent.lowest()
        relaxed = now <= work.update - work.lateness and (first is None or first[0] >= now)
        self._release(work, relaxed)

    def failed(self, work: Execution) -> None:
        """An execution has not come to its end: its tasks are as urgent as before."""
        self._end(work)
        for atom in work.atoms:
            atom.undo()
        self._release(work, in_phase=False)

    def _end(self, work: Execution) -> None:
        if work not in self._running:
            raise StateError("this execution has ended already, or another scheduler has given it")
        self._running.remove(work)

    def _release(self, work: Execution, in_phase: bool) -> None:
        """The blocks wait for their next deadline; they may have changed in the meantime."""
        group = work.within
        if self._groups.get(group.key) is group:
            blocks: Iterable[Block] = work.blocks
            if group.version != work.version:
                now = dict.fromkeys(group.blocks[atom] for atom in work.atoms if atom in group.blocks)
                blocks = [block for block in now if not any(atom.running for atom in block.atoms)]
            if self._early and work.update == self._now:
                self._rested.append((group, group.version, blocks))
            else:
                group.wait(blocks, self._now, in_phase)
                self._rank(group)
        if self._coming is not None and not self._running:
            self._turn()

    def _rank(self, group: Group) -> None:
        """The place of a group is that of its most urgent block."""
        lowest = group.deadlines.lowest()
        if lowest is None:
            self._urgent.remove(group)
        else:
            self._urgent.set(group, lowest[0], lowest[1])

    def _plan(self) -> None:
        """Make the tasks of groups whose queries have changed."""
        for group in self._stale:
            question = group.plan(self._policy, self._now, later=self._later)
            if question is None:
                self.questions.pop(group, None)
            elif group not in self.questions or not self.questions[group].asks_like(question):
                self.questions[group] = question
            self._rank(group)
        self._stale.clear()

    # -- figures --------------------------------------------------------------------------------------------------

    def query(self, name: str) -> QueryFigures:
        """What one query has achieved."""
        if name not in self._atoms:
            raise CatalogError(f"there is no task named {name!r}")
        self._plan()
        atom = self._atoms[name]
        return atom.figures(name, self._now, self._groups[atom.group].blocks[atom].period)

    def queries(self) -> list[QueryFigures]:
        """What all of them have, in the order in which they came."""
        return [self.query(name) for name in self._atoms]

    def backlog(self) -> int:
        """Queries whose requested deadline has passed: O(sub-groups)."""
        return sum(
            len(atom.members)
            for group in self._groups.values()
            for atom in group.atoms.values()
            if atom.due < self._now and not atom.running
        )

    def system(self) -> SystemFigures:
        """The whole schedule so far."""
        self._plan()
        elapsed = self._clock() - self._began
        return SystemFigures(
            policy=self._policy.name,
            update=self._now,
            queries=len(self._atoms),
            tasks=sum(len(set(group.blocks.values())) for group in self._groups.values()),
            executions=self._executions,
            runs=self._runs,
            throughput=self._runs / elapsed if elapsed > 0 else 0.0,
            backlog=self.backlog(),
            work=self._work,
            alone=self._alone,
        )
