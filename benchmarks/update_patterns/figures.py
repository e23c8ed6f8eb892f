"""Tables, plots and verdicts of Figures 3.8 to 3.15."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import Panel, draw, table, verdict
from benchmarks.update_patterns.measured import Found

ORDER_OF_MAGNITUDE = 10.0
SAME = 1.1
"""Times that differ by less are the same."""


def show(found: Found) -> None:
    """Milliseconds per 1,000 tuples, and what is held."""
    ways = list(found.points)
    columns = ["window", "answer rows", *(_head(way, size, ways) for size in found.epochs for way in ways)]
    rows: list[list[object]] = []
    for place, window in enumerate(found.windows):
        points = [found.points[way][place] for way in ways]
        times = [point.seconds[size] * 1e3 for size in found.epochs for point in points]
        rows.append([window, points[0].answer[0], *times])
    title = f"{found.question.title} (Figure {found.question.figure}): ms per 1,000 tuples, by tuples per epoch"
    table(title, columns, rows)
    columns = ["window", *(f"{way} rows" for way in ways), *(f"{way} KiB" for way in ways)]
    rows = []
    for place, window in enumerate(found.windows):
        points = [found.points[way][place] for way in ways]
        rows.append([window, *(point.rows for point in points), *(point.nbytes / 1024 for point in points)])
    table("  state of the operators, without the answer", columns, rows)


def _head(way: str, size: int, ways: list[str]) -> str:
    return f"{size:,}: {way}" if way == ways[0] else way


def shapes(found: Mapping[str, Found]) -> dict[str, bool]:
    """What the thesis saw, by name; only of what was measured."""
    held: dict[str, bool] = {}
    for name, one in found.items():
        print(f"\n{one.question.title}")
        if name.startswith(("query1", "query2", "zeek_join", "zeek_pairs")):
            held[f"{name} fastest"] = _fastest(one)
        if name in ("query1_telnet", "query2_pairs"):
            held |= {f"{name} {key}": value for key, value in _large_result(one).items()}
        if name == "query2_src":
            held[f"{name} space"] = _space(one)
        if name in ("query3", "zeek_negation"):
            held[f"{name} calendar"] = _negation(one)
        if name == "query4":
            held |= {f"{name} {key}": value for key, value in _pull_up(one).items()}
    return held


def _fastest(one: Found) -> bool:
    """upa against the others, with the longest windows, in epochs of every size; anywhere else for information."""
    ratios = {
        (other, place, size): one.ratio("upa", other, place, size)
        for other in ("nt", "direct")
        for place in range(len(one.windows))
        for size in one.epochs
    }
    (other, place, size), worst = max(ratios.items(), key=lambda pair: pair[1])
    print(
        f"       at worst upa takes {worst:.2f} x the time of {other} (window {one.windows[place]:,}, epoch {size:,})"
    )
    last = len(one.windows) - 1
    worst = max(ratio for (_, place, _), ratio in ratios.items() if place == last)
    best = max(1 / ratio for (_, place, _), ratio in ratios.items() if place == last)
    return verdict(
        "with the longest windows upa is the fastest, or within 10 % "
        f"(the others take {1 / worst:.2f} to {best:.1f} x its time)",
        worst <= SAME,
    )


def _large_result(one: Found) -> dict[str, bool]:
    last = len(one.windows) - 1
    rows = one.points["upa"][last].answer[0]
    held = {}
    for other in ("nt", "direct"):
        most, size = max((one.ratio(other, "upa", last, size), size) for size in one.epochs)
        held[other] = verdict(
            f"with {rows:,} answer rows {other} takes {most:.1f} x the time of upa, in epochs of {size:,} (aim 10 x)",
            most >= ORDER_OF_MAGNITUDE,
        )
    least = one.epochs[0]
    growth = {way: points[last].seconds[least] / points[0].seconds[least] for way, points in one.points.items()}
    held["collapse"] = verdict(
        f"direct collapses: from the shortest to the longest window {growth['direct']:.1f} x, "
        f"upa {growth['upa']:.1f} x (epochs of {least:,})",
        growth["direct"] > 2 * growth["upa"],
    )
    return held


def _space(one: Found) -> bool:
    last = len(one.windows) - 1
    upa, nt = one.points["upa"][last], one.points["nt"][last]
    rows, nbytes = nt.rows / upa.rows, nt.nbytes / upa.nbytes
    # Bytes follow how far buffers have grown, so rows decide.
    return verdict(
        f"δ* keeps {rows:.0f} x fewer rows than negative tuples do (aim 100 x), in {nbytes:.0f} x fewer bytes",
        rows >= ORDER_OF_MAGNITUDE**2,
    )


def _negation(one: Found) -> bool:
    shares = [point.premature for point in one.points["upa"]]
    worst = max(one.ratio("upa", "nt", place, size) for place in range(len(one.windows)) for size in one.epochs)
    print(f"       rows of the answer that end before their time: {', '.join(f'{share:.0%}' for share in shares)}")
    return verdict(
        f"a calendar queue with negative tuples for premature ends is never slower than nt (at worst {worst:.2f} x)",
        worst <= SAME,
    )


def _pull_up(one: Found) -> dict[str, bool]:
    last, size = len(one.windows) - 1, one.epochs[-1]
    gain, loss = (one.ratio(f"{way} ⋈", way, last, size) for way in ("upa", "nt"))
    best = min(one.points, key=lambda way: one.points[way][last].seconds[size])
    return {
        "pull-up": verdict(
            f"with the longest windows negation pull-up makes upa {gain:.2f} x as fast (epochs of {size:,})",
            gain > 1,
        ),
        "best": verdict(f"… and the best of all ways (the best is {best})", best == "upa"),
        "nt": verdict(f"with negative tuples everywhere it does not pay ({loss:.2f} x)", loss < 1),
    }


def picture(path: Path, found: Mapping[str, Found]) -> None:
    """One panel per question for small and large epochs, and the space of query 2."""
    panels = []
    for one in found.values():
        for size in (one.epochs[0], one.epochs[-1]):
            lines = {
                way: (one.windows, [point.seconds[size] * 1e3 for point in points])
                for way, points in one.points.items()
            }
            title = f"{one.question.title}\n{size:,} tuple{'s' if size > 1 else ''} per epoch"
            panels.append(Panel(title, "window", "ms per 1,000 tuples", lines, logx=True, logy=True))
    for name in ("query2_src", "query2_pairs"):
        if name in found:
            one = found[name]
            lines = {way: (one.windows, [point.rows for point in points]) for way, points in one.points.items()}
            panels.append(Panel(f"{one.question.title}: state", "window", "rows", lines, logx=True, logy=True))
    draw(path, panels)
