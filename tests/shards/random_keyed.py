"""Random queries whose parts are mostly tied by one column: most of them can run in shards."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from tests.flow.random_flows import STREAMS, operated, slides
from tests.flow.scenarios import Event, Scenario

INNER = (
    "ISTREAM(SELECT {keys} FROM {stream} [RANGE {size}])",
    "DSTREAM(SELECT {keys} FROM {stream} [RANGE {size}])",
    "SELECT {keys} FROM {stream} [RANGE {size} INTERNAL]",
    "RSTREAM(SELECT {keys} FROM {stream} [RANGE {size} SLIDE 1])",
    "RSTREAM(SELECT {keys} FROM {stream} [RANGE {size} SLIDE 4])",
    "ISTREAM(SELECT DISTINCT {keys} FROM {stream} [PARTITION BY a ROWS {size}])",
    "ISTREAM(SELECT a, COUNT(*) AS b, MAX(s) AS s FROM {stream} [RANGE {size}] GROUP BY a)",
)


@st.composite
def window(draw: st.DrawFn, slide: str) -> str:
    """A window that does not count the tuples of other keys."""
    size = draw(st.integers(1, 9))
    kinds = [*[f"[RANGE {size} {slide}]"] * 3, f"[RANGE {size} {slide} OFFSET 2]", f"[NOW {slide}]"]
    kinds += [f"[PARTITION BY a ROWS {size}]", "[PARTITION BY s, a ROWS 2]", f"[RANGE UNBOUNDED {slide}]"]
    return draw(st.sampled_from(kinds))


@st.composite
def source(draw: st.DrawFn, slide: str) -> str:
    """A window over a stream, over the output of a query, or a query itself."""
    stream, size = draw(st.sampled_from(STREAMS)), draw(st.integers(1, 9))
    kind = draw(st.sampled_from(["stream"] * 5 + ["window", "subquery", "union"]))
    if kind == "stream":
        return f"{stream} {draw(window(slide))}"
    if kind == "window":
        inner = draw(st.sampled_from(INNER)).format(keys="a, b, s", stream=stream, size=size)
        return f"({inner}) [RANGE {draw(st.integers(1, 9))} {slide}]"
    own = f"SELECT a, b, s FROM {stream} {draw(window(slide))}"
    if kind == "union":
        word = draw(st.sampled_from(["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]))
        return f"({own} {word} SELECT a, b, s FROM {draw(st.sampled_from(STREAMS))} {draw(window(slide))})"
    return f"({own.replace('SELECT', draw(st.sampled_from(['SELECT', 'SELECT DISTINCT'])))})"


@st.composite
def origin(draw: st.DrawFn, slide: str) -> tuple[str, int]:
    """FROM, and how many items it has; all are tied by the column a."""
    count = draw(st.integers(1, 3))
    text = f"{draw(source(slide))} AS x0"
    for place in range(1, count):
        side = draw(st.sampled_from(["", "", "LEFT ", "RIGHT ", "FULL "] if count == 2 else ["", "", "LEFT "]))
        more = draw(st.sampled_from(["", "", f" AND x0.b <= x{place}.b", f" AND x0.s = x{place}.s"]))
        text += (
            f" {side}JOIN {draw(source(slide))} AS x{place} ON x{draw(st.integers(0, place - 1))}.a = x{place}.a{more}"
        )
    if draw(st.integers(0, 3)) == 0:
        relation = draw(st.sampled_from(["JOIN names", "LEFT JOIN names", "RIGHT JOIN names", "JOIN prices"]))
        text += f" {relation} AS n ON n.{draw(st.sampled_from(['a', 's']))} = x0.{draw(st.sampled_from(['a']))}"
        text = text.replace("n.s = x0.a", "n.s = x0.s")
    return text, count


@st.composite
def keyed(draw: st.DrawFn) -> str:
    """A whole query."""
    slide = draw(slides())
    items, count = draw(origin(slide))
    last = f"x{count - 1}"
    where = ""
    if draw(st.integers(0, 2)) == 0:
        inner = f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))} AS y"
        no = draw(st.sampled_from(["", "NOT "]))
        tests = [
            f"{no}EXISTS (SELECT * FROM {inner} WHERE y.a = x0.a)",
            f"{no}EXISTS (SELECT * FROM {inner} WHERE y.a = x0.a AND y.b < x0.b)",
            f"x0.a IN (SELECT y.a FROM {inner})",
            f"x0.a NOT IN (SELECT y.a FROM {inner})",
            f"{no}EXISTS (SELECT * FROM {inner} WHERE y.b = x0.b)",
            f"x0.b {no}IN (SELECT y.b FROM {inner} WHERE x0.a = y.a)",
            f"x0.b {no}IN (SELECT b FROM names)",
        ]
        where = f" WHERE {draw(st.sampled_from(tests))}"
    shape = draw(st.sampled_from(["plain", "plain", "hidden", "distinct", "grouped", "grouped", "hidden group"]))
    match shape:
        case "plain":
            text = f"SELECT x0.a AS c0, {last}.b AS c1 FROM {items}{where}"
        case "hidden":
            text = f"SELECT {last}.b AS c0, x0.s AS c1 FROM {items}{where}"
        case "distinct":
            first = draw(st.sampled_from(["x0.a", "x0.a", "x0.b"]))  # without the key: mostly refused
            text = f"SELECT DISTINCT {first} AS c0, x0.s AS c1 FROM {items}{where}"
        case _:
            call = draw(st.sampled_from(["COUNT(*)", f"SUM({last}.b)", "MIN(x0.b)", f"COUNT(DISTINCT {last}.s)"]))
            group = draw(st.sampled_from(["x0.a", "x0.s, x0.a", "x0.s"]))
            having = draw(st.sampled_from(["", "", " HAVING COUNT(*) > 1"]))
            shown = "" if shape == "hidden group" else f"{group[:4]} AS g, "
            text = f"SELECT {shown}{call} AS c0 FROM {items}{where} GROUP BY {group}{having}"
    return draw(operated(text, slide))


@st.composite
def busy(draw: st.DrawFn, rows: int = 90, horizon: int = 30) -> Scenario:
    """Many tuples in few instants with few keys: windows are full, and much happens at once in several shards."""
    chance = random.Random(draw(st.integers(0, 1 << 30)))
    lateness = chance.choice([0, 0, 3])
    events = []

    def values() -> tuple[int | None, int | None, str | None]:
        return chance.choice([None, 0, 1, 2, 3, 4]), chance.choice([None, 0, 1, 2]), chance.choice([None, "x", "y"])

    for name in ("names", "prices"):
        events.append((-1, Event("update", name, tuple((0, *values()) for _ in range(chance.randint(0, 5))), -1)))
        for _ in range(chance.randint(0, 3)):
            came = tuple((0, *values()) for _ in range(chance.randint(0, 2)))
            gone = tuple(chance.randint(0, 5) for _ in range(chance.randint(0, 2)))
            events.append((chance.randint(0, horizon), Event("update", name, came, chance.choice([-1, 0, 2]), gone)))
    for tick in range(horizon):
        for name in STREAMS:
            count = chance.choice([0, 0, 1, 1, 2, 4]) * rows // 90
            ticks = [max(0, tick - chance.randint(0, lateness)) for _ in range(count)]
            if ticks:
                events.append((tick, Event("push", name, tuple((one, *values()) for one in ticks))))
    events += [(chance.randint(0, horizon), Event("advance", chance.choice(STREAMS), amount=2)) for _ in range(2)]
    events.sort(key=lambda one: one[0])
    begins = chance.choice([0, 0, 0, len(events) // 3])
    return Scenario(lateness, tuple(event for _, event in events), chance.random() < 0.5, begins)
