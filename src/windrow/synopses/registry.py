"""The synopses by name, and which one serves a component best."""

from __future__ import annotations

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected
from windrow.aggregates.user import UserComponent
from windrow.synopses.basic_interval import BasicInterval
from windrow.synopses.chooser import Choice, choose, forced
from windrow.synopses.collections import COLLECTIONS
from windrow.synopses.interval import Interval
from windrow.synopses.landmark import Landmark
from windrow.synopses.running import Running
from windrow.synopses.synopsis import Synopsis
from windrow.synopses.user import UserPanes
from windrow.synopses.workload import Expected

SYNOPSES: dict[str, type[Synopsis]] = {cls.name: cls for cls in (Running, BasicInterval, Interval, Landmark)}


def chosen(component: Component, name: str | None = None, expected: Expected | None = None) -> str:
    """The name of the synopsis that serves a component: the one asked for, or the best for the expected windows."""
    if isinstance(component, Collected):
        return component.store.name
    return UserPanes.name if isinstance(component, UserComponent) else _choice(component, name, expected).name


def reason(component: Component, name: str | None = None, expected: Expected | None = None) -> str:
    """Why that one, for EXPLAIN."""
    if isinstance(component, Collected):
        return COLLECTIONS[component.store.name].reason(component.question)
    if isinstance(component, UserComponent):
        return user_choice(component).reason
    return _choice(component, name, expected).reason


def _choice(component: Component, name: str | None, expected: Expected | None) -> Choice:
    return choose(component, expected or Expected()) if name is None else forced(name)


def user_choice(component: UserComponent) -> Choice:
    """There is one synopsis for them, which uses what the class has."""
    how = "has no subtract: base intervals of doubling length are combined"
    if component.subtractable:
        how = "has subtract: running sums answer a window of any length"
    return Choice(UserPanes.name, f"{component.function.name} {how}")


def may_choose(component: Component) -> bool:
    """Whether more than one synopsis could keep a component: not where it brings its own."""
    return not isinstance(component, Collected | UserComponent)


def admits(component: Component, name: str | None) -> bool:
    """Whether the named synopsis can keep a component."""
    try:
        check(component, name)
    except ValueError:
        return False
    return True


def check(component: Component | None, name: str | None) -> None:
    """Refuse a name that is none, and a component that the synopsis cannot keep."""
    if name is not None and name not in SYNOPSES:
        raise ValueError(f"there is no synopsis {name!r}; the synopses are {', '.join(SYNOPSES)}")
    if name is not None and component is not None and may_choose(component):
        SYNOPSES[name].admit(component)


def synopsis(component: Component, name: str | None = None, groups: int = 0) -> Synopsis:
    """The named synopsis of a component, or the best when nothing is known of the windows."""
    if isinstance(component, UserComponent):
        return UserPanes(component, groups)
    check(component, name)
    return SYNOPSES[chosen(component, name)](component, groups)


def converted(old: Synopsis, name: str, expected: Expected) -> Synopsis:
    """The same panes in another synopsis."""
    made = synopsis(old.component, name, old.words.shape[2])
    made.prepare(expected.lengths)
    made.update(old.edges, old.leaves())
    made.groups = old.groups
    return made
