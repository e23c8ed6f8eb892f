"""A session starts quietly, ends without a trace, and never takes what belongs to the user.

Every test runs in a process of its own: there is one Spark per process.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.script import run_script
from windrow.errors import SetupError
from windrow.pipeline.session import start_session

SMALL = {"spark.driver.memory": "512m"}

LIFE = """
import logging, os, signal, sys
from pathlib import Path
from pyspark.sql import SparkSession
from windrow.errors import Error, SetupError, StateError
from windrow.pipeline.session import log_path, start_session, stop_session

logging.basicConfig(level=logging.DEBUG, stream=open(os.devnull, "w"))

def refusal(work):
    try:
        work()
    except Error as error:
        return f"{type(error).__name__}: {error}"

def listening(pid):
    inodes = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return sorted({row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes})

before = (dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT))
"""


def test_a_session_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "a dir" / "the $log.txt"
    told = run_script(
        LIFE
        + """
spark = start_session("local[2]", SETTINGS, Path(LOG))
java = spark.sparkContext._gateway.proc
conf = dict(spark.sparkContext.getConf().getAll())

def work(batches):
    import os, sys
    import pyarrow as pa
    loaded = "windrow.pipeline.worker" in sys.modules and "numba" in sys.modules
    threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
    print("a word from a worker")
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "loaded": [loaded], "threads": [threads]})

schema = "rows long, loaded boolean, threads long"
rows = spark.range(10, numPartitions=2).mapInArrow(work, schema).toArrow().to_pylist()
failures = 0
for failing in (lambda: spark.range(3).selectExpr("raise_error('oh no')").collect(),
                lambda: spark.sql("SELECT no_such_column"),
                lambda: spark.range(3).mapInArrow(lambda batches: 1 / 0, "a long").collect()):
    try:
        failing()
    except Exception:
        failures += 1

same = start_session() is spark and start_session("local[2]", SETTINGS) is spark
other_master = refusal(lambda: start_session("local[1]"))
other_setting = refusal(lambda: start_session(settings={"spark.sql.shuffle.partitions": "7"}))
addresses = listening(java.pid) if os.path.isdir("/proc") else []
first_log = str(log_path(spark))
stop_session(spark)
stop_session(spark)
gone = java.poll() is not None
environment = {key: os.environ.get(key) for key in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
undone = (environment == {key: before[0].get(key) for key in environment}, sys.path == before[1],
          signal.getsignal(signal.SIGINT) == before[2])

spark = start_session("local[1]", {**SETTINGS, "spark.sql.shuffle.partitions": "5"})
again = spark.range(100, numPartitions=2).mapInArrow(lambda batches: batches, "id long").count()
second = (spark.conf.get("spark.sql.shuffle.partitions"), spark.sparkContext.master)
second_log = str(log_path(spark))
spark.sparkContext._gateway.proc.kill()  # the worst end: Java dies under us
spark.sparkContext._gateway.proc.wait()
stop_session(spark)
report(conf=conf, rows=rows, failures=failures, same=same, other_master=other_master, other_setting=other_setting,
       addresses=addresses, first_log=first_log, gone=gone, undone=undone, again=again, second=second,
       second_log=second_log)
""",
        SETTINGS=SMALL,
        LOG=str(log),
    )
    assert told["rows"] == [{"rows": 5, "loaded": True, "threads": 1}] * 2
    assert told["failures"] == 3
    assert told["same"]
    assert "SetupError: Spark runs in this process already" in told["other_master"]
    assert "the master is local[2], not local[1]" in told["other_master"]
    assert "spark.sql.shuffle.partitions is 2, not 7" in told["other_setting"]
    assert told["gone"]
    assert told["undone"] == [True, True, True]
    for address in told["addresses"]:
        # 127.0.0.1 as the kernel writes it, also inside an IPv6 address.
        assert address.endswith("0100007F"), told["addresses"]
    assert told["conf"]["spark.sql.session.timeZone"] == "UTC"
    assert told["conf"]["spark.ui.enabled"] == "false"
    assert told["conf"]["spark.driver.memory"] == "512m"
    assert told["first_log"] == str(log)
    text = log.read_text()
    assert "oh no" in text
    assert "ZeroDivisionError" in text
    assert "a word from a worker" in text
    assert told["again"] == 100
    assert told["second"] == ["5", "local[1]"]
    assert Path(told["second_log"]).exists()


@pytest.mark.slow
def test_a_session_of_the_user_is_left_alone() -> None:
    run_script(
        LIFE
        + """
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
text = refusal(lambda: start_session("local[1]"))
assert text.startswith("SetupError") and "connect(spark=...)" in text, text
text = refusal(lambda: stop_session(spark))
assert text.startswith("StateError") and "its own stop()" in text, text
assert log_path(spark) is None
assert spark.range(3).count() == 3
gateway = spark.sparkContext._gateway
spark.stop()

ours = start_session("local[1]", SETTINGS)
assert ours.sparkContext._gateway is not gateway
assert ours.conf.get("spark.driver.memory") == "512m"
ours.stop()  # not the way we ask for, but a user may know no other
theirs = SparkSession.builder.master("local[1]").getOrCreate()  # on the Java process that is still there
assert refusal(lambda: start_session("local[2]", SETTINGS)).startswith("SetupError")
assert theirs.range(6).count() == 6
theirs.stop()
ours = start_session("local[2]", SETTINGS)
assert ours.range(3).count() == 3
stop_session(ours)
again = SparkSession.builder.master("local[1]").getOrCreate()
assert again.sparkContext._gateway is gateway
assert again.range(4).count() == 4
again.stop()
""",
        quiet=False,
        SETTINGS=SMALL,
    )


def test_a_java_that_does_not_start_is_explained(tmp_path: Path) -> None:
    told = run_script(
        LIFE
        + """
log = Path(LOG)
texts = [refusal(lambda: start_session("local[1]", {"spark.driver.memory": "banana"}, log)),
         refusal(lambda: start_session("local[1]", {**SETTINGS, "spark.driver.port": "many"}, log))]
os.environ["PYSPARK_GATEWAY_PORT"] = "1"
texts.append(refusal(lambda: start_session("local[1]")))
del os.environ["PYSPARK_GATEWAY_PORT"]
texts.append(refusal(lambda: start_session("local[1]", log=Path(LOG, "below a file"))))
spark = start_session("local[1]", SETTINGS)  # a failure leaves nothing that disturbs the next try
assert spark.range(5).count() == 5
stop_session(spark)
report(texts=texts)
""",
        SETTINGS=SMALL,
        LOG=str(tmp_path / "spark.log"),
    )
    memory, port, submitted, unwritable = told["texts"]
    for text in (memory, port):
        assert text.startswith("SetupError: Spark does not start on local[1]")
        assert str(tmp_path / "spark.log") in text
    assert "banana" in memory
    assert "spark.driver.port" in port
    assert "started by spark-submit" in submitted
    assert unwritable.startswith("SetupError: cannot write Spark's log")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(SetupError, match=r"starts with .spark\.., found 'driver\.memory'"):
        start_session(settings={"driver.memory": "1g"})
    with pytest.raises(SetupError, match="expected a Spark master such as"):
        start_session("foo")
    with pytest.raises(SetupError, match="given twice"):
        start_session("local[1]", {"spark.master": "local[2]"})


@pytest.mark.slow
def test_a_session_that_is_never_stopped_ends_quietly() -> None:
    told = run_script(
        LIFE
        + """
spark = start_session("local[1]", SETTINGS)
report(count=spark.range(7).count(), java=spark.sparkContext._gateway.proc.pid)
""",
        SETTINGS=SMALL,
    )
    assert told["count"] == 7
