"""`windrow run`: a script from its text to its answers, with progress, and an exit code that says how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import windrow
from windrow.display import Display, display_for
from windrow.figures import progress_record
from windrow.progress import OnProgress, Progress, Summary
from windrow.serving.faults import Fault
from windrow.serving.interrupts import Interrupts
from windrow.serving.script import Loaded, load_file
from windrow.serving.summary import summary_lines, summary_record
from windrow.serving.terminal import note, output_console, tell_faults

GOOD, FAILED, BAD_SCRIPT, QUERY_STOPPED = 0, 1, 2, 3


@dataclass(frozen=True)
class RunOptions:
    """What the command line asked for."""

    script: str
    output: Path | None = None
    format: str = "parquet"
    checkpoint: Path | None = None
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    trigger: str = "1 second"
    keep_open: bool = False
    policy: str | None = None
    shards: int = 0
    log: Path | None = None
    quiet: bool = False
    json: bool = False


def run(options: RunOptions) -> int:
    """Run a script; gives the exit code."""
    db = open_database(options.master, options.settings, options.log)
    loaded = load_file(db, options.script)
    faults = loaded.faults or _no_queries(db, loaded)
    if faults:
        tell_errors(faults, loaded.text, as_json=options.json)
        return BAD_SCRIPT
    if not (options.quiet or options.json):
        _print_results(loaded)
    display = display_for(quiet=options.quiet, as_json=options.json)
    summary, code = supervise(db, options, display)
    interrupted = code not in (GOOD, QUERY_STOPPED)
    if summary is not None:
        _print_summary(summary, display, len(db.queries()), options, interrupted=interrupted)
    elif options.json:  # a replay that was interrupted has no summary; say how far it came
        record = progress_record(display.latest, display.pace) | {
            "state": "stopped",
            "interrupted": True,
            "ended": False,
        }
        print(json.dumps(record, ensure_ascii=False))
    if interrupted and not options.quiet and not options.json:
        note(_how_to_go_on(options))
    return code


def open_database(master: str | None, settings: Mapping[str, str], log: Path | None) -> Any:
    """A database for a run; what is not asked for is left to its defaults."""
    asked: dict[str, Any] = {"master": master, "settings": dict(settings) or None, "log": log}
    connect: Any = windrow.connect
    return connect(**{name: value for name, value in asked.items() if value is not None})


def supervise(db: Any, options: RunOptions, display: Display) -> tuple[Summary | None, int]:
    """Replay or live, with the progress shown and signals turned into a clean stop."""
    with display, Interrupts(display.leave) as interrupts:

        def on_progress(progress: Progress) -> None:
            interrupts.hold()
            display(progress)

        try:
            summary = _live(db, options, on_progress) if options.live else _replay(db, options, on_progress)
        except KeyboardInterrupt:
            return None, interrupts.exit_code
    stopped_early = not summary.ended and not options.live and not options.keep_open
    if interrupts.signal is not None or stopped_early:
        return summary, interrupts.exit_code
    return summary, QUERY_STOPPED if summary.stopped else GOOD


def _replay(db: Any, options: RunOptions, progress: OnProgress) -> Summary:
    summary: Summary = db.run(
        checkpoint=options.checkpoint,
        output=options.output,
        format=_format(options),
        finish=not options.keep_open,
        shards=options.shards,
        progress=progress,
    )
    return summary


def _format(options: RunOptions) -> str:
    """Answers that go nowhere else are shown."""
    return options.format if options.output is not None or options.quiet or options.json else "console"


def _live(db: Any, options: RunOptions, progress: OnProgress) -> Summary:
    db.start(
        trigger=options.trigger,
        checkpoint=options.checkpoint,
        output=options.output,
        format=_format(options),
        shards=options.shards,
        progress=progress,
        **({} if options.policy is None else {"policy": options.policy}),
    )
    with suppress(KeyboardInterrupt):  # the usual end of a live run
        db.wait()
    summary: Summary = db.stop()
    return summary


def tell_errors(faults: list[Fault], text: str = "", *, as_json: bool = False) -> None:
    """Errors for people on the standard error, or as the one JSON object on the standard output."""
    if as_json:
        listed = [fault.record() for fault in faults]
        print(json.dumps({"error": listed[0]} | ({"errors": listed} if len(listed) > 1 else {}), ensure_ascii=False))
    else:
        tell_faults(faults, text)


def _no_queries(db: Any, loaded: Loaded) -> list[Fault]:
    if db.queries():
        return []
    return [Fault("StateError", "the script registers no query; write CREATE QUERY name AS SELECT …", loaded.file)]


def _print_results(loaded: Loaded) -> None:
    """What EXPLAIN and SHOW in the script gave."""
    console = output_console()
    for result in loaded.results:
        text = result if isinstance(result, str) else "\n".join("  ".join(row.values()) for row in result.to_pylist())
        console.print(text + "\n", markup=False)


def _print_summary(
    summary: Summary, display: Display, queries: int, options: RunOptions, *, interrupted: bool
) -> None:  # fmt: skip
    if options.json:
        record = summary_record(summary, display.pace, queries, interrupted=interrupted)
        print(json.dumps(record, ensure_ascii=False))
    elif options.quiet:
        tell_faults([Fault("QueryError", error) for error in summary.stopped.values()])
    else:
        for line in summary_lines(summary, display.pace, queries):
            output_console().print(line, markup=False)


def _how_to_go_on(options: RunOptions) -> str:
    if options.checkpoint is not None:
        return f"stopped; run the same command again to go on (the checkpoint is {options.checkpoint})"
    return "stopped; the same command begins again from the start. With --checkpoint DIR it would go on from here"
