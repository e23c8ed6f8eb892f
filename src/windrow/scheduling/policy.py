"""The scheduling policies of the thesis (8.4, Table 8.1), by the names that users write.

| name | what is one task | executed together |
|---|---|---|
| `edf` | every query (Algorithm 9) | nothing |
| `separate` | every sub-group: the baseline No-S of 8.5 | nothing else |
| `aggressive` | every group, with its shortest period | all its queries, always |
| `conservative` | every sub-group (Algorithm 10) | tasks of a group with the same lowest deadline |
| `hybrid` | sub-groups merged where that is cheaper (8.4.4) | the same |

With `-late` behind `conservative` or `hybrid`, an overloaded scheduler takes all late tasks of the group along, and
with `-late-pending` also those that are due now (Algorithm 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["query", "sub-group", "group", "hybrid"]
Sharing = Literal["none", "late", "late-pending"]


@dataclass(frozen=True)
class Policy:
    """What is scheduled as one task, and what joins the task that is chosen."""

    name: str
    unit: Unit
    joint: bool = True
    sharing: Sharing = "none"

    def reach(self, lowest: int, now: int) -> int:
        """Tasks of the chosen group with a deadline up to this are executed with it: the set V(T).

        >>> [policy(name).reach(lowest=3, now=5) for name in ("hybrid", "hybrid-late", "hybrid-late-pending")]
        [3, 4, 5]
        """
        if self.sharing == "none" or lowest >= now:
            return lowest
        return now - 1 if self.sharing == "late" else now


POLICIES: dict[str, Policy] = {
    one.name: one
    for one in (
        Policy("edf", "query", joint=False),
        Policy("separate", "sub-group", joint=False),
        Policy("aggressive", "group"),
        Policy("conservative", "sub-group"),
        Policy("conservative-late", "sub-group", sharing="late"),
        Policy("conservative-late-pending", "sub-group", sharing="late-pending"),
        Policy("hybrid", "hybrid"),
        Policy("hybrid-late", "hybrid", sharing="late"),
        Policy("hybrid-late-pending", "hybrid", sharing="late-pending"),
    )
}
DEFAULT = "hybrid-late-pending"
EXACT = "exact"
"""Not a policy of the scheduler: every due time is answered before the next batch is taken in."""
LIVE = (*POLICIES, EXACT)
"""What a live run may be told."""


def policy(name: str | Policy) -> Policy:
    """The policy of that name."""
    if isinstance(name, Policy):
        return name
    if name not in POLICIES:
        raise ValueError(f"the scheduling policy must be one of {', '.join(POLICIES)}; found {name!r}")
    return POLICIES[name]
