"""Migrating from nothing gives the declared tables, on both engines; and opening a database is safe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.pool import NullPool

from paddleflow.adapters.sql import migrate
from paddleflow.adapters.sql.schema import metadata
from paddleflow.adapters.sql.store import SqlStore
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import JobId, QueueName
from tests.contracts import samples
from tests.postgres import PostgresServer
from tests.programs import started
from tests.waiting import DEADLINE_S


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/paddleflow.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.empty_schema()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    yield engine
    engine.dispose()


def in_words(index: ReflectedIndex) -> dict[str, object]:
    """The condition of a partial index is an object that equals nothing but itself."""
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return {**index, "dialect_options": options}


def description(connection: Connection) -> dict[str, object]:
    """Everything the engine can tell of its tables."""
    inspector = inspect(connection)
    return {
        name: {
            "columns": [{**column, "type": repr(column["type"])} for column in inspector.get_columns(name)],
            "key": inspector.get_pk_constraint(name),
            "indexes": sorted((in_words(index) for index in inspector.get_indexes(name)), key=str),
            "uniques": sorted(inspector.get_unique_constraints(name), key=str),
            "foreign keys": inspector.get_foreign_keys(name),
        }
        for name in inspector.get_table_names()
        if name != "alembic_version"
    }


def sqlite_text(connection: Connection) -> list[str]:
    """The words of the tables as SQLite keeps them: what inspection cannot see, such as AUTOINCREMENT. In no order:
    an added column stands behind the constraints."""
    rows = connection.execute(text("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%'"))
    words = (row[0].replace("\n", " ").replace("\t", " ").replace(",", " ").split() for row in rows)
    return sorted(" ".join(sorted(each)) for each in words)


def test_the_named_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [migrate.HEAD]


def test_migrating_from_nothing_gives_the_declared_tables(engine: Engine) -> None:
    with engine.begin() as connection:
        migrate.upgrade(connection)
        migrated = description(connection)
        assert set(migrated) == set(metadata.tables)
        # Alembic takes SQLite's row numbers for a changed default; there the text below is compared instead.
        defaults = engine.dialect.name != "sqlite"
        context = MigrationContext.configure(connection, opts={"compare_server_default": defaults})
        assert compare_metadata(context, metadata) == []
        migrated_text = sqlite_text(connection) if engine.dialect.name == "sqlite" else []
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert description(connection) == migrated
        if engine.dialect.name == "sqlite":
            assert sqlite_text(connection) == migrated_text


def test_a_new_database_is_at_the_head_and_a_migrated_one_is_used_as_it_is(url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        migrate.upgrade(connection)
        migrated = description(connection)
    SqlStore(url).close()
    with engine.begin() as connection:
        assert description(connection) == migrated
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [migrate.HEAD]


def test_an_older_database_is_migrated_when_opened(url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        migrate.upgrade(connection)
        migrated = description(connection)
        metadata.drop_all(connection)
        connection.execute(text("DELETE FROM alembic_version"))
    # A version table without a version is what the state before the first migration looks like.
    SqlStore(url).close()
    with engine.begin() as connection:
        assert description(connection) == migrated


def test_rows_of_an_older_version_keep_their_meaning(url: str, engine: Engine) -> None:
    """A job that runs and a queue, written by the version before, are read by this one."""
    with engine.begin() as connection:
        migrate.upgrade(connection, "0001")
        placed = '[{"task_id":"job-a-worker-0","node":"node-1","gpus":[1]}]'
        member = '{"role":"worker","replicas":1,"command":"true"}'
        connection.execute(
            text(
                "INSERT INTO jobs (id, name, owner, queue, cluster, priority, labels, annotations, spec, status,"
                " message, placements, created_at, updated_at, version)"
                " VALUES ('job-a', 'a', 'root', 'q', 'c', 3, '{}', '{}',"
                " :spec, 'running', '', :placed, 0, 0, 1)"
            ),
            {"spec": '{"kind":"single","framework":"standalone","members":[' + member + "]}", "placed": placed},
        )
        connection.execute(
            text(
                "INSERT INTO queues (id, name, namespace, cluster, quota_type, max_resources, min_resources, location,"
                " policies, status, created_at, updated_at, version) VALUES ('queue-a', 'q', 'default', 'c',"
                " 'elasticQuota', '{}', '{}', '{}', '[]', 'open', 0, 0, 1)"
            )
        )
    store = SqlStore(url)
    with store.read() as view:
        job, queue = view.jobs.find(JobId("job-a")), view.queues.find(QueueName("q"))
    store.close()
    assert job is not None
    assert queue is not None
    assert [(at.role, at.index, at.node, at.gpus) for at in job.placements] == [("worker", 0, "node-1", (1,))]
    assert (job.generation, job.failures, job.spec.policy.retries, queue.weight) == (0, 0, 0, 1)


def test_a_database_from_before_pipelines_keeps_its_rows_and_takes_runs(url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        migrate.upgrade(connection, "0002")
        connection.execute(
            text(
                "INSERT INTO queues (id, name, namespace, cluster, quota_type, max_resources, min_resources, location,"
                " policies, status, created_at, updated_at, version, weight) VALUES ('queue-a', 'q', 'default', 'c',"
                " 'elasticQuota', '{}', '{}', '{}', '[]', 'open', 0, 0, 1, 7)"
            )
        )
        connection.execute(
            text("INSERT INTO events (seq, kind, subject, data, at, cause) VALUES (41, 'x', 'j', '{}', 0, '')")
        )
        assert "runs" not in inspect(connection).get_table_names()
    store = SqlStore(url)
    with store.write() as unit:
        run = unit.runs.add(samples.run())
        unit.runs.put_nodes([samples.run_node("train")])
        assert unit.events.append(samples.event()).seq == 42
        assert unit.numbers.next("run") == 1
    with store.read() as view:
        queue = view.queues.find(QueueName("q"))
        assert view.runs.find(run.id) == run
        assert view.runs.nodes(run.id) == (samples.run_node("train"),)
    store.close()
    assert queue is not None
    assert queue.weight == 7


def test_a_newer_database_is_refused_and_not_touched(url: str, engine: Engine) -> None:
    SqlStore(url).close()
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        before = description(connection)
    with pytest.raises(Invalid, match="9999"):
        SqlStore(url)
    with engine.begin() as connection:
        assert description(connection) == before
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_a_database_of_somebody_else_is_refused(url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE users (name TEXT)"))
    with pytest.raises(Invalid, match="users"):
        SqlStore(url)
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == ["users"]


OPEN = """
import sys
from paddleflow.adapters.sql.store import SqlStore
sys.stdin.read()
store = SqlStore(sys.argv[1], busy_timeout_s=60)
store.check()
store.close()
sys.exit(3 if "alembic" in sys.modules else 0)
"""


def test_servers_may_start_on_one_new_database_at_once(url: str, engine: Engine) -> None:
    """Each is a process of its own, held back until all are loaded; none of them needs Alembic for it."""
    with ExitStack() as running:
        servers = [running.enter_context(started([sys.executable, "-c", OPEN, url])) for _ in range(4)]
        for server in servers:
            assert server.stdin is not None
            server.stdin.close()
        for server in servers:
            assert server.stderr is not None
            told = server.stderr.read()
            assert server.wait(DEADLINE_S) == 0, told
    with engine.begin() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [migrate.HEAD]
