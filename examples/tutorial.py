"""Windrow as a library, step by step, on the packets of `windrow demo`.

    windrow demo                      # writes build/demo/packets (or run `make demo`)
    python examples/tutorial.py

Give another directory of such packets as the first argument.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import windrow

DECLARATION = """
    CREATE STREAM packets
      (ts TIMESTAMP, src STRING, dst STRING, sport INT, dport INT, proto STRING, length INT, flags STRING)
      TIME ts LATENESS 2 SECONDS
      USING parquet OPTIONS (path '{path}', maxFilesPerTrigger 3)
"""
BUSY = """
    SELECT src, SUM(length) AS bytes, COUNT(*) AS packets
    FROM packets [RANGE 5 MIN SLIDE 1 MIN]
    GROUP BY src ORDER BY bytes DESC LIMIT 3
"""
LOAD = "SELECT COUNT(*) AS packets, SUM(length) AS bytes FROM packets [RANGE {range} SLIDE 30 SECONDS]"
TOP = "SELECT src, SUM(length) AS bytes FROM packets [RANGE 2 MIN] GROUP BY src ORDER BY bytes DESC LIMIT 1"


def step(title: str) -> None:
    """Say what comes next."""
    print(f"\n── {title} ──")


def replay(packets: Path) -> None:
    """Register queries, look at their plans, run them, read the answers."""
    step("1. Connect, and declare the stream. Nothing is read yet")
    db = windrow.connect()
    db.execute(DECLARATION.format(path=packets))
    print(db.execute("SHOW STREAMS").to_pylist())

    step("2. Register queries: a handle for each")
    busy = db.query(BUSY, name="busy")
    loads = [db.query(LOAD.format(range=f"{minutes} MIN"), name=f"load_{minutes}") for minutes in (1, 5, 10)]
    print([query.name for query in db.queries()])

    step("3. EXPLAIN tells the plan, and who shares what: the three loads use the same panes")
    print(loads[0].explain())

    step("4. Run: every source to its end, every answer at exactly its due time")
    summary = db.run()
    progress = summary.progress
    print(f"{progress.rows:,} rows in {progress.seconds:.1f} s, {progress.answers:,} rows of answers")

    step("5. Answers are Arrow tables, so they are pandas at once: _time, then the select list")
    print(busy.answers().to_pandas().tail(3).to_string(index=False))
    print(loads[1].answers().to_pandas().describe().loc[["min", "max"], ["packets", "bytes"]])

    step("6. The latest answer is also a view in Spark, for SQL and joins with other data")
    db.sql_view("busy").show()


def restart(packets: Path, state: Path) -> None:
    """A checkpoint: what was done is not done again, also after a crash."""
    step("7. With a checkpoint, a run that was interrupted goes on where it was")
    for attempt in ("first", "second"):
        db = windrow.connect()
        db.execute(DECLARATION.format(path=packets))
        db.query(BUSY, name="busy")
        # finish=False: the directory may get more files, so the last windows stay open.
        summary = db.run(checkpoint=state / "checkpoint", output=state / "answers", finish=False)
        print(
            f"{attempt} run: {summary.progress.steps} micro-batches, resumed: {', '.join(summary.resumed) or 'nothing'}"
        )


def live(packets: Path) -> None:
    """Follow a stream; queries come and go meanwhile."""
    step("8. Live: start, look, add a query, ask a question, stop")
    db = windrow.connect()
    db.execute(DECLARATION.format(path=packets))
    busy = db.query(BUSY, name="busy")
    db.start(trigger="1 second")
    # An answer comes when the watermark passes its due time; a stream shorter than a minute has none here.
    until = time.monotonic() + 60
    while not busy.answers().num_rows and time.monotonic() < until:
        time.sleep(0.5)
    print("the first answers are there:", busy.answers().slice(0, 1).to_pylist())
    db.query(LOAD.format(range="2 MIN"), name="later")
    time.sleep(2)
    print("the busiest of the last two minutes:", db.ask(TOP).to_pylist())
    summary = db.stop()
    print(
        f"stopped after {summary.progress.rows:,} rows; {db.metrics()['queries']['later']['answers']} answers of later"
    )


def main() -> None:
    """All steps."""
    packets = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo/packets")
    if not packets.is_dir():
        sys.exit(f"there are no packets in {packets}; write them with: windrow demo")
    replay(packets)
    with tempfile.TemporaryDirectory() as state:
        restart(packets, Path(state))
    live(packets)


if __name__ == "__main__":
    main()
