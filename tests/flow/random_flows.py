"""Random continuous and periodic queries over up to four inputs, and random streams for them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

STREAMS = ("p", "q", "r")
TICKS = pa.schema([("t", pa.int64()), ("a", pa.int32()), ("b", pa.int64()), ("s", pa.string())])
NAMES = "(a INT, b BIGINT, s STRING)"
KEYED = "(id BIGINT, a INT, b BIGINT, s STRING) KEY (id)"
SQL_COLUMNS = "(t BIGINT, a INT, b BIGINT, s STRING) TIME t"


@st.composite
def streams(draw: st.DrawFn, rows: int = 24, horizon: int = 40) -> dict[str, pa.Table]:
    """Tuples with bursts and ties, in the order of time, which may begin before zero."""
    tables = {}
    begin = draw(st.sampled_from([0, 0, 0, -9]))
    for name in STREAMS:
        ticks = draw(st.lists(st.integers(begin, begin + horizon), min_size=1, max_size=rows))
        if draw(st.integers(0, 3)) == 0:  # a burst
            ticks += [draw(st.integers(begin, begin + horizon))] * draw(st.integers(2, 6))
        count = len(ticks)
        few = st.one_of(st.none(), st.integers(0, 3))
        table = pa.table(
            {
                "t": pa.array(sorted(ticks), pa.int64()),
                "a": pa.array(draw(st.lists(few, min_size=count, max_size=count)), pa.int32()),
                "b": pa.array(draw(st.lists(few, min_size=count, max_size=count)), pa.int64()),
                "s": pa.array(
                    draw(st.lists(st.sampled_from([None, "x", "y"]), min_size=count, max_size=count)), pa.string()
                ),
            }
        )
        tables[name] = table
    return tables


@st.composite
def window(draw: st.DrawFn, slide: str) -> str:
    """Any window; `slide` is its SLIDE clause, for those that are measured in time."""
    kind = draw(st.sampled_from([*["RANGE"] * 4, "OFFSET", "ROWS", "PARTITION", "NOW", "UNBOUNDED"]))
    size = draw(st.integers(1, 9))
    match kind:
        case "RANGE":
            return f"[RANGE {size} {slide}]"
        case "OFFSET":
            return f"[RANGE {size} {slide} OFFSET {draw(st.integers(1, 5))}]"
        case "ROWS":
            offset = draw(st.sampled_from(["", f" OFFSET {draw(st.integers(1, 3))}"]))
            return f"[ROWS {size}{offset}]"
        case "PARTITION":
            return f"[PARTITION BY {draw(st.sampled_from(['a', 's', 'a, s']))} ROWS {draw(st.integers(1, 3))}]"
        case "NOW":
            return f"[NOW {slide}]"
    return f"[RANGE UNBOUNDED {slide}]"


@st.composite
def condition(draw: st.DrawFn, left: str, right: str) -> str:
    """Something that ties two FROM items together."""
    column = draw(st.sampled_from(["a", "b", "s"]))
    equal = f"{left}.{column} = {right}.{column}"
    others = [
        f"{equal} AND {left}.b <= {right}.b",
        f"{left}.a < {right}.a",
        f"{left}.a = {right}.b",  # INT and BIGINT
        f"{left}.b + 1 = {right}.b",
        f"{left}.a = {right}.a AND {left}.s = {right}.s",
    ]
    return draw(st.sampled_from([equal, equal, equal, *others]))


@st.composite
def plain(draw: st.DrawFn, slide: str, columns: int) -> str:
    """A SELECT without aggregates, with `columns` output columns."""
    count = draw(st.sampled_from([1, 1, 2, 2, 3, 4]))
    names = [f"x{place}" for place in range(count)]
    sources = [f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))} AS {name}" for name in names]
    outer = count in (2, 3) and draw(st.integers(0, 3)) == 0
    ties = [draw(condition(names[draw(st.integers(0, place - 1))], names[place])) for place in range(1, count)]
    where = []
    if outer:
        origin = sources[0]
        for source, tie in zip(sources[1:], ties, strict=True):
            origin += f" {draw(st.sampled_from(['LEFT', 'RIGHT', 'FULL', 'INNER']))} JOIN {source} ON {tie}"
    else:
        origin = ", ".join(sources)
        where += ties
    if draw(st.booleans()):
        where.append(draw(st.sampled_from(["x0.a > 0", "x0.b IS NOT NULL", "x0.s = 'x' OR x0.a = 1"])))
    if count < 3 and draw(st.integers(0, 3)) == 0:
        where += draw(st.lists(subquery(slide), min_size=1, max_size=2))
    outputs = [f"{draw(st.sampled_from(names))}.{draw(st.sampled_from(['a', 'b']))} AS c{i}" for i in range(columns)]
    distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
    filtered = f" WHERE {' AND '.join(f'({one})' for one in where)}" if where else ""
    return f"SELECT {distinct}{', '.join(outputs)} FROM {origin}{filtered}"


@st.composite
def subquery(draw: st.DrawFn, slide: str) -> str:
    """[NOT] EXISTS or [NOT] IN, correlated or not."""
    source = f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))} AS y"
    no = draw(st.sampled_from(["", "NOT "]))
    tie = draw(st.sampled_from(["", " WHERE y.s = x0.s", " WHERE y.b >= x0.b AND y.a = x0.a", " WHERE y.a = 2"]))
    if draw(st.booleans()):
        return f"{no}EXISTS (SELECT * FROM {source}{tie})"
    if draw(st.integers(0, 3)) == 0:
        other = f"SELECT z.b AS b FROM {draw(st.sampled_from(STREAMS))} {draw(window(slide))} AS z"
        word = draw(st.sampled_from(["UNION", "EXCEPT", "INTERSECT"]))
        return f"x0.b {no}IN (SELECT y.b AS b FROM {source} {word} {other})"
    return f"x0.a {no}IN (SELECT y.a FROM {source}{tie})"


@st.composite
def grouped(draw: st.DrawFn, slide: str) -> str:
    """Aggregates over a join or one window."""
    calls = ["COUNT(*)", "SUM(x0.b)", "MIN(x0.b)", "MAX(x0.a)", "AVG(x0.b)", "COUNT(DISTINCT x0.a)", "MEDIAN(x0.b)"]
    call = draw(st.sampled_from(calls))
    two = draw(st.booleans())
    first = f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))} AS x0"
    second = f", {draw(st.sampled_from(STREAMS))} {draw(window(slide))} AS x1" if two else ""
    where = f" WHERE {draw(condition('x0', 'x1'))}" if two else ""
    if draw(st.integers(0, 3)) == 0:
        return f"SELECT {call} AS c0 FROM {first}{second}{where}"
    having = draw(st.sampled_from(["", "", " HAVING COUNT(*) > 1"]))
    return f"SELECT x0.s AS g, {call} AS c0 FROM {first}{second}{where} GROUP BY x0.s{having}"


@st.composite
def counts(draw: st.DrawFn, slide: str) -> str:
    """One number per group, as a side of a set operation."""
    source = f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))}"
    return f"SELECT {draw(st.sampled_from(['COUNT(*)', 'MAX(b)', 'SUM(a)']))} AS c0 FROM {source} GROUP BY s"


@st.composite
def flows(draw: st.DrawFn) -> str:
    """A whole query."""
    periodic = draw(st.booleans())
    slide = f"SLIDE {draw(st.integers(1, 7))}" if periodic else ""
    kind = draw(st.sampled_from(["plain", "plain", "set", "grouped", "nested"]))
    if kind == "set":
        word = draw(st.sampled_from(["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]))
        sides = [draw(st.one_of(plain(slide, 1), plain(slide, 1), counts(slide))) for _ in range(2)]
        text = f" {word} ".join(sides)
    elif kind == "grouped":
        text = draw(grouped(slide))
    elif kind == "nested":
        inner = draw(st.one_of(plain(slide, 2), grouped(slide)))
        column = "c0"
        text = f"SELECT z.{column} AS c0 FROM ({inner}) AS z, p {draw(window(slide))} AS w WHERE z.{column} = w.b"
    else:
        text = draw(plain(slide, 2))
    operators = ["", "", "ISTREAM", "DSTREAM", "RSTREAM"]
    if periodic and "SLIDE" in text:
        operators += ["ISTREAM_RESTORE", "RSTREAM_RESTORE"]
    operator = draw(st.sampled_from(operators))
    return f"{operator}({text})" if operator else text


# ---- relations, output windows, INTERNAL, subqueries as windows, ROWS … SLIDE, LIMIT ---------------------------------

RESTORED = ("ISTREAM_RESTORE", "RSTREAM_RESTORE")


@st.composite
def from_item(draw: st.DrawFn, slide: str) -> str:
    """A window over a stream or over the output of a query."""
    if draw(st.integers(0, 3)):
        return f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))}"
    stream, size = draw(st.sampled_from(STREAMS)), draw(st.integers(1, 9))
    inner = draw(
        st.sampled_from(
            [
                f"ISTREAM(SELECT a, b, s FROM {stream} [RANGE {size}])",
                f"DSTREAM(SELECT a, b, s FROM {stream} [RANGE {size}] WHERE a > 0)",
                f"SELECT a, COUNT(*) AS b, MAX(s) AS s FROM {stream} [RANGE {size} SLIDE 3 INTERNAL] GROUP BY a",
                f"ISTREAM(SELECT DISTINCT a, b, s FROM {stream} [ROWS {size}])",
                f"RSTREAM(SELECT a, b, s FROM {stream} [RANGE {size} SLIDE 4])",
            ]
        )
    )
    return f"({inner}) {draw(window(slide))}"


@st.composite
def slides(draw: st.DrawFn) -> str:
    """The SLIDE of a periodic query, or none."""
    return draw(st.sampled_from(["", f"SLIDE {draw(st.integers(1, 7))}"]))


@st.composite
def operated(draw: st.DrawFn, text: str, slide: str, *, windows: bool = True) -> str:
    """Perhaps with a stream operator."""
    operators = ["", "", "", "ISTREAM", "DSTREAM", "RSTREAM", *(["WSTREAM"] * windows), *(RESTORED if slide else ())]
    operator = draw(st.sampled_from(operators))
    if operator == "WSTREAM":
        return f"WSTREAM({text}) [{draw(st.sampled_from(['ROWS', 'RANGE']))} {draw(st.integers(1, 6))}]"
    return f"{operator}({text})" if operator else text


@st.composite
def spj(draw: st.DrawFn, sources: list[str], *, grouped: bool) -> str:
    """Select-project-join, perhaps grouped."""
    names = [f"x{place}" for place in range(len(sources))]
    ties = [draw(condition(names[draw(st.integers(0, place - 1))], names[place])) for place in range(1, len(sources))]
    ties += draw(st.sampled_from([[], [], ["x0.a > 0"]]))
    where = f" WHERE {' AND '.join(f'({one})' for one in ties)}" if ties else ""
    origin = ", ".join(f"{source} AS {name}" for source, name in zip(sources, names, strict=True))
    last = names[-1]
    if grouped:
        call = draw(st.sampled_from(["COUNT(*)", f"SUM({last}.b)", f"MAX({last}.b)"]))
        key = draw(st.sampled_from(["", "x0.s", "x0.s"]))
        if key:
            return f"SELECT {key} AS g, {call} AS c0 FROM {origin}{where} GROUP BY {key}"
        return f"SELECT {call} AS c0 FROM {origin}{where}"
    return f"SELECT x0.a AS c0, {last}.b AS c1 FROM {origin}{where}"


@st.composite
def with_relations(draw: st.DrawFn) -> str:
    """Joins, outer joins and subqueries with relations, retroactive or not."""
    slide = draw(slides())
    sources = [draw(from_item(slide)) for _ in range(draw(st.integers(1, 2)))]
    kind = draw(
        st.sampled_from(
            ["retroactive", "retroactive", "non-retroactive", "non-retroactive", "both", "subquery", "outer"]
        )
    )
    if kind == "subquery":
        no = draw(st.sampled_from(["", "NOT "]))
        test = draw(
            st.sampled_from([f"x0.a {no}IN (SELECT a FROM names)", f"{no}EXISTS (SELECT * FROM names WHERE s = x0.s)"])
        )
        text = f"SELECT x0.a AS c0, x0.b AS c1 FROM {sources[0]} AS x0 WHERE {test}"
    elif kind == "outer":
        side = draw(st.sampled_from(["LEFT", "RIGHT", "FULL"]))
        text = f"SELECT x0.a AS c0, x1.b AS c1 FROM {sources[0]} AS x0 {side} JOIN names AS x1 ON x0.a = x1.a"
    else:
        sources += ["names"] * (kind != "non-retroactive") + ["prices"] * (kind != "retroactive")
        text = draw(spj(sources, grouped=draw(st.integers(0, 3)) == 0))
    return draw(operated(text, slide))


@st.composite
def windowed_output(draw: st.DrawFn) -> str:
    """INTERNAL windows (all or some), output windows, subqueries as windows."""
    slide = draw(slides())
    count = draw(st.sampled_from([1, 2, 2, 3]))
    sources = [draw(from_item(slide)) for _ in range(count)]
    which = draw(st.sampled_from(["none", "all", "some"]))
    if which == "some":
        sources = [f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))}" for _ in range(max(count, 2))]
        sources = [
            _internal(one) if place % 2 == 0 else one for place, one in enumerate(draw(st.permutations(sources)))
        ]
    elif which == "all":
        sources = [_internal(one) for one in sources]
    text = draw(spj(sources, grouped=which != "some" and draw(st.integers(0, 3)) == 0))
    return draw(operated(text, slide))


def _internal(source: str) -> str:
    return source[:-1] + " INTERNAL]"


@st.composite
def sliding_rows(draw: st.DrawFn) -> str:
    """ROWS … SLIDE, alone or beside other windows."""
    slide = draw(st.integers(1, 4))
    first = f"{draw(st.sampled_from(STREAMS))} [ROWS {draw(st.integers(1, 6))} SLIDE {slide}]"
    others = [
        f"{draw(st.sampled_from(STREAMS))} [RANGE {draw(st.integers(1, 8))}]",
        f"p [ROWS 3 SLIDE {slide}]",
        "q [ROWS 2]",
        "names",
    ]
    sources = [first, *draw(st.lists(st.sampled_from(others), max_size=1))]
    return draw(operated(draw(spj(sources, grouped=draw(st.booleans()))), "", windows=True))


@st.composite
def limited(draw: st.DrawFn) -> str:
    """ORDER BY … LIMIT."""
    slide = draw(slides())
    sources = [f"{draw(st.sampled_from(STREAMS))} {draw(window(slide))}" for _ in range(draw(st.integers(1, 2)))]
    text = draw(spj(sources, grouped=draw(st.integers(0, 3)) == 0))
    order = draw(st.sampled_from(["c0", "c0 DESC", "c0 DESC NULLS LAST", "c0 NULLS FIRST"]))
    limit = draw(st.sampled_from(["", " LIMIT 1", " LIMIT 3", " LIMIT 2 OFFSET 1"]))
    return draw(operated(f"{text} ORDER BY {order}{limit}", slide, windows=False))
