"""A real Spark standalone cluster on loopback: one master and some workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from windrow.pipeline.java import java_home

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90


@dataclass
class Cluster:
    """Where the cluster is reached, its processes, and the directory under which executors work."""

    url: str
    master_pid: int
    worker_pids: list[int]
    directory: Path

    def executors(self) -> list[int]:
        """The Java processes that the workers have started for applications."""
        command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows = (line.split(None, 2) for line in listed.splitlines() if "ExecutorBackend" in line)
        return [int(pid) for pid, parent, _ in rows if int(parent) in self.worker_pids]


@contextlib.contextmanager
def standalone_cluster(workers: int = 2, cores: int = 1, memory: str = "600m") -> Iterator[Cluster]:
    """A cluster for the time of the `with` block; only its own processes are ended."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = _started(stack, "deploy.master.Master", common, directory / "master.log")
        url = _awaited(
            lambda: re.search(r"Starting Spark master at (spark://\S+)", _text(directory / "master.log")), master
        )[1]
        started = []
        for number in range(workers):
            options = [*common, "--cores", str(cores), "--memory", memory, "--work-dir", str(directory / f"w{number}")]
            started.append(_started(stack, "deploy.worker.Worker", [*options, url], directory / f"worker{number}.log"))
        for number, worker in enumerate(started):
            log = directory / f"worker{number}.log"
            _awaited(lambda log=log: re.search("Successfully registered with master", _text(log)), worker)
        yield Cluster(url, master.pid, [worker.pid for worker in started], directory)


def _started(stack: contextlib.ExitStack, name: str, options: list[str], log: Path) -> subprocess.Popen[bytes]:
    # Nothing of this checkout may reach the executors by way of the environment.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK"))}
    environment |= {
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.{name}", *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
        )
    stack.callback(_ended, process)
    return process


def _ended(process: subprocess.Popen[bytes]) -> None:
    # The executors of a worker are in its process group.
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def _awaited(found: Callable[[], re.Match[str] | None], process: subprocess.Popen[bytes]) -> re.Match[str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if match := found():
            return match
        assert process.poll() is None, f"a process of the cluster ended with {process.returncode}"
        time.sleep(0.1)
    raise AssertionError(f"the cluster did not start within {START_SECONDS} s")


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
