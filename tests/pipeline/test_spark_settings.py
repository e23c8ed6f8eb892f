"""Defaults follow the master; the user's settings win."""

from __future__ import annotations

import sys

import pytest

from windrow.pipeline.master import parse_master
from windrow.pipeline.spark_settings import PACKAGE, configuration, worker_python


def test_a_local_spark_listens_on_loopback_and_preloads() -> None:
    chosen = configuration(parse_master("local[3]"), {}, "an app")
    assert chosen["spark.master"] == "local[3]"
    assert chosen["spark.app.name"] == "an app"
    assert chosen["spark.driver.host"] == chosen["spark.driver.bindAddress"] == "127.0.0.1"
    assert chosen["spark.python.daemon.module"] == "windrow.pipeline.daemon"
    assert chosen["spark.sql.shuffle.partitions"] == "3"


def test_a_cluster_decides_about_its_network_and_its_workers() -> None:
    far = configuration(parse_master("spark://far:7077"), {}, "windrow")
    near = configuration(parse_master("spark://localhost:7077"), {}, "windrow")
    assert "spark.driver.host" not in far
    assert near["spark.driver.host"] == "127.0.0.1"
    for chosen in (far, near):
        assert "spark.python.daemon.module" not in chosen
        assert "spark.sql.shuffle.partitions" not in chosen


def test_settings_of_the_user_win() -> None:
    given = {"spark.driver.memory": "9g", "spark.driver.host": "10.0.0.1", "spark.app.name": "hers"}
    chosen = configuration(parse_master("local[1]"), given, "windrow")
    assert {key: chosen[key] for key in given} == given
    assert "spark.driver.bindAddress" not in chosen


def test_a_python_path_of_the_user_is_kept() -> None:
    given = {"spark.executorEnv.PYTHONPATH": "/hers"}
    path = configuration(parse_master("local[1]"), given, "windrow")["spark.executorEnv.PYTHONPATH"].split(":")
    assert path[-1] == "/hers"
    assert path[:-1] in ([], [str(PACKAGE.parent)])


def test_the_python_of_the_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, local = parse_master("spark://far:7077"), parse_master("local[1]")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_python(cluster, {}) == sys.executable
    assert worker_python(cluster, {"spark.pyspark.python": "/b/python"}) == "/b/python"
    monkeypatch.setenv("PYSPARK_PYTHON", "/a/python")
    assert worker_python(cluster, {}) == "/a/python"
    assert worker_python(local, {}) == sys.executable
