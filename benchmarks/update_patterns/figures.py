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
    """Milliseconds per 1,000 tuples, how many times the time of upa that is, and what is held."""
    ways = list(found.points)
    columns = ["window", "answer rows", *(_head(way, size, ways) for size in found.epochs for way in ways)]
    rows: list[list[object]] = []
    for place, window in enumerate(found.windows):
        points = [found.points[way][place] for way in ways]
        times = [point.seconds[size] * 1e3 for size in found.epochs for point in points]
        rows.append([window, points[0].answer[0], *times])
    title = f"{found.question.title} (Figure {found.question.figure}): ms per 1,000 tuples, by tuples per epoch"
    table(title, columns, rows)
    others = [way for way in ways if way != "upa"]
    rows = [
        [window, *(found.ratio(way, "upa", place, size) for size in found.epochs for way in others)]
        for place, window in enumerate(found.windows)
    ]
    table(
        "  … as so many times the time of upa",
        ["window", *(_head(way, size, others) for size in found.epochs for way in others)],
        rows,
    )
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
        if name in ("query1_telnet", "query2_src", "query2_pairs"):
            held |= {f"{name} {key}": value for key, value in _large_result(one).items()}
        if name.startswith("query2"):
            held[f"{name} space"] = _space(one, 100.0 if name == "query2_src" else 1.0)
        if name in ("query3", "zeek_negation"):
            held[f"{name} calendar"] = _negation(one)
        if name == "query4":
            held |= {f"{name} {key}": value for key, value in _pull_up(one).items()}
    return held


def _fastest(one: Found) -> bool:
    """upa against the others, with the longest windows, tuple by tuple as in the thesis; the rest for information."""
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
    last, least = len(one.windows) - 1, one.epochs[0]
    longest = {size: [ratios[other, last, size] for other in ("nt", "direct")] for size in one.epochs}
    told = ", ".join(f"{size:,}: {1 / max(own):.2f} to {1 / min(own):.1f} x" for size, own in longest.items())
    print(f"       with the longest windows the others take, by tuples per epoch, {told}")
    return verdict(
        f"… and in epochs of {least:,} upa is the fastest, or within 10 %",
        max(longest[least]) <= SAME,
    )


def _large_result(one: Found) -> dict[str, bool]:
    """With the longest windows: the slower of the others, and how direct got there."""
    last, least = len(one.windows) - 1, one.epochs[0]
    most = {
        other: max((one.ratio(other, "upa", last, size), size) for size in one.epochs) for other in ("nt", "direct")
    }
    told = ", ".join(f"{other} {times:.1f} x (epochs of {size:,})" for other, (times, size) in most.items())
    growth = {way: points[last].seconds[least] / points[0].seconds[least] for way, points in one.points.items()}
    rows = one.points["upa"][last].answer[0]
    return {
        "slowest": verdict(
            f"with {rows:,} answer rows the slowest takes 10 x the time of upa or more: {told}",
            max(most.values())[0] >= ORDER_OF_MAGNITUDE,
        ),
        "collapse": verdict(
            f"direct collapses: from the shortest to the longest window {growth['direct']:.1f} x, "
            f"upa {growth['upa']:.1f} x (epochs of {least:,})",
            growth["direct"] > 2 * growth["upa"],
        ),
    }


def _space(one: Found, aim: float) -> bool:
    """What δ* saves at best; bytes follow how far buffers have grown, so rows decide."""
    saved = []
    for other in ("nt", "direct"):
        pairs = list(zip(one.points[other], one.points["upa"], strict=True))
        rows = max(theirs.rows / ours.rows for theirs, ours in pairs)
        saved.append(rows)
        nbytes = max(theirs.nbytes / ours.nbytes for theirs, ours in pairs)
        print(f"       δ* keeps up to {rows:.0f} x fewer rows than {other} does, in up to {nbytes:.0f} x fewer bytes")
    return verdict(f"… {min(saved):.0f} x fewer than each of them (aim {aim:.0f} x)", min(saved) >= aim)


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
    for way in ("upa", "nt"):
        gains = ", ".join(f"{one.ratio(f'{way} ⋈', way, place, size):.2f}" for place in range(len(one.windows)))
        print(f"       negation pull-up makes {way} so many times as fast (epochs of {size:,}): {gains}")
    gain, loss = (one.ratio(f"{way} ⋈", way, last, size) for way in ("upa", "nt"))
    best = min(one.points, key=lambda way: one.points[way][last].seconds[size])
    return {
        "pull-up": verdict(f"with the longest windows it pays for upa ({gain:.2f} x)", gain > 1),
        "best": verdict(f"… and upa is the best of all ways (the best is {best})", best == "upa"),
        "nt": verdict(f"with negative tuples everywhere it does not pay ({loss:.2f} x)", loss < 1),
    }


def pictures(folder: Path, found: Mapping[str, Found]) -> None:
    """patterns_time.png and patterns_ratio.png for small and large epochs, patterns_space.png."""
    times, ratios, space = [], [], []
    for one in found.values():
        places = range(len(one.windows))
        for size in (one.epochs[0], one.epochs[-1]):
            title = f"{one.question.title}\n{size:,} tuple{'s' if size > 1 else ''} per epoch"
            spent = {
                way: (one.windows, [point.seconds[size] * 1e3 for point in points])
                for way, points in one.points.items()
            }
            times.append(Panel(title, "window", "ms per 1,000 tuples", spent, logx=True, logy=True))
            against = {
                way: (one.windows, [one.ratio(way, "upa", place, size) for place in places]) for way in one.points
            }
            ratios.append(Panel(title, "window", "x the time of upa", against, logx=True, logy=True))
        for what, unit in (("rows", 1), ("nbytes", 1024)):
            held = {
                way: (one.windows, [getattr(point, what) / unit for point in points])
                for way, points in one.points.items()
            }
            label = "rows" if what == "rows" else "KiB"
            space.append(Panel(f"{one.question.title}\nstate", "window", label, held, logx=True, logy=True))
    for name, panels in (("time", times), ("ratio", ratios), ("space", space)):
        draw(folder / f"patterns_{name}.png", panels)
