"""Pipelines and their versions, runs and what they leave, schedules, and the numbers their ids are made of.

New tables only: no row that exists already changes.

Revision: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, _TEXT, nullable=False) for name in names]


def _texts_or_null(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, _TEXT, nullable=True) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _numbers_or_null(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def _numbered(table: str, *columns: sa.schema.SchemaItem) -> None:
    """A table whose rows have a number that is never given out twice."""
    seq: sa.Column[int] = sa.Column("seq", _ROW_NUMBER, sa.Identity(), nullable=False)
    key = sa.PrimaryKeyConstraint("seq", name=f"pk_{table}")
    op.create_table(table, seq, *columns, key, sqlite_autoincrement=True)


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _index_of_given(table: str, *columns: str) -> None:
    given = sa.text(f"{columns[0]} IS NOT NULL")
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns), sqlite_where=given, postgresql_where=given)


def _goes_with(table: str, owner: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{owner}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _runs() -> None:
    _numbered(
        "runs",
        *_texts("id", "name", "owner", "source"),
        *_texts_or_null("fs_id"),
        *_texts("fs_name", "description", "parameters", "docker_env", "disabled", "strategy"),
        *_texts_or_null("schedule_id"),
        *_numbers_or_null("scheduled_at"),
        *_texts_or_null("retry_of"),
        *_texts("status", "stop", "message"),
        *_numbers("created_at"),
        *_numbers_or_null("activated_at", "finished_at"),
        *_numbers("updated_at", "version"),
        _unique("runs", "id"),
    )
    _index("runs", "owner", "seq")
    _index("runs", "status", "seq")
    _index_of_given("runs", "schedule_id", "seq")
    op.create_table(
        "run_texts",
        *_texts("run_id", "text", "plan"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_texts"),
        _goes_with("run_texts", "runs", "run_id"),
    )
    _numbered(
        "run_nodes",
        *_texts("run_id", "key", "node", "kind", "status"),
        *_texts_or_null("job_id", "cache_run_id", "source_run"),
        *_numbers_or_null("started_at", "finished_at"),
        *_texts("details"),
        _unique("run_nodes", "run_id", "key"),
        _goes_with("run_nodes", "runs", "run_id"),
    )
    _index("run_nodes", "run_id", "seq")
    _index_of_given("run_nodes", "job_id")
    _index_of_given("run_nodes", "cache_run_id")
    _index_of_given("run_nodes", "source_run")


def _what_runs_leave() -> None:
    _numbered(
        "cache_entries",
        *_texts("id", "first", "second", "parts", "run_id", "job_id", "node", "source", "owner"),
        *_texts_or_null("fs_id"),
        *_texts("fs_name", "outputs"),
        *_numbers("expires_after_s", "created_at", "updated_at"),
        _unique("cache_entries", "id"),
        _goes_with("cache_entries", "runs", "run_id"),
    )
    _index("cache_entries", "first", "owner", "fs_id", "seq")
    _index("cache_entries", "owner", "fs_id", "node", "seq")
    _index("cache_entries", "run_id")
    _numbered(
        "artifacts",
        *_texts("run_id", "fs_id", "fs_name", "owner", "path", "step", "job_id", "use", "name"),
        *_numbers("piece"),
        *_texts("meta"),
        *_numbers("created_at", "updated_at"),
        _unique("artifacts", "run_id", "job_id", "use", "name", "piece"),
        _goes_with("artifacts", "runs", "run_id"),
    )
    _index("artifacts", "owner", "seq")
    op.create_index("ix_artifacts_path", "artifacts", ["path"], postgresql_using="hash")
    op.create_table(
        "run_remains",
        *_texts("run_id", "fs_id", "path"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_remains"),
    )


def _catalogue() -> None:
    _numbered(
        "pipelines",
        *_texts("id", "name", "description", "owner"),
        *_numbers("versions_made", "created_at", "updated_at", "version"),
        _unique("pipelines", "id"),
        _unique("pipelines", "owner", "name"),
    )
    _numbered(
        "pipeline_versions",
        *_texts("pipeline_id", "id"),
        *_texts_or_null("fs_id"),
        *_texts("fs_name", "yaml_path", "text", "digest", "owner"),
        *_numbers("created_at", "updated_at"),
        _unique("pipeline_versions", "pipeline_id", "id"),
        _goes_with("pipeline_versions", "pipelines", "pipeline_id"),
    )
    _index("pipeline_versions", "pipeline_id", "seq")
    _numbered(
        "schedules",
        *_texts("id", "name", "description", "owner", "pipeline_id", "version_id", "crontab", "time_zone"),
        *_numbers_or_null("starts_at", "ends_at"),
        *_numbers("concurrency"),
        *_texts("policy"),
        *_numbers("expire_s"),
        sa.Column("catch_up", sa.Boolean(), nullable=False),
        *_texts("status", "message"),
        *_numbers_or_null("next_at"),
        *_numbers("created_at", "updated_at", "version"),
        _unique("schedules", "id"),
        _unique("schedules", "owner", "name"),
    )
    _index("schedules", "status", "seq")
    op.create_table("numbers", *_texts("kind"), *_numbers("last"), sa.PrimaryKeyConstraint("kind", name="pk_numbers"))


def upgrade() -> None:
    _runs()
    _what_runs_leave()
    _catalogue()
