"""What belongs to a filesystem: links, cache configuration, mounts, cache reports, snapshots.

New tables only: no row that exists already changes.

Revision: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, _TEXT, nullable=False) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _numbered(table: str, *columns: sa.schema.SchemaItem) -> None:
    """A table whose rows have a number that is never given out twice."""
    seq: sa.Column[int] = sa.Column("seq", _ROW_NUMBER, sa.Identity(), nullable=False)
    key = sa.PrimaryKeyConstraint("seq", name=f"pk_{table}")
    op.create_table(table, seq, *columns, _goes_with_filesystem(table), key, sqlite_autoincrement=True)


def _goes_with_filesystem(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["fs_id"], ["filesystems.id"], name=f"fk_{table}_fs_id", ondelete="CASCADE")


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _links() -> None:
    _numbered(
        "links",
        *_texts("fs_id", "fs_path", "owner", "type", "server_address", "sub_path", "properties"),
        *_numbers("created_at", "updated_at"),
        _unique("links", "fs_id", "fs_path"),
    )
    _index("links", "fs_id", "seq")
    _numbered(
        "cache_configs",
        *_texts("fs_id", "settings"),
        *_numbers("created_at", "updated_at", "version"),
        _unique("cache_configs", "fs_id"),
    )


def _mounts() -> None:
    _numbered(
        "mounts",
        *_texts("id", "fs_id", "user_name", "node", "mountpoint"),
        sa.Column("read_only", sa.Boolean(), nullable=False),
        sa.Column("snapshot", _TEXT, nullable=True),
        *_numbers("created_at", "seen_at", "version"),
        _unique("mounts", "id"),
    )
    _index("mounts", "fs_id", "seen_at")
    _index("mounts", "seen_at")
    op.create_table(
        "cache_reports",
        *_texts("fs_id", "node", "mount_id"),
        *_numbers("cached_bytes", "cached_files", "total_bytes", "hits", "misses", "hit_bytes", "miss_bytes"),
        *_texts("prefixes"),
        *_numbers("reported_at"),
        _goes_with_filesystem("cache_reports"),
        sa.PrimaryKeyConstraint("fs_id", "node", "mount_id", name="pk_cache_reports"),
    )
    _index("cache_reports", "reported_at")


def _snapshots() -> None:
    _numbered(
        "snapshots",
        *_texts("id", "fs_id", "owner", "name", "sub_path", "kind", "state"),
        *_numbers("files", "bytes"),
        *_texts("message"),
        *_numbers("created_at", "updated_at", "version"),
        _unique("snapshots", "id"),
    )
    _index("snapshots", "fs_id", "seq")
    _index("snapshots", "state", "seq")


def upgrade() -> None:
    _links()
    _mounts()
    _snapshots()
