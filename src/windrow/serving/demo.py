"""`windrow demo`: a stream, a script of 240 queries, a run, and what a user wants to see of it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.display import display_for, error_console
from windrow.figures import Pace
from windrow.progress import Summary
from windrow.serving.demo_directory import DemoDirectory
from windrow.serving.packets import write_packets
from windrow.serving.questions import QUESTIONS, WINDOWS, demo_queries, script
from windrow.serving.run import BAD_SCRIPT, GOOD, QUERY_STOPPED, RunOptions, open_database, supervise
from windrow.serving.script import load
from windrow.serving.terminal import note, output_console, tell_faults

FILES = 12
FILES_PER_BATCH = 2
SHOWN_ROWS = 4
_FIRST = f"{{}}_{WINDOWS[0][0]}s_{WINDOWS[0][1]}s"
"""The name of a question's query over the first window."""


@dataclass(frozen=True)
class Shown:
    """A query of which the demo shows some answers: the latest one, or the rows with the most of a column."""

    question: str
    most: str | None = None


SHOWN = (Shown("top_talkers"), Shown("protocols"), Shown("syn_floods", "attempts"), Shown("bulk_receivers", "bytes"))


@dataclass(frozen=True)
class DemoOptions:
    """What the command line asked for."""

    directory: Path = Path("build/demo")
    rows: int = 3_000_000
    queries: int = 240
    master: str | None = None


def run_demo(options: DemoOptions) -> int:
    """Prepare, run and show the demo; gives the exit code."""
    place = DemoDirectory(options.directory)
    place.claim()
    _prepare_packets(place, options.rows)
    text = script(str(place.packets), demo_queries(options.queries), files_per_batch=FILES_PER_BATCH)
    saved = place.write_script(text)
    if saved is not None:
        note(f"your changed {place.script} is kept as {saved}")
    output = place.fresh_output()
    db = open_database(options.master, {}, place.log)
    loaded = load(db, text, str(place.script))
    if loaded.faults:
        tell_faults(loaded.faults, text)
        return BAD_SCRIPT
    note(f"running {len(db.queries()):,} queries of {place.script} over {options.rows:,} packets")
    display = display_for(quiet=False, as_json=False)
    summary, code = supervise(db, RunOptions(str(place.script), output), display)
    if summary is not None and code in (GOOD, QUERY_STOPPED):
        _show(db, summary, display.pace, place)
    return code


def _prepare_packets(place: DemoDirectory, rows: int) -> None:
    from rich.progress import Progress

    if place.holds_packets(rows, FILES):
        note(f"the stream of {rows:,} packets is there: {place.packets}")
        return
    place.clear_packets()
    note(f"writing {rows:,} packets to {place.packets}")
    with Progress(console=error_console(), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("writing packets", total=rows)
        write_packets(place.packets, rows, FILES, progress=lambda done: bar.update(task, completed=done))
    place.note_packets(rows, FILES)


def _show(db: Any, summary: Summary, pace: Pace, place: DemoDirectory) -> None:
    console = output_console()
    progress, metrics = summary.progress, db.metrics()
    slices = sum(stream["slices"] for stream in metrics["streams"].values())
    queries = len(metrics["queries"])
    console.print(
        f"\n{progress.rows:,} packets in {progress.seconds:,.1f} s: {pace.rows(progress):,.0f} rows/s read and "
        f"{pace.answers(progress):,.0f} answer rows/s written, {progress.answers:,} in all; {progress.late:,} late",
        markup=False,
    )
    console.print(
        f"{queries} queries share {slices} slices: each packet is added to {slices} sets of panes, not to {queries} "
        "windows and their overlaps",
        markup=False,
    )
    for name, error in summary.stopped.items():
        console.print(f"stopped: {name}: {error}", markup=False)
    registered = {query.name: query for query in db.queries()}
    for shown in SHOWN:
        query = registered.get(_FIRST.format(shown.question))
        if query is not None:
            _show_answers(shown, query, summary.outputs.get(query.name))
    console.print(f"\nThe answers are Parquet files in {place.output}/<query>/.\n", markup=False)
    console.print("Try next:", markup=False)
    for line in next_steps(place):
        console.print(f"  {line}", markup=False)


def _show_answers(shown: Shown, query: Any, output: str | None) -> None:
    from rich.table import Table

    answers = _answers(query, output)
    purpose = next(one.purpose for one in QUESTIONS if one.name == shown.question)
    if not answers.num_rows:  # then there are no files either, and no columns
        output_console().print(f"\n{query.name}: {purpose}: none", markup=False)
        return
    table = Table(title=f"{query.name}: {purpose}", title_justify="left", title_style="bold")
    for field in answers.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if number else "left")
    for row in chosen_rows(answers, shown.most).to_pylist():
        table.add_row(*(_cell(value) for value in row.values()))
    console = output_console()
    console.print()
    console.print(table)


def _answers(query: Any, output: str | None) -> pa.Table:
    """From the files that the run wrote, as any other tool reads them."""
    if output is None:
        table: pa.Table = query.answers()
        return table
    import pyarrow.dataset as ds

    return ds.dataset(output, format="parquet").to_table()


def chosen_rows(answers: pa.Table, most: str | None) -> pa.Table:
    """The first rows of the latest answer, or those with the most of a column."""
    if most is not None:
        return answers.sort_by([(most, "descending")]).slice(0, SHOWN_ROWS)
    return answers.filter(pc.equal(answers["_time"], pc.max(answers["_time"]))).slice(0, SHOWN_ROWS)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def next_steps(place: DemoDirectory) -> list[str]:
    """Commands that work as they stand."""
    windrow, python = _commands()
    path, busy = shlex.quote(str(place.script)), _FIRST.format("top_talkers")
    floods = place.output / _FIRST.format("syn_floods")
    return [
        f"# change {place.script}, and check it without running it",
        f"{windrow} check {path}",
        f"{windrow} explain {path} {busy}",
        "# the same run, in a way that survives a crash: start it again and it goes on",
        f"{windrow} run {path} --output {shlex.quote(str(place.directory / 'mine'))} "
        f"--checkpoint {shlex.quote(str(place.directory / 'state'))}",
        "# the answers in pandas, DuckDB or Spark",
        f'{python} -c "import pandas; print(pandas.read_parquet({str(floods)!r}))"',
        f"duckdb -c \"SELECT * FROM '{floods}/**/*.parquet' ORDER BY attempts DESC LIMIT 5\"",
        f"spark.read.parquet({str(floods)!r}).show()",
    ]


def _commands() -> tuple[str, str]:
    """How this program and its Python are called from the user's shell."""
    own = Path(sys.executable)
    python = "python" if shutil.which("python") == str(own) else shlex.quote(_nearby(own))
    if shutil.which("windrow") == str(own.parent / "windrow"):
        return "windrow", python
    script_ = own.parent / "windrow"
    return (shlex.quote(_nearby(script_)) if script_.exists() else f"{python} -m windrow"), python


def _nearby(path: Path) -> str:
    """Relative when it is below the current directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative
