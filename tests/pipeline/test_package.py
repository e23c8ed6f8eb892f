"""The package reaches the executors of a real cluster by itself, and what they lack is named."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.cluster import Cluster, standalone_cluster
from tests.pipeline.script import run_script
from windrow.pipeline.package import packed
from windrow.pipeline.spark_settings import PACKAGE

SMALL = {"spark.executor.memory": "500m", "spark.driver.memory": "512m"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with standalone_cluster() as running:
        yield running


def test_the_archive_holds_the_source_and_is_always_the_same() -> None:
    archive = packed()
    content = archive.read_bytes()
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        assert opened.read("engine.py") == (PACKAGE / "engine.py").read_bytes()
    assert "__init__.py" in names
    assert "py.typed" in names
    assert "kernels/prefix.py" in names
    assert not [name for name in names if not name.endswith((".py", "py.typed"))]
    archive.unlink()
    again = packed()
    assert again == archive
    assert again.read_bytes() == content


JOB = """
import sys
from windrow.pipeline.package import missing, ship
from windrow.pipeline.session import start_session, stop_session

spark = start_session(MASTER, {**SETTINGS, "spark.python.worker.reuse": "false"})
archive = ship(spark)
assert ship(spark) == archive

context = spark.sparkContext
lacks = {"bare": missing(spark)}
context.pythonExec = "/no/such/python"
lacks["absent"] = missing(spark)
context.pythonExec, context.pythonVer = OWN, "2.9"
lacks["other version"] = missing(spark)
context.pythonVer = "%d.%d" % sys.version_info[:2]
lacks["complete"] = missing(spark)

def work(batches):
    import os, time
    import numpy as np
    import pyarrow as pa
    import windrow
    from windrow.kernels.panes import index_panes
    for _ in batches:
        time.sleep(1)  # long enough for both executors to take a task
        index_panes(np.arange(3), 3, np.full(8, -1, dtype=np.int32), 40)
        yield pa.RecordBatch.from_pydict({
            "file": [windrow.__file__], "executor": [os.getcwd()], "worker": [os.getpid()],
            "cached": [sum(index_panes.stats.cache_hits.values())],
        })

def rows(number):
    schema = "file string, executor string, worker long, cached long"
    return spark.range(number, numPartitions=number).mapInArrow(work, schema).toArrow().to_pylist()

first, second = rows(6), rows(4)
stop_session(spark)
report(archive=str(archive), lacks=lacks, first=first, second=second)
"""


@pytest.fixture(scope="module")
def told(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one run on the cluster tells; it begins with executors whose Python has no packages."""
    bare = tmp_path_factory.mktemp("python") / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python = {"PYSPARK_PYTHON": str(bare / "bin" / "python")}
    return run_script(JOB, python, MASTER=cluster.url, SETTINGS=SMALL, OWN=sys.executable)


def test_executors_import_what_was_sent_and_keep_what_they_compile(cluster: Cluster, told: dict[str, Any]) -> None:
    assert len({row["executor"] for row in told["first"]}) == 2
    for row in told["first"] + told["second"]:
        unpacked = Path(row["executor"], "windrow")
        assert Path(row["file"]).resolve() == (unpacked / "__init__.py").resolve()
        assert unpacked.is_relative_to(cluster.directory)
    # Workers are not reused here: a later one finds the kernel that an earlier one of its executor compiled.
    warm = {row["executor"] for row in told["first"]}
    later = [row for row in told["second"] if row["executor"] in warm]
    assert later
    assert {row["worker"] for row in later}.isdisjoint(row["worker"] for row in told["first"])
    assert [row["cached"] for row in later] == [1] * len(later)


def test_nothing_is_missing_where_everything_is_installed(told: dict[str, Any]) -> None:
    assert told["lacks"]["complete"] is None


def test_packages_that_executors_lack_are_named(told: dict[str, Any]) -> None:
    text = told["lacks"]["bare"]
    for expected in ("bare/bin/python", "cannot import pyarrow, numpy, pandas, numba, sqlglot", "spark.archives"):
        assert expected in text


def test_a_python_that_executors_do_not_have_is_named(told: dict[str, Any]) -> None:
    assert told["lacks"]["absent"].startswith("the executor on 127.0.0.1 has no Python at /no/such/python.")


def test_another_python_version_on_the_executors_is_named(told: dict[str, Any]) -> None:
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    expected = f"the executor on 127.0.0.1 has Python {own}, but the driver has Python 2.9"
    assert told["lacks"]["other version"].startswith(expected)
