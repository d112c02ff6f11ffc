"""The tables and their indexes: what a migrated database must look like on both engines. Those of pipelines are in
pipeline_tables.py, those of what belongs to filesystems in storage_tables.py.

Every aggregate has ``seq``, the row number lists are ordered and paged by. It is never given out twice, even after
the last row was deleted, or a page marker would hide a new row.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)

from paddleflow.adapters.sql.columns import (
    ROW_NUMBER,
    TEXT,
    metadata,
    number,
    number_or_null,
    row_number,
    text,
    text_or_null,
)

users = Table(
    "users",
    metadata,
    row_number(),
    text("name"),
    text("password_hash"),
    number("token_epoch"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

grants = Table(
    "grants",
    metadata,
    row_number(),
    text("id"),
    text("user_name"),
    text("resource_type"),
    text("resource_id"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("id"),
    UniqueConstraint("user_name", "resource_type", "resource_id"),
    Index(None, "resource_type", "resource_id"),
    Index(None, "user_name", "seq"),
    sqlite_autoincrement=True,
)

flavours = Table(
    "flavours",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("cpu"),
    text("memory"),
    text("scalars"),
    text_or_null("cluster"),
    text_or_null("owner"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

clusters = Table(
    "clusters",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("type"),
    text("endpoint"),
    text("description"),
    text("source"),
    text("cluster_version"),
    text("status"),
    text("sealed_credential"),
    text("setting"),
    text("namespaces"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

nodes = Table(
    "nodes",
    metadata,
    text("cluster"),
    text("name"),
    text("capacity"),
    text("status"),
    text("address"),
    text("labels"),
    PrimaryKeyConstraint("cluster", "name"),
)

queues = Table(
    "queues",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("namespace"),
    text("cluster"),
    text("quota_type"),
    text("max_resources"),
    text("min_resources"),
    text("location"),
    text("policies"),
    text("status"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    # Null: one.
    number_or_null("weight"),
    UniqueConstraint("id"),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

filesystems = Table(
    "filesystems",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("owner"),
    text("type"),
    text("server_address"),
    text("sub_path"),
    text("properties"),
    Column("independent_mount_process", Boolean, nullable=False),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    Index(None, "owner", "seq"),
    sqlite_autoincrement=True,
)

jobs = Table(
    "jobs",
    metadata,
    row_number(),
    text("id"),
    text("name"),
    text("owner"),
    text("queue"),
    text("cluster"),
    number("priority"),
    text("labels"),
    text("annotations"),
    text("spec"),
    text("status"),
    text("message"),
    text("placements"),
    number("created_at"),
    number_or_null("activated_at"),
    number_or_null("finished_at"),
    number("updated_at"),
    number("version"),
    # How far it has come beyond its status, as JSON; null for most.
    text_or_null("course"),
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
    text("key"),
    text("value"),
    PrimaryKeyConstraint("job_seq", "key"),
    Index(None, "key", "value", "job_seq"),
    sqlite_with_rowid=False,
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", TEXT, primary_key=True, nullable=False),
    Column("job_id", TEXT, ForeignKey(jobs.c.id, ondelete="CASCADE"), nullable=False),
    text("role"),
    number("index"),
    text("node"),
    text("gpus"),
    text("status"),
    text("message"),
    number_or_null("exit_code"),
    number_or_null("signal"),
    Column("cpu_s", Double, nullable=False),
    number("max_memory_bytes"),
    number("memory_bytes"),
    number_or_null("started_at"),
    number_or_null("finished_at"),
    Index(None, "job_id", "role", "index"),
)

events = Table(
    "events",
    metadata,
    # Given by the statement that appends, not by the database: see events.py.
    Column("seq", ROW_NUMBER, primary_key=True, autoincrement=False),
    text("kind"),
    text("subject"),
    text_or_null("owner"),
    text("data"),
    number("at"),
    text("cause"),
    Index(None, "subject", "seq"),
)

receipts = Table(
    "receipts",
    metadata,
    text("owner"),
    text("key"),
    text("fingerprint"),
    text("answer"),
    number("at"),
    PrimaryKeyConstraint("owner", "key"),
    Index(None, "at"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", TEXT, primary_key=True, nullable=False),
    text("holder"),
    number("expires_at"),
)

remains = Table(
    "remains",
    metadata,
    Column("job_id", TEXT, primary_key=True, nullable=False),
    text("cluster"),
)
