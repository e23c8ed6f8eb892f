"""A run: Spark's streaming queries bring micro-batches, the host takes them in, until the sources end or are stopped.

StreamingQuery (one per stream) ─► foreachBatch ─► pace ─► slice on executors ─► Host.take ─► progress
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event, Lock, RLock, Thread, local
from time import perf_counter, sleep
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from windrow.errors import SetupError, StateError
from windrow.pipeline.batch_files import checked_files
from windrow.pipeline.callbacks import Callbacks
from windrow.pipeline.exchange import Exchange
from windrow.pipeline.host import Host
from windrow.pipeline.micro_batch import slice_batch
from windrow.pipeline.offsets import check_offsets, forget_unbegun
from windrow.pipeline.pace import Pace
from windrow.pipeline.settled_heap import HEAP
from windrow.pipeline.shard_query import ShardQuery
from windrow.pipeline.sources import Source
from windrow.pipeline.spark_errors import FROM_SPARK, FROM_SPARK_OR_ITS_END, read_error, reading, spark_reason
from windrow.pipeline.spark_log import log_failure
from windrow.progress import OnProgress, Progress, StreamProgress, Summary
from windrow.shards.shard import Answer

FLUSH_SECONDS = 5.0
"""A replay hands its answers to the sinks this often: few large files. A live run does so at every micro-batch."""
FLUSH_ROWS = 4_000_000
"""Or when so many answer rows wait."""
LIVE_PATIENCE = 2.0
"""Seconds that a live stream waits for one that is behind; a replay waits until that one has come or has ended."""
POLL = 0.02
WORK_SECONDS = 0.02
"""How long the schedule may answer before a batch that waits is taken in."""
YIELD = 0.0002
"""Seconds between two turns of the schedule: a lock that is taken again at once leaves nobody else a chance."""
STOP_SECONDS = 2.0
"""How long a run that is stopped answers every due time that it is behind with."""
SHARDS = "the shards"
"""Stands among the names of streams, of which none has a blank."""
WATCHER_SECONDS = 5.0
"""How long the end of a query that was stopped may take to be noticed."""
_numbers = count(1)
"""Spark refuses a second query of the same name, and two databases may have streams of the same name."""


class _Stopped(Exception):
    """Raised into Spark so that a micro-batch which came after the stop is not committed."""


class Run:
    """Start it, wait for it, close it. `trigger` None is a replay, else a live run with that interval."""

    def __init__(
        self,
        spark: SparkSession,
        sources: list[Source],
        host: Host,
        turn: RLock,
        offsets: Path,
        *,
        exchange: Exchange | None = None,
        trigger: str | None = None,
        progress: OnProgress | None = None,
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.host = host
        self._shards = None if exchange is None else ShardQuery(spark, exchange, self._deliver)
        self._draining = False
        """Whether a thread that has the turn waits for the shards."""
        self._callbacks = Callbacks(spark)
        self._sources = {source.stream.name.lower(): source for source in sources}
        self._turn = turn
        self._taking = Lock()
        """One micro-batch at a time; whoever has it may wait for the turn, never the other way round."""
        self._trigger = trigger
        self._report = progress or (lambda _: None)
        self._after_step = after_step
        self._queries: dict[str, StreamingQuery] = {}
        self._failure: BaseException | None = None
        self._over: dict[str, BaseException | None] = {}
        """Queries that Spark has ended, and why if not because of the end of their input."""
        self._news = Event()
        self._watchers: list[Thread] = []
        self._due = Event()
        """There may be something to answer for the schedule."""
        self._stopping = False
        self._settled = False
        self._telling = local()
        self._pace = Pace(
            {name: source.stream.timestamps for name, source in self._sources.items()},
            host.watermark,
            None if trigger is None else LIVE_PATIENCE,
        )
        self._began: float | None = None
        self._flushed = perf_counter()
        self._steps = 0
        self._totals = {name: source.files for name, source in self._sources.items()}
        self._offset_folders = offsets

    # ---- Spark's side ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start one streaming query per source, and one for the shards."""
        if self._trigger is not None:
            HEAP.settle()
            self._settled = True
        self._tell("reading")
        if self._shards is not None:
            with reading("the shards"):
                self._watchers.append(_apart(self._watch, SHARDS, self._shards.start()))
        if self.host.schedule is not None:
            self._watchers.append(_apart(self._answer))
        for name, source in self._sources.items():
            if source.frame.isStreaming:
                self._queries[name] = self._start(name, source)
        for name, source in self._sources.items():
            if not source.frame.isStreaming:
                self._take(name, source, source.frame, 0)
                self._pace.end(name)

    def _start(self, name: str, source: Source) -> StreamingQuery:
        def on_batch(frame: DataFrame, batch: int) -> None:
            self._callbacks.note()
            try:
                self._take(name, source, frame, batch)
            except BaseException as error:
                self._fail(error)
                raise

        writer = (
            source.frame.writeStream.foreachBatch(on_batch)
            .queryName(f"windrow {source.stream.name} {next(_numbers)}")
            .option("checkpointLocation", self._offsets(name).as_uri())
        )
        if self._trigger is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=self._trigger)
        with reading(_owner(source)):
            query = writer.start()
        self._watchers.append(_apart(self._watch, name, query))
        return query

    def _watch(self, name: str, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
            self._over[name] = None
        except Exception as error:  # of the query, or of a Java process that is not there any more
            self._over[name] = error
        self._news.set()

    def _offsets(self, name: str) -> Path:
        """Where Spark notes which files and offsets belong to which micro-batch."""
        folder = self._offset_folders / self.host.intakes[name].folder
        check_offsets(folder, self.host.done.get(name, -1))
        forget_unbegun(folder)
        return folder

    def _take(self, name: str, source: Source, frame: DataFrame, batch: int) -> None:
        """One micro-batch: sliced on the executors, then taken in; only the latter needs the turn."""
        self._pace.wait(name)
        with self._taking:
            with self._turn:
                if self._stopping:
                    raise _Stopped
                if self._began is None:
                    self._began = perf_counter()
                if batch <= self.host.done.get(name, -1):
                    return  # taken in before a crash that kept Spark from noting it
                if self.host.finished:
                    raise StateError(
                        f"new data came to stream {source.stream.name}, but its run has ended: the last windows are "
                        "answered. Choose another checkpoint, and --keep-open (finish=False) for runs that go on later"
                    )
            with checked_files(source):
                if not self._slice(name, source, frame, batch):
                    # A query came or went meanwhile, and the workers did not know: now none can.
                    with self._turn:
                        self._slice(name, source, frame, batch)
        self._due.set()
        self._pace.moved(name)
        self._tell("reading")

    def _slice(self, name: str, source: Source, frame: DataFrame, batch: int) -> bool:
        """Slice a micro-batch and take it in, unless what the workers were told does not hold any more."""
        host, began = self.host, perf_counter()
        with self._turn:
            derived = host.jobs.derived(name)
            job, kept = host.jobs.of(name, derived), host.engine.flows.kept_rows(name)
            plans = [query.plan for query in host.engine.streams[name].queries.values()]
            watermark = host.watermark(name)
        table = slice_batch(source, frame, job, plans, kept, watermark)
        with self._turn:
            host.spend("executors", began)
            if not host.jobs.holds(name, job):
                return False
            sliced = host.take(name, batch, table, flush=self._flush_now(), derived=derived)
            for phase, seconds in sliced.seconds.items():
                host.phases[f"worker {phase}"] = host.phases.get(f"worker {phase}", 0.0) + seconds
            self._steps += 1
            self._after_step()
        return True

    def _answer(self) -> None:
        """Answer what is due by the schedule, beside the taking in, which never waits for long."""
        try:
            while not self._stopping:
                if self._due.wait(POLL):
                    self._due.clear()
                    self._work_off()
        except BaseException as error:
            self._fail(error)

    def _work_off(self) -> None:
        more = True
        while more:
            with self._turn:
                if self._stopping:
                    return
                more = self.host.work(WORK_SECONDS)
                if not more and self.host.outlet.waiting:
                    self.host.flush()
                    self._after_step()
            sleep(YIELD)

    def settle(self) -> None:
        """Once it is halted: answer what is due, all of it for a while, then what is late once, as of the newest state.

        The caller has not got the turn: others get it now and then.
        """
        until = perf_counter() + STOP_SECONDS
        more = True
        while more:
            with self._turn:
                if perf_counter() > until:
                    self.host.hurry()
                more = self.host.work(WORK_SECONDS)
            sleep(YIELD)

    def _deliver(self, batch: int, answers: list[Answer]) -> None:
        """What the shards said, in their own thread."""
        try:
            # Whoever drains the shards has the turn and waits for this very call.
            while not self._turn.acquire(timeout=POLL):
                if self._draining:
                    self.host.deliver(batch, answers)
                    return
            try:
                self.host.deliver(batch, answers)
                self._after_step()
            finally:
                self._turn.release()
        except BaseException as error:
            self._fail(error)
            raise

    def _drain(self) -> None:
        """Wait for the answers of the shards to all that they were told; the caller has the turn."""
        if self._shards is not None:
            self._draining = True
            try:
                _in_thread(self._shards.drain)
            except FROM_SPARK_OR_ITS_END as error:
                self._fail(read_error("the shards", error))  # unless what they said could not be taken in
            finally:
                self._draining = False
            if self._failure is not None:
                raise self._failure

    def _flush_now(self) -> bool:
        now = perf_counter()
        late = now - self._flushed >= FLUSH_SECONDS
        due = self._trigger is not None or late or self.host.outlet.waiting >= FLUSH_ROWS
        if due:
            self._flushed = now
        return due

    def _fail(self, error: BaseException) -> None:
        if self._failure is None and not isinstance(error, _Stopped):
            self._failure = error
            self._news.set()
            self._pace.release()

    # ---- the user's side ------------------------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every source has ended, and say whether that is so; what went wrong is raised."""
        self.require_outside()
        until = None if timeout is None else perf_counter() + timeout
        while True:
            self._raise_failure()
            for name in list(self._over):
                self._ended(name, self._over.pop(name))
            if not self._queries:
                return True
            if until is not None and perf_counter() >= until:
                return False
            if self._news.wait(POLL):
                self._news.clear()

    def _ended(self, name: str, problem: BaseException | None) -> None:
        self._notice(name, problem)
        self._raise_failure()
        if name == SHARDS:
            return
        self._queries.pop(name, None)  # another thread may be stopping the run
        self._pace.end(name)

    def _notice(self, name: str, problem: BaseException | None) -> None:
        if problem is not None and not self._stopping:
            owner = "the shards" if name == SHARDS else _owner(self._sources[name])
            self._fail(read_error(owner, problem))  # unless a micro-batch has told more already

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self.halt()
            failure = self._failure  # stays: every thread that waits is told
            raise read_error("the run", failure) if isinstance(failure, FROM_SPARK_OR_ITS_END) else failure

    @property
    def failure(self) -> BaseException | None:
        """What went wrong; the next one who waits for the run, or stops it, is told."""
        for name, problem in list(self._over.items()):
            self._notice(name, problem)
        return self._failure

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped it, so that the sources may have more."""
        return self._stopping

    def halt(self) -> None:
        """Stop Spark's queries; the micro-batch that is being taken in is finished first."""
        self.require_outside()
        self._pace.release()
        with self._taking, self._turn:
            self._stopping = True
        for stopping in [_apart(_stop, query) for query in list(self._queries.values())]:
            stopping.join()
        self._queries.clear()
        if self._failure is not None:
            self._end_shards()

    def _end_shards(self) -> None:
        """No more answers of the shards, and no more of Spark's threads."""
        if self._shards is not None:
            ending = _apart(self._shards.stop)
            ending.join()
        for watcher in self._watchers:
            watcher.join(WATCHER_SECONDS)
        self._callbacks.close()

    def require_outside(self) -> None:
        """Refuse what would wait for the micro-batch that waits for the caller."""
        if getattr(self._telling, "now", False):
            raise StateError(
                "the progress function of a run cannot wait for the run or stop it, because the run waits for that "
                "function; set a flag there, and call db.stop() in another thread"
            )

    def close(self, *, finish: bool, failed: bool = False) -> None:
        """Once it is halted: end the input if that is asked for, leave a snapshot for the next run."""
        with self._turn:
            try:
                if not failed:
                    if finish and not self.host.finished:
                        self._tell("ending")
                        self.host.finish([source.stream.name for source in self._sources.values()])
                    else:
                        while self.host.work(WORK_SECONDS):
                            pass
                        if self.host.outlet.waiting:
                            self.host.flush()
                    self._drain()
                    self.host.compact()
                    self._after_step()
            finally:
                self._end_shards()
                self.host.close()
                if self._settled:
                    self._settled = False
                    HEAP.release()
        if not failed:
            self._tell("done")

    def progress(self, state: str = "reading") -> Progress:
        """How far the run has come."""
        streams = tuple(self._stream_progress(name) for name in self._sources)
        answers = sum(hosted.running.answered for hosted in list(self.host.queries.values()))  # others come and go
        seconds = 0.0 if self._began is None else perf_counter() - self._began
        return Progress(state, seconds, streams, answers, self._steps)

    def _stream_progress(self, name: str) -> StreamProgress:
        running, total = self.host.engine.streams[name], self._totals[name]
        fraction = None
        if total and self._sources[name].scan == "arrow":
            fraction = min(1.0, self.host.files.get(name, 0) / total)
        return StreamProgress(
            running.stream.name,
            running.rows,
            running.late_rows,
            running.batches,
            running.watermark.value,
            running.stream.timestamps,
            fraction,
        )

    def _tell(self, state: str) -> None:
        self._telling.now = True
        try:
            self._report(self.progress(state))
        finally:
            self._telling.now = False

    def summary(self, *, ended: bool, resumed: tuple[str, ...], afresh: tuple[str, ...]) -> Summary:
        """What to say at the end."""
        hosted = list(self.host.queries.values())
        outputs = {one.definition.name: one.location for one in hosted if one.location is not None}
        outputs |= {f"late rows of {name}": place for name, place in self.host.outlet.late_outputs.items()}
        return Summary(
            self.progress("done"),
            ended,
            resumed,
            afresh,
            {one.definition.name: str(one.running.error) for one in hosted if one.running.error is not None},
            outputs,
            dict(self.host.phases),
        )


def _owner(source: Source) -> str:
    return f"stream {source.stream.name}"


def _apart(work: Callable[..., None], *arguments: Any) -> Thread:
    """Talk to Java in a thread of its own, which has a connection of its own.

    When Ctrl-C interrupts a call, its answer still comes, and the next call on that connection takes it for its own.
    """
    thread = Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _in_thread(work: Callable[[], None]) -> None:
    """The same, waited for; what goes wrong is raised here."""
    problems: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            problems.append(error)

    _apart(guarded).join()
    if problems:
        raise problems[0]


def _stop(query: StreamingQuery) -> None:
    try:
        query.stop()
    except Exception:  # whoever ended us may have ended Java before; then there is nothing to stop
        log_failure("the streaming query could not be stopped")


def check_trigger(spark: SparkSession, trigger: str) -> None:
    """Refuse a text that is no interval, as Spark reads it."""
    try:
        spark._jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(trigger)
    except FROM_SPARK as error:
        raise SetupError(
            f"trigger: expected an interval such as '1 second', found {trigger!r} ({spark_reason(error)})"
        ) from None
