"""The three stores under one contract, and what is particular to each."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.adapters.memory.store import MemoryStore
from paddleflow.adapters.sql import job_pages
from paddleflow.adapters.sql.store import SqlStore
from paddleflow.domain.errors import Conflict, DiskFull, Invalid, Unavailable
from paddleflow.domain.ids import JobId
from paddleflow.ports.store import Store
from tests.contracts import samples
from tests.contracts.store_catalog_contract import StoreCatalogContract
from tests.contracts.store_contract import ALL, PATIENCE_S, StoreContract
from tests.contracts.store_lists_contract import StoreListsContract
from tests.contracts.store_runs_contract import StoreRunsContract
from tests.contracts.store_storage_contract import StoreStorageContract
from tests.postgres import PostgresServer
from tests.programs import started
from tests.waiting import wait_for

LOCK_AND_WAIT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
connection.close()
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of one megabyte, or None when we may not mount one."""
    directory = tmp_path / "small"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield None
        return
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


class RowsContract(StoreContract, StoreListsContract, StoreRunsContract, StoreCatalogContract, StoreStorageContract):
    """All that every store keeps."""


class TestMemoryStore(RowsContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore(busy_timeout_s=PATIENCE_S)


class SqlStoreContract(RowsContract):
    @pytest.fixture(params=["enumerate", "walk"])
    def list_strategy(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        """Labels and times that few rows match are enumerated; with the bound at zero every list is a walk."""
        if request.param == "walk":
            monkeypatch.setattr(job_pages, "NARROW", dict.fromkeys(job_pages.NARROW, 0))
        return str(request.param)

    def test_a_transaction_the_engine_failed_in_does_not_commit(self, store: Store) -> None:
        """PostgreSQL would answer the COMMIT with a silent rollback."""
        with pytest.raises(Conflict), store.write() as unit:
            unit.users.add(samples.user())
            with pytest.raises(Conflict):
                unit.jobs.put_tasks([samples.task("job-9-worker-0", "job-9")])
        with store.read() as view:
            assert view.users.page(ALL).rows == ()


class TestSqliteStore(SqlStoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/state/paddleflow.db"

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = SqlStore(url, busy_timeout_s=PATIENCE_S)
        yield store
        store.close()

    @pytest.fixture
    def second(self, store: Store, url: str) -> Iterator[Store]:
        second = SqlStore(url, busy_timeout_s=PATIENCE_S)
        yield second
        second.close()

    def test_rows_outlive_the_process(self, store: Store, url: str) -> None:
        with store.write() as unit:
            job = unit.jobs.add(samples.job(labels={"team": "a"}))
            unit.events.append(samples.event())
        store.close()
        again = SqlStore(url)
        with again.read() as view:
            assert view.jobs.find(job.id) == job
            assert view.events.last_seq() == 1
        again.close()

    def test_nobody_else_may_read_the_files(self, store: Store, tmp_path: Path) -> None:
        store.check()
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
        assert modes == {"paddleflow.db": 0o600, "paddleflow.db-wal": 0o600, "paddleflow.db-shm": 0o600}
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700

    def test_a_database_locked_by_another_process_is_unavailable(self, store: Store, url: str, tmp_path: Path) -> None:
        impatient = SqlStore(url, busy_timeout_s=0.1)
        with started([sys.executable, "-c", LOCK_AND_WAIT, str(tmp_path / "state/paddleflow.db")]) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(Unavailable) as caught, impatient.write():
                pass
            assert not isinstance(caught.value, DiskFull)
            with impatient.read() as view:
                assert view.events.last_seq() == 0, "readers do not wait for a writer"
            holder.stdin.close()
            holder.wait(PATIENCE_S)
        impatient.check()
        impatient.close()

    def test_a_thread_waits_for_another_writer_only_so_long(self, url: str) -> None:
        store = SqlStore(url, busy_timeout_s=0.1)
        with store.write(), pytest.raises(Unavailable), store.write():
            pass
        store.check()
        store.close()

    def test_a_full_disk_is_told_as_such_and_loses_nothing(self, small_disk: Path | None, tmp_path: Path) -> None:
        store = SqlStore(f"sqlite:///{small_disk or tmp_path}/full.db")
        if small_disk is None:
            # Without a small disk, SQLite itself can pretend that there is no room for more pages.
            store._database._writer.execute("PRAGMA max_page_count = 200")  # type: ignore[attr-defined]
        with store.write() as unit:
            kept = unit.jobs.add(samples.job())
        with pytest.raises(DiskFull):
            for n in range(100):
                with store.write() as unit:
                    unit.jobs.add(samples.job(f"job-big-{n}", message="x" * 200_000))
        with store.read() as view:
            assert view.jobs.find(kept.id) == kept
        store.close()

    def test_a_file_that_is_not_a_database_is_unavailable(self, tmp_path: Path) -> None:
        path = tmp_path / "letters.db"
        path.write_text("these are letters, not a database\n" * 100)
        with pytest.raises(Unavailable):
            SqlStore(f"sqlite:///{path}")
        assert path.read_text().startswith("these are letters")

    @pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://u@h/d", "paddleflow.db", ""])
    def test_a_url_that_names_no_file_or_server_is_invalid(self, url: str) -> None:
        with pytest.raises(Invalid):
            SqlStore(url)

    def test_what_the_engine_cannot_hold_is_invalid(self, store: Store) -> None:
        with pytest.raises(Invalid), store.write() as unit:
            unit.jobs.add(samples.job(message="lone surrogate \ud800"))
        with pytest.raises(Invalid), store.write() as unit:
            unit.jobs.add(samples.job())
            unit.jobs.put_tasks([samples.task("job-1-worker-0", exit_code=2**70)])
        with store.read() as view:
            assert view.jobs.find(JobId("job-1")) is None


class TestPostgresStore(SqlStoreContract):
    wakes_when_it_begins_to_listen = True

    @pytest.fixture
    def url(self, postgres_server: PostgresServer) -> str:
        return postgres_server.empty_schema()

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = SqlStore(url, busy_timeout_s=PATIENCE_S)
        yield store
        store.close()

    @pytest.fixture
    def second(self, store: Store, url: str) -> Iterator[Store]:
        second = SqlStore(url, busy_timeout_s=PATIENCE_S)
        yield second
        second.close()

    def test_a_commit_of_another_process_wakes_listeners(self, store: Store, second: Store) -> None:
        woken = threading.Semaphore(0)
        store.on_commit(lambda kinds: woken.release())
        assert woken.acquire(timeout=PATIENCE_S), "no wake after beginning to listen"
        with second.write() as unit:
            unit.users.add(samples.user())
        with second.write() as unit:
            unit.events.append(samples.event())
        assert woken.acquire(timeout=PATIENCE_S)
        assert not woken.acquire(blocking=False), "woken by a commit without events, or twice"

    def test_broken_connections_are_replaced_and_listeners_woken(
        self, store: Store, url: str, postgres_server: PostgresServer
    ) -> None:
        woken = threading.Semaphore(0)
        store.on_commit(lambda kinds: woken.release())
        assert woken.acquire(timeout=PATIENCE_S)
        store.check()
        postgres_server.end_connections()
        store.check()
        assert woken.acquire(timeout=PATIENCE_S), "no wake after reconnecting"
        other = SqlStore(url)
        with other.write() as unit:
            unit.events.append(samples.event())
        other.close()
        assert woken.acquire(timeout=PATIENCE_S)

    def test_a_transaction_whose_connection_breaks_is_unavailable_and_leaves_nothing(
        self, store: Store, postgres_server: PostgresServer
    ) -> None:
        with pytest.raises(Unavailable), store.write() as unit:
            unit.users.add(samples.user())
            postgres_server.end_connections()
        with pytest.raises(Unavailable), store.read() as view:
            view.events.last_seq()
            postgres_server.end_connections()
            view.events.last_seq()
        with store.read() as view:
            assert view.users.page(ALL).rows == ()

    def test_a_writer_waits_for_another_server_only_so_long(self, store: Store, url: str) -> None:
        # As impatient as this it is with a slow server that it connects to.
        impatient = wait_for(lambda: SqlStore(url, busy_timeout_s=0.1))
        with store.write(), pytest.raises(Unavailable), impatient.write():
            pass
        impatient.check()
        impatient.close()

    def test_what_the_engine_cannot_hold_is_invalid(self, store: Store) -> None:
        with pytest.raises(Invalid), store.write() as unit:
            unit.jobs.add(samples.job(message="a\x00b"))

    def test_an_unreachable_server_is_unavailable(self, tmp_path: Path) -> None:
        with pytest.raises(Unavailable):
            SqlStore(f"postgresql://nobody@/none?host={tmp_path}")
