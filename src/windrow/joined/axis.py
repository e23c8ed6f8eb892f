"""The results of a join by the time at which they expire, for queries whose windows differ by the same length.

A result (t1, t2) is in the answer of windows (w1, w2) at τ if max(t1, t2) <= τ, t1 > τ - w1 and t2 > τ - w2. With the
shorter window w and the extras e1 = w1 - w, e2 = w2 - w the last two are one condition: min(t1 + e1, t2 + e2) > τ - w.
So all windows with the same extras, of whatever length and SLIDE, look at one axis of panes, as in the synopses of
thesis 8.3.2; equal windows have the extras (0, 0). Then also a query that comes later finds the results that it knows
on one side of a pane's edge: it takes part, and its windows begin there at the earliest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.expressions import Compiler, Context
from windrow.flow.leaves import BEGINNING
from windrow.joined.asker import Asker, Results, Saved
from windrow.joined.choice import MOST_CELLS, Load, choose, windows_of
from windrow.joined.parts import Parts
from windrow.joined.shape import JoinShape
from windrow.kernels.jit import Ints
from windrow.synopses.groups import Groups
from windrow.synopses.join_intervals import SYNOPSES, BasicIntervalJoin, Cells, Found, JoinSynopsis, Work
from windrow.synopses.pane_line import PaneLine
from windrow.synopses.snapshot import numpy_of, pack, prefixed, unpack, within
from windrow.windows.grid import Grid, edges_of

MOST_BORDERS = 1 << 20
"""Due times times different windows that are dealt with at once."""


class Axis:
    """Panes of results, and the queries that look at them."""

    forced: ClassVar[str | None] = None
    """The synopsis to take wherever it can be taken; by default the cheapest."""

    def __init__(self, shape: JoinShape, since: int, compiler: Compiler) -> None:
        self.extra = shape.extra
        self.since = since
        self.keys = shape.plan.key_names
        self._keys = tuple(compiler.compile(key) for key in shape.plan.keys)
        self.askers: list[Asker] = []
        self.results = 0
        """How many results it has taken in."""
        self.saved = Saved()
        self.dictionary = Groups([key.type for key in self._keys])
        self._line: PaneLine | None = None
        self._parts = Parts.of([])
        self._synopsis: JoinSynopsis | None = None
        self._settled = -1
        """How many results there were when the synopsis was chosen; -1 when that must be done anew."""
        self._purged = 0
        """The oldest pane when dead groups were last looked for."""

    # ---- queries come and go --------------------------------------------------------------------------------------

    def fits(self, asker: Asker) -> bool:
        """Whether a query looks at the same results by the same times and keys."""
        same = self.extra == asker.shape.extra and self.keys == asker.shape.plan.key_names
        # With extras, the tuples that a later query knows are on no side of any edge.
        return same and (self.since == asker.since or (self.extra == (0, 0) and asker.since >= self.since))

    def add(self, asker: Asker) -> None:
        """One more query; what it needs and is not there begins now, as the query itself."""
        if self._line is not None and asker.since != self.since:
            self._line.end_pane(asker.since)
        self.askers.append(asker)
        self._reform(Parts.of(one.terms for one in self.askers))

    def remove(self, asker: Asker) -> None:
        """A query goes, with what only it used."""
        self.askers.remove(asker)
        if self.askers:
            self._reform(Parts.of(one.terms for one in self.askers))

    def _reform(self, parts: Parts) -> None:
        """Other queries: panes to come end where they need it and where they came, and old cells have nothing new."""
        progressions = [edges_of(one.shape.length, one.shape.plan.slide) for one in self.askers]
        grid = Grid.of(edge for edges in progressions for edge in edges)
        if self._line is None:
            self._line = PaneLine(grid)
        begun = max(self.since, self._line.last)
        self._line.grid = grid.with_cuts(one.since for one in self.askers if one.since > begun)
        old, self._parts, self._settled = self._parts, parts, -1
        if self._synopsis is not None:
            cells = self._synopsis.cells()
            words = parts.taken(cells.words, old)
            self._synopsis = self._made(BasicIntervalJoin.name, cells._replace(words=words))

    # ---- what is kept ---------------------------------------------------------------------------------------------

    @property
    def groups(self) -> int:
        """How many groups are known."""
        return max(1, len(self.dictionary))

    @property
    def line(self) -> PaneLine:
        """Its panes."""
        assert self._line is not None
        return self._line

    @property
    def kind(self) -> str:
        """How results are kept: bij, ij or rj."""
        if self._synopsis is None or self._settled < 0:
            return self._chosen(self.load, None)
        return self._synopsis.name

    @property
    def nbytes(self) -> int:
        """Bytes of the panes."""
        return self.dictionary.nbytes + (0 if self._synopsis is None else self._synopsis.nbytes)

    @property
    def load(self) -> Load:
        """What it has to do, as far as that is known."""
        density = sum(1 / step for step, _ in self.line.grid.progressions)
        passed = self.line.first + len(self.line.edges)
        windows = windows_of([(one.shape.length, one.shape.plan.slide) for one in self.askers], density)
        return Load(windows, self._parts.words.subtractable, self.groups, self.results / passed if passed else 1.0)

    @property
    def _longest(self) -> int:
        return max(asker.shape.length for asker in self.askers)

    def _chosen(self, load: Load, now: str | None) -> str:
        forced = self.forced if self.forced in load.costs else None
        return forced or choose(load, now)

    def _ready(self, work: Work) -> JoinSynopsis:
        """The synopsis, with room for what comes; chosen when queries came or went, and when results have doubled."""
        old, groups = self._synopsis, self.groups
        reach = work.reach(self.line.first)
        now = None if old is None else old.name
        if self._settled < 0 or self.results >= 2 * self._settled:
            now = self._chosen(self.load, None if self._settled < 0 else now)
            self._settled = max(1, self.results)
        if now != BasicIntervalJoin.name and reach * groups > 4 * MOST_CELLS:
            now = BasicIntervalJoin.name
        assert now is not None
        if old is not None and old.name == now and old.fits(reach, groups):
            return old
        cells = Cells.none(self._parts.words) if old is None else old.cells()
        self._synopsis = self._made(now, cells, reach)
        return self._synopsis

    def _made(self, name: str, cells: Cells, reach: int = 0) -> JoinSynopsis:
        """A synopsis of these cells, with room for more."""
        first = self.line.first
        span = int(cells.panes[-1]) - first + 1 if len(cells.panes) else 0
        groups = self.groups + self.groups // 2 + 8 if self.keys else 1
        return SYNOPSES[name](self._parts.words, cells, groups, 2 * max(reach, span, 4), first)

    # ---- results in, answers out ----------------------------------------------------------------------------------

    def move(self, results: Results, due: Mapping[Asker, Ints]) -> None:
        """Take in results in the order in which they came, and answer at each due time what was there then."""
        found, expiry = self._relevant(results)
        gids, words = self._lifted(found)
        self.results += len(found)
        self.saved.updates += (len(self.askers) - 1) * len(found)
        if len(found):
            self.line.extend(int(found.birth[0]) - self._longest, int(expiry.max()))
        panes = self.line.number(expiry)
        every = np.unique(np.concatenate([np.empty(0, np.int64), *(due[asker] for asker in self.askers)]))
        windows = list(dict.fromkeys(asker.window for asker in self.askers))
        step = max(1, MOST_BORDERS // len(windows))
        done = 0
        for begin in range(0, max(1, len(every)), step):
            taus = every[begin : begin + step]
            places = np.searchsorted(found.birth, taus, side="right")
            last = len(found) if begin + step >= len(every) else int(places[-1])
            some = slice(done, last)
            self._pass(panes[some], gids[some], words[some], np.append(places, last) - done, taus, windows, due)
            done = last
        for asker in self.askers:
            if len(due[asker]):
                asker.upto = int(due[asker][-1])
        self._forget()

    def _relevant(self, results: Results) -> tuple[Results, Ints]:
        """The results that some window will see, and where on the axis they are."""
        expiry = np.minimum(results.left + self.extra[0], results.right + self.extra[1])
        seen = (expiry > results.birth - self._longest) & (expiry > self.line.kept_from)
        since = min(asker.since for asker in self.askers)
        if since != BEGINNING:
            seen &= (results.left > since) & (results.right > since)
        if seen.all():
            return results, expiry
        batch = results.batch.filter(pa.array(seen))
        return Results(batch, results.birth[seen], results.left[seen], results.right[seen]), expiry[seen]

    def _lifted(self, found: Results) -> tuple[Ints, Ints]:
        """The group and the words of each result."""
        context = Context.of(found.batch)
        gids: Ints = np.zeros(len(found), np.int64)
        if self._keys and len(found):
            gids = self.dictionary.encode([context.value(key) for key in self._keys]).astype(np.int64)
        words, failed = self._parts.lifted(context, len(found))
        for asker in self.askers:
            errors = [failed[term.value] for term in asker.terms if term.value in failed]
            asker.error = asker.error or next(iter(errors), None)
        return gids, words

    def _pass(
        self,
        panes: Ints,
        gids: Ints,
        words: Ints,
        places: Ints,
        taus: Ints,
        windows: Sequence[tuple[int, int]],
        due: Mapping[Asker, Ints],
    ) -> None:
        """Some due times, and the results before, between and behind them."""
        starts = np.stack([np.maximum(taus - length, since) for length, since in windows], axis=1)
        borders = self.line.border(starts)
        asked: dict[Asker, Ints] = {}
        wanted = np.zeros(borders.shape, np.bool_)
        for asker in self.askers:
            if asker.error is None:
                own = due[asker][slice(*np.searchsorted(due[asker], taus[[0, -1]] + [0, 1]))] if len(taus) else taus
                asked[asker] = np.searchsorted(taus, own)
                wanted[asked[asker], windows.index(asker.window)] = True
        order = np.argsort(borders, axis=1, kind="stable")
        borders = np.take_along_axis(borders, order, axis=1)
        when, place = np.nonzero(np.take_along_axis(wanted, order, axis=1)[:, ::-1])
        place = borders.shape[1] - 1 - place
        number = np.empty(borders.shape, np.int64)
        number[when, order[when, place]] = np.arange(len(when))
        bounds = np.searchsorted(when, np.arange(len(taus) + 1))
        tail = borders[-1:] if len(taus) else np.full((1, len(windows)), self.line.first, np.int64)
        work = Work(
            panes, gids, words, places, np.concatenate([borders, tail]), np.append(bounds, bounds[-1]), place
        )  # fmt: skip
        synopsis = self._ready(work)
        together = len(np.unique(when)) if isinstance(synopsis, BasicIntervalJoin) else len(when)
        self.saved.lookups += sum(map(len, asked.values())) - together
        for found in synopsis.run(work, self.groups, always=not self.keys):
            for asker, chosen in asked.items():
                lookups = number[chosen, windows.index(asker.window)]
                here = slice(*np.searchsorted(lookups, [found.first, found.first + len(found.offsets) - 1]))
                self._put_out(asker, taus[chosen[here]], lookups[here] - found.first, found)

    def _put_out(self, asker: Asker, taus: Ints, lookups: Ints, found: Found) -> None:
        """The answers of one query at these due times."""
        if not len(taus) or asker.error is not None:
            return
        begins, counts = found.offsets[lookups], np.diff(found.offsets)[lookups]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        rows: Ints = np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])
        columns = list(self.dictionary.keys(found.gids[rows])) if self.keys else []
        time = pa.array(np.repeat(taus, counts)).view(asker.rows.schema.field(0).type)
        try:
            for term in asker.terms:
                columns.append(term.aggregate.lower(self._parts.typed(term, found.words, rows)))
            asker.out.append(asker.rows.rows(time, offsets, columns))
        except QueryError as error:
            asker.error = error

    def _forget(self) -> None:
        """Panes that have left the windows of all queries go, and now and then the groups that are in no pane."""
        needed = [asker.needed for asker in self.askers]
        known = [edge for edge in needed if edge is not None]
        if len(known) < len(needed):
            return
        line = self.line
        line.drop(min(known))
        if self._synopsis is None or not self.keys or 4 * (line.first - self._purged) <= len(line.edges):
            return
        self._purged = line.first
        cells = self._synopsis.cells()
        there = cells.panes >= line.first
        live = np.unique(cells.gids[there])
        if self.groups > 2 * len(live):
            self.dictionary.compact(live)
            kept = Cells(cells.panes[there], np.searchsorted(live, cells.gids[there]), cells.words[there])
            self._synopsis = self._made(self._synopsis.name, kept)

    # ---- state ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[str, Any], bytes]:
        """The panes, and what is known of them."""
        synopsis = self._synopsis
        cells = Cells.none(self._parts.words) if synopsis is None else synopsis.cells()
        arrays = prefixed("keys", self.dictionary.snapshot()) | {"panes": cells.panes, "gids": cells.gids}
        meta = {
            "line": self.line.snapshot(),
            "kind": None if synopsis is None else synopsis.name,
            "results": self.results,
            "settled": self._settled,
            "purged": self._purged,
            "since": self.since,
        }
        return meta, pack({}, arrays | {"words": cells.words})

    def restore(self, meta: Mapping[str, Any], panes: bytes) -> None:
        """Become what `snapshot` gave, for the same queries."""
        _, arrays = unpack(panes)
        self.dictionary.restore(within("keys", arrays))
        self.line.restore(meta["line"])
        self.since, self.results = meta["since"], meta["results"]
        self._settled, self._purged = meta["settled"], meta["purged"]
        if meta["kind"] is not None:
            words = numpy_of(arrays["words"]).reshape(-1, len(self._parts.words.ops))
            cells = Cells(numpy_of(arrays["panes"]), numpy_of(arrays["gids"]), words)
            self._synopsis = self._made(meta["kind"], cells)
