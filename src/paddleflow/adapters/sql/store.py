"""The store: transactions over a database, and who hears of them.

Owns when a transaction begins and ends, the order in which threads write, and the listeners. Knows neither engine:
that is sqlite.py and postgres.py. Tables are brought up to date when a store is opened (migrate.py).
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from paddleflow.adapters.sql.access import SqlGrants, SqlUsers
from paddleflow.adapters.sql.artifacts import SqlArtifacts
from paddleflow.adapters.sql.cache import SqlCacheEntries
from paddleflow.adapters.sql.clusters import SqlClusters
from paddleflow.adapters.sql.database import Database
from paddleflow.adapters.sql.errors import translate
from paddleflow.adapters.sql.events import SqlEvents
from paddleflow.adapters.sql.filesystems import SqlFilesystems
from paddleflow.adapters.sql.flavours import SqlFlavours
from paddleflow.adapters.sql.jobs import SqlJobs
from paddleflow.adapters.sql.links import SqlCacheConfigs, SqlLinks
from paddleflow.adapters.sql.migrate import bring_up_to_date
from paddleflow.adapters.sql.mounts import SqlCacheReports, SqlMounts
from paddleflow.adapters.sql.numbers import SqlNumbers
from paddleflow.adapters.sql.pipelines import SqlPipelines
from paddleflow.adapters.sql.queues import SqlQueues
from paddleflow.adapters.sql.receipts import SqlLeases, SqlReceipts
from paddleflow.adapters.sql.remains import SqlRemains, SqlRunRemains
from paddleflow.adapters.sql.runs import SqlRuns
from paddleflow.adapters.sql.schedules import SqlSchedules
from paddleflow.adapters.sql.session import Connection, Session
from paddleflow.adapters.sql.snapshots import SqlSnapshots
from paddleflow.adapters.sql.sqlite import SqliteDatabase
from paddleflow.domain.errors import Invalid, Unavailable
from paddleflow.domain.events import EventKind
from paddleflow.ports.store import CommitListener

_log = logging.getLogger(__name__)
_CHECK_LEASE = "store-check"
_CHECKED_AT = datetime(1970, 1, 1, tzinfo=UTC)


class SqlUnitOfWork:
    """The repositories of one transaction, made when asked for."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def users(self) -> SqlUsers:
        return SqlUsers(self._session)

    @property
    def grants(self) -> SqlGrants:
        return SqlGrants(self._session)

    @property
    def flavours(self) -> SqlFlavours:
        return SqlFlavours(self._session)

    @property
    def clusters(self) -> SqlClusters:
        return SqlClusters(self._session)

    @property
    def queues(self) -> SqlQueues:
        return SqlQueues(self._session)

    @property
    def filesystems(self) -> SqlFilesystems:
        return SqlFilesystems(self._session)

    @property
    def links(self) -> SqlLinks:
        return SqlLinks(self._session)

    @property
    def cache_configs(self) -> SqlCacheConfigs:
        return SqlCacheConfigs(self._session)

    @property
    def mounts(self) -> SqlMounts:
        return SqlMounts(self._session)

    @property
    def cache_reports(self) -> SqlCacheReports:
        return SqlCacheReports(self._session)

    @property
    def snapshots(self) -> SqlSnapshots:
        return SqlSnapshots(self._session)

    @property
    def jobs(self) -> SqlJobs:
        return SqlJobs(self._session)

    @property
    def remains(self) -> SqlRemains:
        return SqlRemains(self._session)

    @property
    def events(self) -> SqlEvents:
        return SqlEvents(self._session)

    @property
    def runs(self) -> SqlRuns:
        return SqlRuns(self._session)

    @property
    def cache(self) -> SqlCacheEntries:
        return SqlCacheEntries(self._session)

    @property
    def artifacts(self) -> SqlArtifacts:
        return SqlArtifacts(self._session)

    @property
    def run_remains(self) -> SqlRunRemains:
        return SqlRunRemains(self._session)

    @property
    def pipelines(self) -> SqlPipelines:
        return SqlPipelines(self._session)

    @property
    def schedules(self) -> SqlSchedules:
        return SqlSchedules(self._session)

    @property
    def numbers(self) -> SqlNumbers:
        return SqlNumbers(self._session)

    @property
    def receipts(self) -> SqlReceipts:
        return SqlReceipts(self._session)

    @property
    def leases(self) -> SqlLeases:
        return SqlLeases(self._session)


def _open_database(url: str, busy_timeout_s: float) -> Database:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise Invalid("the database url is malformed; write sqlite:///FILE or postgresql://USER@HOST/NAME") from error
    engine = parsed.get_backend_name()
    if engine == "sqlite":
        return SqliteDatabase(parsed, busy_timeout_s=busy_timeout_s)
    if engine not in ("postgresql", "postgres"):
        raise Invalid(f"[{engine}] is not a database this product knows; use sqlite or postgresql")
    try:
        # Only now: an embedded server has no PostgreSQL driver installed, and need not load one.
        from paddleflow.adapters.sql.postgres import PostgresDatabase  # noqa: PLC0415
    except ImportError as error:
        raise Invalid("the PostgreSQL driver is missing; install paddleflow[postgres]") from error
    return PostgresDatabase(parsed, busy_timeout_s=busy_timeout_s)


class SqlStore:
    """``ports.store.Store`` on SQLite (``sqlite:////var/lib/paddleflow.db``) or PostgreSQL (``postgresql://…``)."""

    def __init__(self, url: str, *, busy_timeout_s: float = 5.0) -> None:
        """``busy_timeout_s``: how long a writer waits for others, and a caller for a connection."""
        self._busy_timeout_s = busy_timeout_s
        self._database = _open_database(url, busy_timeout_s)
        self._driver = self._database.driver
        self._one_writer = threading.Lock()
        self._listeners: tuple[CommitListener, ...] = ()
        self._holder = uuid.uuid4().hex
        try:
            bring_up_to_date(self._database)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def write(self) -> Iterator[SqlUnitOfWork]:
        if not self._one_writer.acquire(timeout=self._busy_timeout_s):
            raise Unavailable("the database is busy: another write transaction has not ended")
        database = self._database
        try:
            try:
                connection = database.begin_write()
            except self._driver.errors as error:
                raise translate(error) from error
            session = Session(connection, self._driver, writable=True)
            try:
                yield SqlUnitOfWork(session)
                self._commit(session, connection)
            except BaseException:
                database.rollback(connection)
                raise
        finally:
            self._one_writer.release()
        if session.appended:
            self._tell_listeners(frozenset(session.appended))

    def _commit(self, session: Session, connection: Connection) -> None:
        if session.failure is not None:
            raise session.failure
        try:
            self._database.commit(connection, appended_events=bool(session.appended))
        except self._driver.errors as error:
            raise translate(error) from error

    @contextmanager
    def read(self) -> Iterator[SqlUnitOfWork]:
        try:
            connection = self._database.begin_read()
        except self._driver.errors as error:
            raise translate(error) from error
        try:
            yield SqlUnitOfWork(Session(connection, self._driver, writable=False))
        finally:
            self._database.end_read(connection)

    def on_commit(self, listener: CommitListener) -> None:
        first = not self._listeners
        self._listeners = (*self._listeners, listener)
        if first:
            self._database.on_foreign_commit(lambda: self._tell_listeners(None))

    def _tell_listeners(self, kinds: frozenset[EventKind] | None) -> None:
        for listener in self._listeners:
            try:
                listener(kinds)
            except Exception:  # noqa: BLE001
                # The commit is done and the other listeners have a right to hear of it.
                _log.exception("a listener of the store failed")

    def check(self) -> None:
        with self.write() as unit:
            unit.leases.acquire(_CHECK_LEASE, self._holder, _CHECKED_AT, 0)

    def close(self) -> None:
        """Lets a write transaction under way end first, if it does so in time."""
        ended = self._one_writer.acquire(timeout=self._busy_timeout_s)
        self._database.close()
        if ended:
            self._one_writer.release()
