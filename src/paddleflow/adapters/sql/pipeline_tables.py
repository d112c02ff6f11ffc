"""The tables of pipelines, runs and schedules, and their indexes."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Table, UniqueConstraint
from sqlalchemy import text as sql_text

from paddleflow.adapters.sql.columns import (
    TEXT,
    metadata,
    number,
    number_or_null,
    row_number,
    text,
    text_or_null,
)


def _of_run() -> Column[str]:
    """What carries this goes when its run does."""
    return Column("run_id", TEXT, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False)


def _index_of_given(table: str, *columns: str) -> Index:
    """Of a column that is null in most rows: those cost the index nothing."""
    given = sql_text(f"{columns[0]} IS NOT NULL")
    return Index(f"ix_{table}_{'_'.join(columns)}", *columns, sqlite_where=given, postgresql_where=given)


runs = Table(
    "runs",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("owner"),
    text("source"),
    text_or_null("fs_id"),
    text("fs_name"),
    text("description"),
    text("parameters"),
    text("docker_env"),
    text("disabled"),
    text("strategy"),
    text_or_null("schedule_id"),
    number_or_null("scheduled_at"),
    text_or_null("retry_of"),
    text("status"),
    text("stop"),
    text("message"),
    number("created_at"),
    number_or_null("activated_at"),
    number_or_null("finished_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    Index(None, "owner", "seq"),
    Index(None, "status", "seq"),
    _index_of_given("runs", "schedule_id", "seq"),
    sqlite_autoincrement=True,
)

# Long, and written once: SQLite writes a whole row anew whenever a column of it changes.
run_texts = Table(
    "run_texts",
    metadata,
    Column("run_id", TEXT, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, nullable=False),
    text("text"),
    text("plan"),
)

run_nodes = Table(
    "run_nodes",
    metadata,
    row_number(),
    _of_run(),
    text("key"),
    text("node"),
    text("kind"),
    text("status"),
    text_or_null("job_id"),
    text_or_null("cache_run_id"),
    text_or_null("source_run"),
    number_or_null("started_at"),
    number_or_null("finished_at"),
    # Everything that nobody asks for by itself, as JSON.
    text("details"),
    UniqueConstraint("run_id", "key"),
    Index(None, "run_id", "seq"),
    _index_of_given("run_nodes", "job_id"),
    _index_of_given("run_nodes", "cache_run_id"),
    _index_of_given("run_nodes", "source_run"),
    sqlite_autoincrement=True,
)

cache_entries = Table(
    "cache_entries",
    metadata,
    row_number(),
    text("id"),
    text("first"),
    text("second"),
    text("parts"),
    _of_run(),
    text("job_id"),
    text("node"),
    text("source"),
    text("owner"),
    text_or_null("fs_id"),
    text("fs_name"),
    text("outputs"),
    number("expires_after_s"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("id"),
    Index(None, "first", "owner", "fs_id", "seq"),
    Index(None, "owner", "fs_id", "node", "seq"),
    Index(None, "run_id"),
    sqlite_autoincrement=True,
)

artifacts = Table(
    "artifacts",
    metadata,
    row_number(),
    _of_run(),
    text("fs_id"),
    text("fs_name"),
    text("owner"),
    text("path"),
    text("step"),
    text("job_id"),
    text("use"),
    text("name"),
    number("piece"),
    text("meta"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("run_id", "job_id", "use", "name", "piece"),
    Index(None, "owner", "seq"),
    # PostgreSQL's ordered indexes refuse long values, and a path may be one.
    Index(None, "path", postgresql_using="hash"),
    sqlite_autoincrement=True,
)

run_remains = Table(
    "run_remains",
    metadata,
    Column("run_id", TEXT, primary_key=True, nullable=False),
    text("fs_id"),
    text("path"),
)

pipelines = Table(
    "pipelines",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("description"),
    text("owner"),
    number("versions_made"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    UniqueConstraint("owner", "name"),
    sqlite_autoincrement=True,
)

pipeline_versions = Table(
    "pipeline_versions",
    metadata,
    row_number(),
    Column("pipeline_id", TEXT, ForeignKey("pipelines.id", ondelete="CASCADE"), nullable=False),
    text("id"),
    text_or_null("fs_id"),
    text("fs_name"),
    text("yaml_path"),
    text("text"),
    text("digest"),
    text("owner"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("pipeline_id", "id"),
    Index(None, "pipeline_id", "seq"),
    sqlite_autoincrement=True,
)

schedules = Table(
    "schedules",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("description"),
    text("owner"),
    text("pipeline_id"),
    text("version_id"),
    text("crontab"),
    text("time_zone"),
    number_or_null("starts_at"),
    number_or_null("ends_at"),
    number("concurrency"),
    text("policy"),
    number("expire_s"),
    Column("catch_up", Boolean, nullable=False),
    text("status"),
    text("message"),
    number_or_null("next_at"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    UniqueConstraint("owner", "name"),
    Index(None, "status", "seq"),
    sqlite_autoincrement=True,
)

numbers = Table(
    "numbers",
    metadata,
    Column("kind", TEXT, primary_key=True, nullable=False),
    number("last"),
)
