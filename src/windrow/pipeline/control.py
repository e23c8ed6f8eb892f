"""A database's way to Spark: the session, the one run that may be going on, and views of the latest answers."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.engine import Engine
from windrow.errors import SetupError, StateError
from windrow.language.catalog import Catalog, Relation
from windrow.live import LiveSchedule
from windrow.pipeline.checkpoint import Checkpoint
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.host import Host
from windrow.pipeline.launch import Launched, Request, Wanted, check_policy, launch
from windrow.pipeline.package import missing, ship
from windrow.pipeline.session import start_session, stop_session
from windrow.pipeline.sinks import SinkSpec
from windrow.pipeline.sources import read_relation
from windrow.progress import Progress, Summary
from windrow.running import Registered
from windrow.scheduling.policy import EXACT
from windrow.state.choice import Strategy


class Home(Protocol):
    """What a run needs of the database that it belongs to."""

    @property
    def catalog(self) -> Catalog:
        """What is declared."""

    @property
    def turn(self) -> RLock:
        """Whoever has it may use the rest."""

    @property
    def frames(self) -> dict[str, Any]:
        """Streams that are DataFrames of the user."""

    @property
    def engine(self) -> Engine:
        """Where the queries live."""

    def wanted(self) -> list[Wanted]:
        """The registered queries."""

    def attach(self, engine: Engine, queries: Mapping[str, Registered]) -> None:
        """Go on with the engine of a recovered run."""


_USERS: set[int] = set()
"""The controls of this process that use the Spark that was started here; the last one to close stops it."""


class Control:
    """Starts Spark when it is first needed; runs, one at a time."""

    def __init__(
        self,
        home: Home,
        *,
        spark: SparkSession | None = None,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        log: str | Path | None = None,
    ) -> None:
        self._home = home
        self._given = spark
        self._spark = spark
        self._shipped = False
        self._master, self._settings, self._log = master, settings, log
        self._launched: Launched | None = None
        self._earlier: Host | None = None
        self._failure: BaseException | None = None
        """Of the last run."""
        self.schedule: LiveSchedule | None = None
        """Of the run that goes on, or of the last one, if that is live and not exact."""
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._closed = False
        self._views: set[str] = set()
        """Queries whose latest answer is a view."""

    @property
    def spark(self) -> SparkSession:
        """The session; a local one is started unless one was given."""
        if self._spark is None:
            log = None if self._log is None else Path(self._log)
            self._spark = start_session(self._master, self._settings, log)
            _USERS.add(id(self))
        if not self._shipped:
            if ship(self._spark) is not None:
                lacking = missing(self._spark)
                if lacking is not None:
                    raise SetupError(lacking)
            self._shipped = True
        return self._spark

    # ---- runs -----------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether a run is going on."""
        return self._launched is not None

    def replay(self, request: Request, *, finish: bool) -> Summary:
        """Read every source to its end; Ctrl-C stops cleanly, so that a checkpointed run can go on later."""
        launched = self._launch(request)
        try:
            launched.run.start()
            launched.run.wait()
        except KeyboardInterrupt:
            self._close(launched, finish=False)
            raise
        except BaseException:
            self._close(launched, finish=False, failed=True)
            raise
        return self._close(launched, finish=finish)

    def start(self, request: Request) -> None:
        """Begin a live run."""
        launched = self._launch(request)
        try:
            launched.run.start()
        except BaseException:
            self._close(launched, finish=False, failed=True)
            raise

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a live run to end by itself or fail."""
        launched = self._going()
        launched.run.require_outside()
        try:
            return launched.run.wait(timeout)
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._close(launched, finish=False, failed=True)
            raise

    def stop(self) -> Summary:
        """End a live run cleanly."""
        launched = self._going()
        launched.run.require_outside()
        try:
            launched.run.wait(0.0)  # what went wrong is raised here, not swallowed
        except BaseException:
            self._close(launched, finish=False, failed=True)
            raise
        return self._close(launched, finish=False)

    def _going(self) -> Launched:
        if self._launched is None:
            raise StateError("no run is going on; start one with db.start(…)")
        return self._launched

    @property
    def failure(self) -> BaseException | None:
        """What went wrong in the run that goes on, or in the last one."""
        return self._failure if self._launched is None else self._launched.run.failure

    def _healthy(self) -> Launched:
        """The run that goes on, if it has not failed: nothing would come of a change of one that has."""
        launched = self._going()
        if launched.run.failure is not None:
            raise StateError(
                f"the run has failed, and nothing is read any more ({launched.run.failure}); end it with db.stop() or "
                "db.wait(), which raises the error"
            )
        return launched

    def _launch(self, request: Request) -> Launched:
        self._require_idle()
        if request.checkpoint is not None and self._spark is None and Path(request.checkpoint).exists():
            Checkpoint.open(request.checkpoint).close()  # what is wrong with it is said before Spark takes its time
        if request.progress is not None and self._spark is None:
            request.progress(Progress("starting Spark"))
        home, spark = self._home, self.spark
        with home.turn:
            self._require_idle()  # another thread may have come first
            if self._scratch is None:
                self._scratch = tempfile.TemporaryDirectory(prefix="windrow-", ignore_cleanup_errors=True)
            launched = launch(
                spark, home.engine, home.catalog, home.frames, home.wanted(), home.turn, Path(self._scratch.name),
                self._earlier, request, self._refresh_views, self.read_relation,
            )  # fmt: skip
            launched.host.catalog = home.catalog
            running = {name: hosted.running for name, hosted in launched.host.queries.items()}
            home.attach(launched.host.engine, running)
            self._launched = launched
            self.schedule = launched.host.schedule
        return launched

    def _require_idle(self) -> None:
        if self._launched is not None:
            raise StateError("a run is going on already; stop it first with db.stop()")
        if self._closed and self._earlier is not None and self._earlier.checkpoint is None and self._earlier.done:
            raise StateError(
                "this database was closed, and with it went the notes of what its runs have read; start with a new "
                "windrow.connect(), and with a checkpoint if it shall go on later"
            )

    def _close(self, launched: Launched, *, finish: bool, failed: bool = False) -> Summary:
        """End a run; several threads may ask for it, and one of them does it."""
        finish = finish and not launched.run.stopped
        launched.run.halt()
        if not failed and not finish:
            launched.run.settle()
        with self._home.turn:  # to the end: a query that comes now belongs to the run, or comes after it
            if self._launched is launched:
                try:
                    launched.run.close(finish=finish, failed=failed)
                finally:
                    self._launched, self._earlier, self._failure = None, launched.host, launched.run.failure
                    if launched.host.schedule is not None:
                        launched.host.schedule.close()
                    self.schedule = launched.host.schedule
        return launched.run.summary(
            ended=launched.host.finished,
            resumed=tuple(launched.found.resumed),
            afresh=tuple(launched.found.afresh),
        )

    # ---- while it runs --------------------------------------------------------------------------------------------

    def add(self, name: str, text: str, into: SinkSpec | None, strategy: Strategy) -> Registered:
        """Register a query in the run that goes on."""
        launched = self._healthy()
        try:
            return launched.host.add(QueryDefinition(name, text, launched.outputs.resolve(name, into), strategy))
        except BaseException:
            if name.lower() in launched.host.queries:  # its sink could not be opened
                launched.host.drop(name)
            raise

    def set_policy(self, policy: str) -> None:
        """Schedule by another policy from now on."""
        check_policy(policy)
        schedule = self._healthy().host.schedule
        if schedule is None or policy == EXACT:
            raise StateError(
                f"the policy can be changed between those of a live run, not from or to {EXACT}; stop the run, and "
                "start it with the other policy"
            )
        with self._home.turn:
            schedule.set_policy(policy)

    def drop(self, name: str) -> None:
        """Drop a query of the run that goes on."""
        self._healthy().host.drop(name)

    def load(self, relation: Relation, rows: pa.Table) -> None:
        """The first rows of a relation, in the run that goes on."""
        self._healthy().host.load(relation, rows)

    def update(self, relation: Relation, came: Any, gone: Any, time: int | None) -> int | None:
        """Rows of a relation come and go in the run that goes on."""
        return self._healthy().host.update(relation, came, gone, time)

    def forget(self, stream: str) -> None:
        """A stream was dropped: one of the same name that is declared later is read from its start."""
        if self._earlier is not None:
            self._earlier.done.pop(stream.lower(), None)
            self._earlier.intakes.pop(stream.lower(), None)

    # ---- what else Spark gives ------------------------------------------------------------------------------------

    def view(self, name: str, running: Registered) -> DataFrame:
        """The latest answer as a temporary view, which follows the run."""
        self._views.add(name)
        return self._refresh(name, running)

    def _refresh_views(self) -> None:
        if self._views:
            # Asked for anew: a query may be dropped, and a recovered run has its own.
            registered = {one.name: one.running for one in self._home.wanted()}
            self._views &= registered.keys()
            for name in self._views:
                self._refresh(name, registered[name])

    def _refresh(self, name: str, running: Registered) -> DataFrame:
        frame = self.spark.createDataFrame(running.newest())
        frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
        return frame

    def read_relation(self, relation: Relation) -> pa.Table:
        """The rows of a relation with a source."""
        return read_relation(self.spark, relation)

    def close(self) -> None:
        """Stop the run, and Spark if it was started here; what went wrong in the run is raised at the end."""
        if self._launched is not None:
            self._launched.run.require_outside()
        try:
            if self._launched is not None:
                self.stop()
        finally:
            if self._spark is not None and self._given is None:
                _USERS.discard(id(self))
                if not _USERS:
                    stop_session(self._spark)
                self._spark = None
            if self._scratch is not None:
                self._scratch.cleanup()
                self._scratch, self._closed = None, True
