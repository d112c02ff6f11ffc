"""The first tables: users, capacity, jobs, events, receipts and leases.

A migration is a record of the past: it says in its own words what the tables were, and does not follow their
declaration when that changes.

Revision: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, _TEXT, nullable=False) for name in names]


def _text_or_null(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=True)


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _number_or_null(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=True)


def _numbered(table: str, *columns: sa.schema.SchemaItem) -> None:
    """A table whose rows have a number that is never given out twice."""
    seq: sa.Column[int] = sa.Column("seq", _ROW_NUMBER, sa.Identity(), nullable=False)
    key = sa.PrimaryKeyConstraint("seq", name=f"pk_{table}")
    op.create_table(table, seq, *columns, key, sqlite_autoincrement=True)


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def upgrade() -> None:
    _people()
    _capacity()
    _jobs()
    _log()


def _people() -> None:
    _numbered(
        "users",
        *_texts("name", "password_hash"),
        *_numbers("token_epoch", "created_at", "updated_at", "version"),
        _unique("users", "name"),
    )
    _numbered(
        "grants",
        *_texts("id", "user_name", "resource_type", "resource_id"),
        *_numbers("created_at", "updated_at"),
        _unique("grants", "id"),
        _unique("grants", "user_name", "resource_type", "resource_id"),
    )
    _index("grants", "resource_type", "resource_id")
    _index("grants", "user_name", "seq")


def _capacity() -> None:
    _numbered(
        "flavours",
        *_texts("id", "name", "cpu", "memory", "scalars"),
        _text_or_null("cluster"),
        _text_or_null("owner"),
        *_numbers("created_at", "updated_at", "version"),
        _unique("flavours", "id"),
        _unique("flavours", "name"),
    )
    _numbered(
        "clusters",
        *_texts(
            "id",
            "name",
            "type",
            "endpoint",
            "description",
            "source",
            "cluster_version",
            "status",
            "sealed_credential",
            "setting",
            "namespaces",
        ),
        *_numbers("created_at", "updated_at", "version"),
        _unique("clusters", "id"),
        _unique("clusters", "name"),
    )
    op.create_table(
        "nodes",
        *_texts("cluster", "name", "capacity", "status", "address", "labels"),
        sa.PrimaryKeyConstraint("cluster", "name", name="pk_nodes"),
    )
    _numbered(
        "queues",
        *_texts(
            "id",
            "name",
            "namespace",
            "cluster",
            "quota_type",
            "max_resources",
            "min_resources",
            "location",
            "policies",
            "status",
        ),
        *_numbers("created_at", "updated_at", "version"),
        _unique("queues", "id"),
        _unique("queues", "name"),
    )
    _numbered(
        "filesystems",
        *_texts("id", "name", "owner", "type", "server_address", "sub_path", "properties"),
        sa.Column("independent_mount_process", sa.Boolean(), nullable=False),
        *_numbers("created_at", "updated_at", "version"),
        _unique("filesystems", "id"),
    )
    _index("filesystems", "owner", "seq")


def _jobs() -> None:
    _numbered(
        "jobs",
        *_texts("id", "name", "owner", "queue", "cluster"),
        *_numbers("priority"),
        *_texts("labels", "annotations", "spec", "status", "message", "placements"),
        *_numbers("created_at"),
        _number_or_null("activated_at"),
        _number_or_null("finished_at"),
        *_numbers("updated_at", "version"),
        _unique("jobs", "id"),
    )
    _index("jobs", "activated_at", "seq")
    _index("jobs", "owner", "queue", "seq")
    _index("jobs", "owner", "seq")
    _index("jobs", "owner", "status", "seq")
    _index("jobs", "queue", "finished_at", "activated_at")
    _index("jobs", "queue", "seq")
    _index("jobs", "queue", "status", "seq")
    _index("jobs", "status", "seq")
    _index("jobs", "updated_at", "seq")
    op.create_table(
        "job_labels",
        sa.Column("job_seq", _ROW_NUMBER, nullable=False),
        *_texts("key", "value"),
        sa.ForeignKeyConstraint(["job_seq"], ["jobs.seq"], name="fk_job_labels_job_seq", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_seq", "key", name="pk_job_labels"),
        sqlite_with_rowid=False,
    )
    _index("job_labels", "key", "value", "job_seq")
    op.create_table(
        "tasks",
        *_texts("id"),
        sa.Column("job_id", _TEXT, nullable=False),
        *_texts("role"),
        *_numbers("index"),
        *_texts("node", "gpus", "status", "message"),
        _number_or_null("exit_code"),
        _number_or_null("signal"),
        sa.Column("cpu_s", sa.Double(), nullable=False),
        *_numbers("max_memory_bytes", "memory_bytes"),
        _number_or_null("started_at"),
        _number_or_null("finished_at"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_tasks_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
    )
    _index("tasks", "job_id", "role", "index")


def _log() -> None:
    op.create_table(
        "events",
        sa.Column("seq", _ROW_NUMBER, autoincrement=False, nullable=False),
        *_texts("kind", "subject"),
        _text_or_null("owner"),
        *_texts("data"),
        *_numbers("at"),
        *_texts("cause"),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
    )
    _index("events", "subject", "seq")
    op.create_table(
        "receipts",
        *_texts("owner", "key", "fingerprint", "answer"),
        *_numbers("at"),
        sa.PrimaryKeyConstraint("owner", "key", name="pk_receipts"),
    )
    _index("receipts", "at")
    op.create_table(
        "leases",
        *_texts("name", "holder"),
        *_numbers("expires_at"),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "remains",
        *_texts("job_id", "cluster"),
        sa.PrimaryKeyConstraint("job_id", name="pk_remains"),
    )
