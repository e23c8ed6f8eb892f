"""The command line: `windrow run | check | explain | demo`.

Only typer is imported here; what a command needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from windrow.scheduling.policy import LIVE

FAILED, BAD_SCRIPT, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class OutputFormat(str, Enum):
    """What `--output` writes."""

    parquet = "parquet"
    csv = "csv"
    json = "json"


class PlanFormat(str, Enum):
    """How EXPLAIN shows a plan."""

    text = "text"
    json = "json"
    mermaid = "mermaid"


Debug = Annotated[
    bool, typer.Option("--debug", envvar="WINDROW_DEBUG", help="Show the Python traceback of an error.")
]  # fmt: skip
Master = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation on Python 3.10 too
    typer.Option("--master", metavar="URL", help="Spark master, such as spark://host:7077; local[*] when left out."),
]


def main() -> None:
    """Entry point of the `windrow` command."""
    app(prog_name="windrow")


@app.callback(invoke_without_command=True)
def windrow_command(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Many sliding-window queries over the same streams, answered exactly, in one pass.

    \b
    windrow demo                       see it work: 240 queries over simulated packets
    windrow check script.cql           every error of a script at once
    windrow explain script.cql         the plans, and which queries share what
    windrow run script.cql --output DIR
    """
    if version:
        from windrow import __version__

        typer.echo(f"windrow {__version__}")
        raise typer.Exit


@app.command()
def run(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A file of CQL statements; - reads stdin.")],
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", metavar="DIR", help="Write the answers to DIR/<query>/."),
    ] = None,
    format: Annotated[
        Optional[OutputFormat],  # noqa: UP045
        typer.Option("--format", help="Of --output; parquet when left out."),
    ] = None,
    checkpoint: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--checkpoint", metavar="DIR", help="Keep the state here; the same command then goes on from it."),
    ] = None,
    master: Master = None,
    settings: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of Spark; may be given several times."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Follow the streams until Ctrl-C, instead of replaying to their end.")
    ] = False,
    trigger: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--trigger", metavar="TIME", help="With --live: how often to look for data; '1 second'."),
    ] = None,
    keep_open: Annotated[
        bool,
        typer.Option("--keep-open", help="At the end of the input, leave windows that are not complete unanswered."),
    ] = False,
    policy: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--policy", metavar="NAME", help=f"With --live: how to schedule queries: {', '.join(LIVE)}."),
    ] = None,
    shards: Annotated[
        int,
        typer.Option(
            "--shards", metavar="N", min=0, help="Run joins and the like in N shards in the executors, by their key."
        ),
    ] = 0,
    log: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--log", metavar="FILE", help="Where Spark's own messages go."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but errors.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout; progress as JSON lines on stderr.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run a script of CQL: read its streams with Spark and answer all its queries in one pass.

    \b
    windrow run script.cql --output answers
    windrow run script.cql --output answers --format csv --checkpoint state
    windrow run script.cql --live --trigger '5 seconds' --checkpoint state --output answers
    windrow run - --json < script.cql

    The script declares streams, CREATE STREAM … USING parquet OPTIONS (path '…'), and queries, CREATE QUERY name AS
    SELECT …. Ctrl-C stops cleanly; a second one leaves at once.

    \b
    Exit codes: 0 good · 1 the run failed · 2 bad usage or a bad script · 3 some query was stopped by an error
                130 Ctrl-C · 143 SIGTERM
    """
    if format is not None and output is None:
        raise typer.BadParameter("it needs --output DIR", param_hint="--format")
    if trigger is not None and not live:
        raise typer.BadParameter("it is for --live", param_hint="--trigger")
    if policy is not None and not live:
        raise typer.BadParameter("it is for --live", param_hint="--policy")
    if policy is not None and policy not in LIVE:
        raise typer.BadParameter(f"expected one of {', '.join(LIVE)}, found {policy!r}", param_hint="--policy")
    if keep_open and live:
        raise typer.BadParameter("a live run always leaves its windows open", param_hint="--keep-open")
    asked = _settings(settings or [])

    def work() -> int:
        from windrow.serving import run as running

        return running.run(
            running.RunOptions(
                script,
                output,
                "parquet" if format is None else format.value,
                checkpoint,
                master,
                asked,
                live,
                trigger or "1 second",
                keep_open,
                policy,
                shards,
                log,
                quiet,
                as_json,
            )
        )

    _guarded(work, debug=debug, as_json=as_json)


@app.command()
def check(
    scripts: Annotated[list[str], typer.Argument(metavar="SCRIPT...", help="Files of CQL; - reads stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but errors.")] = False,
    debug: Debug = False,
) -> None:
    """Parse, bind and plan every statement, and tell all errors at once; starts no Spark and reads no data.

    \b
    windrow check script.cql
    script.cql: 3 streams, 240 queries in 4 share groups

    A query that is good CQL, but that the engine cannot run yet, is an error too. A path with nothing at it and a
    format that only a connector can have are warnings. Exit codes: 0 good, 2 some error.
    """

    def work() -> int:
        from windrow.serving.check import check as check_script
        from windrow.serving.terminal import note, tell_faults

        results = [check_script(path) for path in scripts]
        if as_json:
            record = {"good": all(one.good for one in results), "scripts": [one.record() for one in results]}
            typer.echo(json.dumps(record, ensure_ascii=False))
        for one in [] if as_json else results:
            tell_faults(one.loaded.faults, one.loaded.text)
            for line in one.unchecked_lines:
                note(f"{one.loaded.file}: {line}")
            for doubt in [] if quiet else one.doubts:
                note(f"{one.loaded.file}: warning: {doubt}")
            count = len(one.loaded.faults)
            if count:
                note(f"{one.loaded.file}: {count} error{'s' * (count > 1)}")
            elif not quiet:
                typer.echo(f"{one.loaded.file}: {one.sentence}")
        return 0 if all(one.good for one in results) else BAD_SCRIPT

    _guarded(work, debug=debug, as_json=as_json)


@app.command()
def explain(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A file of CQL statements; - reads stdin.")],
    queries: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[QUERY]...", help="Names of queries; all when left out."),
    ] = None,
    format: Annotated[PlanFormat, typer.Option("--format", help="How to show the plans.")] = PlanFormat.text,
    debug: Debug = False,
) -> None:
    """Show how queries are run: the plan, its update patterns, panes and synopses, and who shares them.

    \b
    windrow explain script.cql
    windrow explain script.cql busy --format mermaid

    Starts no Spark and reads no data. Exit codes: 0 good, 2 a bad script or an unknown query.
    """

    def work() -> int:
        import windrow
        from windrow.serving.explain import explain_queries
        from windrow.serving.faults import fault_of
        from windrow.serving.script import load_file
        from windrow.serving.terminal import tell_faults

        db = windrow.connect()
        loaded = load_file(db, script)
        if loaded.faults:
            tell_faults(loaded.faults, loaded.text)
            return BAD_SCRIPT
        try:
            typer.echo(explain_queries(db, queries or [], format.value))
        except windrow.CatalogError as error:
            tell_faults([fault_of(error)])
            return BAD_SCRIPT
        return 0

    _guarded(work, debug=debug)


@app.command()
def demo(
    rows: Annotated[int, typer.Option("--rows", min=1_000, help="Packets in the stream.")] = 3_000_000,
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where everything goes.")] = Path(
        "build/demo"
    ),
    queries: Annotated[int, typer.Option("--queries", min=1, max=2_000, help="How many are registered.")] = 240,
    master: Master = None,
    debug: Debug = False,
) -> None:
    """Write a stream of simulated IP packets, run 240 queries over it, and show what they answer.

    \b
    windrow demo
    windrow demo --rows 300000 --queries 60 --dir /tmp/demo

    The script and the answers stay in DIR, to look at and to change.
    """

    def work() -> int:
        from windrow.serving.demo import DemoOptions, run_demo

        return run_demo(DemoOptions(directory, rows, queries, master))

    _guarded(work, debug=debug)


def _settings(given: list[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    for text, (key, equals, _) in zip(given, pairs, strict=True):
        if not key.strip() or not equals:
            raise typer.BadParameter(
                f"expected key=value, such as spark.sql.shuffle.partitions=4; found {text!r}", param_hint="--set"
            )
    return {key.strip(): value for key, _, value in pairs}


def _guarded(work: Callable[[], int], *, debug: bool, as_json: bool = False) -> None:
    """Run a command's work and exit with its code; an error is one message, with its traceback only for --debug."""
    try:
        code = work()
    except KeyboardInterrupt:
        typer.echo("stopped before the run began", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe (head, say) has left; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
        from windrow.errors import Error
        from windrow.serving.faults import Fault, fault_of
        from windrow.serving.run import tell_errors

        fault = fault_of(error)
        if not isinstance(error, Error | OSError):
            more = "" if debug else "; --debug shows where"
            fault = Fault(fault.type, f"unexpected {fault.type}: {fault.message}{more}")
        tell_errors([fault], as_json=as_json)
        code = FAILED
    raise typer.Exit(code)
