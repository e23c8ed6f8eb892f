"""The strategies agree on every question (each run asserts that), and keep what their update patterns say."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.update_patterns.__main__ import run
from benchmarks.update_patterns.maintained import catalog
from benchmarks.update_patterns.measured import measured, once
from benchmarks.update_patterns.queries import QUESTIONS, ZEEK
from benchmarks.update_patterns.trace import COLUMNS, generated, zeek

WINDOWS = [100, 1000]
EPOCHS = {1: 2, 100: 2}


@pytest.mark.parametrize("name", QUESTIONS)
def test_all_strategies_have_the_same_answer(name: str) -> None:
    trace = generated(3000, 3)
    found = measured(QUESTIONS[name], trace, catalog(COLUMNS, trace.links), WINDOWS, EPOCHS, turns=1)
    upa, nt = (found.points[way][-1] for way in ("upa", "nt"))
    assert upa.seconds.keys() == EPOCHS.keys()
    assert upa.rows <= nt.rows
    if name == "query2_src":
        # δ* keeps at most two rows for each of the answer, negative tuples need the whole window.
        assert upa.rows <= 2 * upa.answer[0]
        assert nt.rows > WINDOWS[-1]
        assert found.points["direct"][-1].rows > WINDOWS[-1]


def test_telnet_is_much_more_frequent_than_ftp() -> None:
    trace = generated(3000, 3)
    known = catalog(COLUMNS, trace.links)
    ftp, telnet = (
        once(QUESTIONS[name].ways["upa"], trace, known, 2000, {100: 1}).answer[0]
        for name in ("query1_ftp", "query1_telnet")
    )
    assert 4 * ftp < telnet < 30 * ftp


def test_logs_of_zeek_are_two_links(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, more in (("dns", {"proto": ["udp"] * 400}), ("ssl", {})):
        times = [datetime(2018, 3, 24) + timedelta(milliseconds=int(one)) for one in rng.integers(0, 3000, 400)]
        hosts = {side: [f"10.0.0.{one}" for one in rng.integers(0, 9, 400)] for side in ("src", "dst")}
        pq.write_table(
            pa.table({"ts": pa.array(times, pa.timestamp("us")), **hosts, **more}), tmp_path / f"zeek-{name}.parquet"
        )
    trace = zeek(tmp_path)
    known = catalog(COLUMNS, trace.links)
    for question in ZEEK.values():
        found = measured(question, trace, known, [1000], {1: 2, 100: 1}, turns=1)
        assert found.points["upa"][0].answer[0] > 0 or question is ZEEK["zeek_negation"]


def test_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(quick=True, plots=tmp_path, only=["query2_src"])
    for name in ("time", "ratio", "space"):
        assert (tmp_path / f"patterns_{name}.png").stat().st_size > 1000
    printed = capsys.readouterr().out
    assert "fewer rows than nt" in printed
    assert "times the time of upa" in printed
