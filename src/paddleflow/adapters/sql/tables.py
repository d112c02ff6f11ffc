"""The tables and their indexes: what a migrated database must look like on both engines.

Every aggregate has ``seq``, the row number lists are ordered and paged by. It is never given out twice, even after
the last row was deleted, or a page marker would hide a new row. Times are whole microseconds since 1970 in UTC, and
structured values are JSON text: both engines then hold the same bytes and neither loses a digit. Text compares by
code point on both engines, whatever the database's locale.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

TEXT: TypeEngine[str] = Text().with_variant(Text(collation="C"), "postgresql")
# SQLite gives out row numbers only to a column of exactly this type.
ROW_NUMBER: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")


def _seq() -> Column[int]:
    return Column("seq", ROW_NUMBER, Identity(), primary_key=True)


def _text(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=False)


def _text_or_null(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=True)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _number_or_null(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)


users = Table(
    "users",
    metadata,
    _seq(),
    _text("name"),
    _text("password_hash"),
    _number("token_epoch"),
    _number("created_at"),
    _number("updated_at"),
    _number("version"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

grants = Table(
    "grants",
    metadata,
    _seq(),
    _text("id"),
    _text("user_name"),
    _text("resource_type"),
    _text("resource_id"),
    _number("created_at"),
    _number("updated_at"),
    UniqueConstraint("id"),
    UniqueConstraint("user_name", "resource_type", "resource_id"),
    Index(None, "resource_type", "resource_id"),
    Index(None, "user_name", "seq"),
    sqlite_autoincrement=True,
)

flavours = Table(
    "flavours",
    metadata,
    _seq(),
    _text("id"),
    _text("name"),
    _text("cpu"),
    _text("memory"),
    _text("scalars"),
    _text_or_null("cluster"),
    _text_or_null("owner"),
    _number("created_at"),
    _number("updated_at"),
    _number("version"),
    UniqueConstraint("id"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

clusters = Table(
    "clusters",
    metadata,
    _seq(),
    _text("id"),
    _text("name"),
    _text("type"),
    _text("endpoint"),
    _text("description"),
    _text("source"),
    _text("cluster_version"),
    _text("status"),
    _text("sealed_credential"),
    _text("setting"),
    _text("namespaces"),
    _number("created_at"),
    _number("updated_at"),
    _number("version"),
    UniqueConstraint("id"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

nodes = Table(
    "nodes",
    metadata,
    _text("cluster"),
    _text("name"),
    _text("capacity"),
    _text("status"),
    _text("address"),
    _text("labels"),
    PrimaryKeyConstraint("cluster", "name"),
)

queues = Table(
    "queues",
    metadata,
    _seq(),
    _text("id"),
    _text("name"),
    _text("namespace"),
    _text("cluster"),
    _text("quota_type"),
    _text("max_resources"),
    _text("min_resources"),
    _text("location"),
    _text("policies"),
    _text("status"),
    _number("created_at"),
    _number("updated_at"),
    _number("version"),
    # Null: one.
    _number_or_null("weight"),
    UniqueConstraint("id"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

filesystems = Table(
    "filesystems",
    metadata,
    _seq(),
    _text("id"),
    _text("name"),
    _text("owner"),
    _text("type"),
    _text("server_address"),
    _text("sub_path"),
    _text("properties"),
    Column("independent_mount_process", Boolean, nullable=False),
    _number("created_at"),
    _number("updated_at"),
    _number("version"),
    UniqueConstraint("id"),
    Index(None, "owner", "seq"),
    sqlite_autoincrement=True,
)

jobs = Table(
    "jobs",
    metadata,
    _seq(),
    _text("id"),
    _text("name"),
    _text("owner"),
    _text("queue"),
    _text("cluster"),
    _number("priority"),
    _text("labels"),
    _text("annotations"),
    _text("spec"),
    _text("status"),
    _text("message"),
    _text("placements"),
    _number("created_at"),
    _number_or_null("activated_at"),
    _number_or_null("finished_at"),
    _number("updated_at"),
    _number("version"),
    # How far it has come beyond its status, as JSON; null for most.
    _text_or_null("course"),
    UniqueConstraint("id"),
    # Each list walks one of these in row order and stops when its page is full.
    Index(None, "owner", "seq"),
    Index(None, "owner", "queue", "seq"),
    Index(None, "owner", "status", "seq"),
    Index(None, "queue", "seq"),
    Index(None, "queue", "status", "seq"),
    Index(None, "status", "seq"),
    Index(None, "updated_at", "seq"),
    Index(None, "activated_at", "seq"),
    Index(None, "queue", "finished_at", "activated_at"),
    sqlite_autoincrement=True,
)

job_labels = Table(
    "job_labels",
    metadata,
    Column("job_seq", ROW_NUMBER, ForeignKey(jobs.c.seq, ondelete="CASCADE"), nullable=False),
    _text("key"),
    _text("value"),
    PrimaryKeyConstraint("job_seq", "key"),
    Index(None, "key", "value", "job_seq"),
    sqlite_with_rowid=False,
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", TEXT, primary_key=True, nullable=False),
    Column("job_id", TEXT, ForeignKey(jobs.c.id, ondelete="CASCADE"), nullable=False),
    _text("role"),
    _number("index"),
    _text("node"),
    _text("gpus"),
    _text("status"),
    _text("message"),
    _number_or_null("exit_code"),
    _number_or_null("signal"),
    Column("cpu_s", Double, nullable=False),
    _number("max_memory_bytes"),
    _number("memory_bytes"),
    _number_or_null("started_at"),
    _number_or_null("finished_at"),
    Index(None, "job_id", "role", "index"),
)

events = Table(
    "events",
    metadata,
    # Given by the statement that appends, not by the database: see events.py.
    Column("seq", ROW_NUMBER, primary_key=True, autoincrement=False),
    _text("kind"),
    _text("subject"),
    _text_or_null("owner"),
    _text("data"),
    _number("at"),
    _text("cause"),
    Index(None, "subject", "seq"),
)

receipts = Table(
    "receipts",
    metadata,
    _text("owner"),
    _text("key"),
    _text("fingerprint"),
    _text("answer"),
    _number("at"),
    PrimaryKeyConstraint("owner", "key"),
    Index(None, "at"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", TEXT, primary_key=True, nullable=False),
    _text("holder"),
    _number("expires_at"),
)

remains = Table(
    "remains",
    metadata,
    Column("job_id", TEXT, primary_key=True, nullable=False),
    _text("cluster"),
)
