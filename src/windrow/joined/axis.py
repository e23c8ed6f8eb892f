"""The results of a join by the time at which they expire, for queries whose windows differ by the same length.

A result (t1, t2) is in the answer of windows (w1, w2) at τ if max(t1, t2) <= τ, t1 > τ - w1 and t2 > τ - w2. With the
shorter window w and the extras e1 = w1 - w, e2 = w2 - w the last two are one condition: min(t1 + e1, t2 + e2) > τ - w.
So all windows with the same extras, of whatever length and SLIDE, look at one axis of panes, as in the BIJ synopsis of
thesis 8.3.2; equal windows have the extras (0, 0). A new result may fall into an old pane: panes stay open until they
have left every window, and are scanned where they are (`lookup_open`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.expressions import Compiler, Context
from windrow.flow.leaves import BEGINNING
from windrow.joined.shape import JoinShape
from windrow.kernels.jit import Codes, Ints
from windrow.operators.answer import AnswerRows
from windrow.sharing.slice import Member, Slice
from windrow.windows.due import first_due

MOST_ROWS = 4_000_000
"""Windows times groups that are looked up at once."""


class Found(NamedTuple):
    """Windows that were looked up: how many groups each has, which, and the words of the query's components."""

    taus: Ints
    counts: Ints
    gids: Codes
    words: list[tuple[Any, ...]]


@dataclass(eq=False)
class Asker:
    """A query over the results: its windows, how its answers are made, and what it has been answered so far."""

    name: str
    shape: JoinShape
    rows: AnswerRows
    member: Member
    since: int
    """Results with a tuple at or before this are not for it."""
    upto: int = BEGINNING
    """Its last due time."""
    found: list[Found] = field(default_factory=list)
    """What answers will be made of."""
    out: list[pa.RecordBatch] = field(default_factory=list)
    error: QueryError | None = None

    @property
    def needed(self) -> int | None:
        """Nothing that expires up to here, on its axis, is looked at again; None before its first due time."""
        slide = self.shape.plan.slide
        return None if self.upto == BEGINNING else first_due(self.upto + 1, slide) - self.shape.length


@dataclass(frozen=True)
class Results:
    """Results of the join in the order in which they came, with both timestamps."""

    batch: pa.RecordBatch
    birth: Ints
    left: Ints
    right: Ints

    def __len__(self) -> int:
        return len(self.birth)


class Axis:
    """Panes of results, and the queries that look at them; all of them came before the first result."""

    def __init__(self, shape: JoinShape, since: int, compiler: Compiler) -> None:
        self.extra = shape.extra
        self.since = since
        self.keys = shape.plan.key_names
        self.part = Slice(None, tuple(compiler.compile(key) for key in shape.plan.keys))
        self.askers: list[Asker] = []
        self.results = 0
        """How many results it has taken in."""
        self.kept_from = BEGINNING
        """What expires up to here is gone."""

    def fits(self, asker: Asker) -> bool:
        """Whether a query looks at the same results by the same times and keys."""
        same = self.extra == asker.shape.extra and self.since == asker.since
        return same and self.keys == asker.shape.plan.key_names

    def add(self, asker: Asker) -> None:
        """One more query; nothing has come yet."""
        self.part.add(asker.member, None)
        self.askers.append(asker)

    def remove(self, asker: Asker) -> None:
        """A query goes, with what only it used."""
        self.askers.remove(asker)
        self.part.remove(asker.member)

    # ---- results in, answers out ----------------------------------------------------------------------------------

    def move(self, results: Results, due: Mapping[Asker, Ints]) -> None:
        """Take in results in the order in which they came, and answer at each due time what was there then."""
        found, expiry = self._relevant(results)
        every = np.unique(np.concatenate([np.empty(0, np.int64), *(due[asker] for asker in self.askers)]))
        places = np.searchsorted(found.birth, every, side="right")
        done = 0
        runs = np.flatnonzero(np.diff(places, prepend=-1))
        for begin, end in pairwise([*runs.tolist(), len(every)]):
            self._insert(found.batch, expiry, done, int(places[begin]))
            done = int(places[begin])
            self._answer(due, int(every[begin]), int(every[end - 1]))
        self._insert(found.batch, expiry, done, len(found))
        for asker in self.askers:
            if len(due[asker]):
                asker.upto = int(due[asker][-1])
            self._put_out(asker)
        self._forget()

    def _relevant(self, results: Results) -> tuple[Results, Ints]:
        """The results that some window will see, and where on the axis they are."""
        expiry = np.minimum(results.left + self.extra[0], results.right + self.extra[1])
        longest = max(asker.shape.length for asker in self.askers)
        seen = (expiry > results.birth - longest) & (expiry > self.kept_from)
        if self.since != BEGINNING:
            seen &= (results.left > self.since) & (results.right > self.since)
        if seen.all():
            return results, expiry
        batch = results.batch.filter(pa.array(seen))
        return Results(batch, results.birth[seen], results.left[seen], results.right[seen]), expiry[seen]

    def _insert(self, batch: pa.RecordBatch, expiry: Ints, start: int, stop: int) -> None:
        if stop <= start:
            return
        self.results += stop - start
        part = batch.slice(start, stop - start)
        for member, error in self.part.insert(Context.of(part), expiry[start:stop], {}).items():
            for asker in self.askers:
                if asker.member is member:
                    asker.error = asker.error or error

    def _answer(self, due: Mapping[Asker, Ints], first: int, last: int) -> None:
        """The due times from first to last, between which nothing came."""
        asked = []
        for asker in self.askers:
            start, stop = np.searchsorted(due[asker], [first, last + 1])
            if stop > start and asker.error is None:
                asked.append((asker, due[asker][start:stop]))
        group = self.part.group
        assert group is not None
        if not asked or (self.keys and group.oldest_open is None):
            return
        most = max(1, MOST_ROWS // max(1, group.groups))
        if sum(len(taus) for _, taus in asked) <= most:
            self._look_up(asked)
            return
        for asker, taus in asked:
            for start in range(0, len(taus), most):
                self._look_up([(asker, taus[start : start + most])])

    def _look_up(self, asked: Sequence[tuple[Asker, Ints]]) -> None:
        """All these windows in one scan (rule CS5)."""
        group = self.part.group
        assert group is not None
        starts = np.concatenate([taus - asker.shape.length for asker, taus in asked])
        places = sorted({place for asker, _ in asked for term in asker.member.positions for place in term})
        found = group.lookup_open(starts, places)
        words = dict(zip(places, found.words, strict=True))
        self.part.saved.lookups += len(asked) - 1
        window = 0
        for asker, taus in asked:
            offsets = found.offsets[window : window + len(taus) + 1]
            window += len(taus)
            start, stop = int(offsets[0]), int(offsets[-1])
            own = [place for term in asker.member.positions for place in term]
            some = [tuple(word[start:stop] for word in words[place]) for place in own]
            asker.found.append(Found(taus, np.diff(offsets), found.present[start:stop], some))

    def _put_out(self, asker: Asker) -> None:
        """The answers of all windows that were looked up, made at once."""
        found, asker.found = asker.found, []
        if not found or asker.error is not None:
            return
        assert self.part.group is not None
        taus, counts = (np.concatenate(parts) for parts in zip(*((one.taus, one.counts) for one in found), strict=True))
        words = iter(
            tuple(np.concatenate(parts) for parts in zip(*places, strict=True))
            for places in zip(*(one.words for one in found), strict=True)
        )
        gids = np.concatenate([one.gids for one in found])
        columns = list(self.part.group.dictionary.keys(gids)) if self.keys else []
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        time = pa.array(np.repeat(taus, counts)).view(asker.rows.schema.field(0).type)
        try:
            for term, places in zip(asker.member.terms, asker.member.positions, strict=True):
                columns.append(term.aggregate.lower([next(words) for _ in places]))
            asker.out.append(asker.rows.rows(time, offsets, columns))
        except QueryError as error:
            asker.error = error

    def _forget(self) -> None:
        """Panes that have left the windows of all queries go."""
        needed = [asker.needed for asker in self.askers]
        known = [edge for edge in needed if edge is not None]
        if len(known) < len(needed) or max(known, default=BEGINNING) <= self.kept_from:
            return
        group = self.part.group
        assert group is not None
        self.kept_from = max(self.kept_from, min(known))
        if group.oldest_open is not None and group.oldest_open <= self.kept_from:
            self.part.close(self.kept_from)
            group.expire(self.kept_from)

    # ---- state ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[str, Any], bytes]:
        """The panes, and what is known of them."""
        meta, panes = self.part.snapshot()
        return {"part": meta, "kept_from": self.kept_from}, panes

    def restore(self, meta: Mapping[str, Any], panes: bytes) -> None:
        """Become what `snapshot` gave, for the same queries."""
        self.part.restore(meta["part"], panes)
        self.kept_from = meta["kept_from"]
