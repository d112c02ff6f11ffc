"""A private PostgreSQL for tests: real binaries, a directory of its own, a unix socket and no network.

Nothing is faked and nothing is skipped: without the server's binaries the tests that need it fail and say what to
install.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import psycopg
import pytest

from tests.waiting import DEADLINE_S, wait_for


class PostgresMissing(Exception):
    """The machine has no PostgreSQL server to test with."""


def find_binaries() -> Path:
    """Debian keeps them out of PATH, one directory for each major version; the newest is used."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if candidates:
        return candidates[-1].parent
    on_path = shutil.which("postgres")
    if on_path is None:
        raise PostgresMissing("no PostgreSQL server found; install it: apt-get install postgresql")
    return Path(on_path).resolve().parent


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root. None: we are somebody else already."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class PostgresServer:
    """``with PostgresServer() as server: server.empty_schema()`` answers a url for SqlStore."""

    def __init__(self) -> None:
        self._binaries = find_binaries()
        self._user = _unprivileged_user()
        self._directory = Path(tempfile.mkdtemp(prefix="pf-postgres-"))
        self._schemas = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        try:
            self._initialise()
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def _initialise(self) -> None:
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        command: list[str | Path] = [self._binaries / "initdb", "--pgdata", self._data, "--no-sync"]
        command += ["--username", "paddleflow", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8"]
        # By default this server sorts as people do, not by code point: a query that leans on the order would show.
        command += ["--locale-provider", "icu", "--icu-locale", "en-US"]
        done = subprocess.run(command, user=self._user, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"initdb failed: {done.stderr}"

    def _start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._directory),
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": "200",
            "shared_buffers": "64MB",
        }
        command: list[str | Path] = [self._binaries / "postgres", "-D", self._data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        log_file = self._directory / "log"
        with log_file.open("wb") as log:
            process = self._process = subprocess.Popen(command, user=self._user, cwd="/", stdout=log, stderr=log)

        def answers() -> bool:
            if process.poll() is not None:
                pytest.fail(f"PostgreSQL did not start: {log_file.read_text(errors='replace')}")
            psycopg.connect(self._conninfo).close()
            return True

        wait_for(answers, "PostgreSQL's start")

    def _stop(self) -> None:
        """At once, by the process id we started: nothing in it is worth keeping."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(DEADLINE_S)
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _conninfo(self) -> str:
        return f"host={self._directory} user=paddleflow dbname=postgres"

    def empty_schema(self) -> str:
        """The url of a schema with nothing in it: as good as a database of its own, and made in a millisecond."""
        self._schemas += 1
        name = f"test_{self._schemas}"
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"postgresql://paddleflow@/postgres?host={self._directory}&options=-csearch_path%3D{name}"

    def end_connections(self) -> None:
        """What a restart of the server or a broken network does to everybody connected."""
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server
