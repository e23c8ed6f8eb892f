"""The synopses by name, and which one serves a component best."""

from __future__ import annotations

from windrow.aggregates import Component, Subtractable
from windrow.synopses.basic_interval import BasicInterval
from windrow.synopses.running import Running
from windrow.synopses.synopsis import Synopsis

SYNOPSES: dict[str, type[Synopsis]] = {cls.name: cls for cls in (Running, BasicInterval)}


def chosen(component: Component, name: str | None = None) -> str:
    """The name of the synopsis that serves a component: the one asked for, or the best."""
    return name or (Running.name if isinstance(component, Subtractable) else BasicInterval.name)


def reason(component: Component) -> str:
    """Why that one is the best, for EXPLAIN."""
    if isinstance(component, Subtractable):
        return f"{component.name} subtracts: two reads answer a window of any length"
    return f"{component.name} does not subtract: the panes of a window are combined"


def synopsis(component: Component, name: str | None = None, groups: int = 0) -> Synopsis:
    """The named synopsis of a component; by default running where it can be subtracted, else basic_interval."""
    name = chosen(component, name)
    if name not in SYNOPSES:
        raise ValueError(f"there is no synopsis {name!r}; the synopses are {', '.join(SYNOPSES)}")
    return SYNOPSES[name](component, groups)
