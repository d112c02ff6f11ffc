"""The tables of what belongs to a filesystem: links, cache configuration, mounts, cache reports, snapshots.

All of it goes when its filesystem goes.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, PrimaryKeyConstraint, Table, UniqueConstraint

from paddleflow.adapters.sql.columns import TEXT, metadata, number, row_number, text, text_or_null


def _of_filesystem() -> Column[str]:
    return Column("fs_id", TEXT, ForeignKey("filesystems.id", ondelete="CASCADE"), nullable=False)


links = Table(
    "links",
    metadata,
    row_number(),
    _of_filesystem(),
    text("fs_path"),
    text("owner"),
    text("type"),
    text("server_address"),
    text("sub_path"),
    text("properties"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("fs_id", "fs_path"),
    Index(None, "fs_id", "seq"),
    sqlite_autoincrement=True,
)

cache_configs = Table(
    "cache_configs",
    metadata,
    row_number(),
    _of_filesystem(),
    # What a mount is told, as JSON: nobody asks for a part of it.
    text("settings"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("fs_id"),
    sqlite_autoincrement=True,
)

mounts = Table(
    "mounts",
    metadata,
    row_number(),
    text("id"),
    _of_filesystem(),
    text("user_name"),
    text("node"),
    text("mountpoint"),
    Column("read_only", Boolean, nullable=False),
    text_or_null("snapshot"),
    number("created_at"),
    number("seen_at"),
    number("version"),
    UniqueConstraint("id"),
    Index(None, "fs_id", "seen_at"),
    Index(None, "seen_at"),
    sqlite_autoincrement=True,
)

cache_reports = Table(
    "cache_reports",
    metadata,
    _of_filesystem(),
    text("node"),
    text("mount_id"),
    number("cached_bytes"),
    number("cached_files"),
    number("total_bytes"),
    number("hits"),
    number("misses"),
    number("hit_bytes"),
    number("miss_bytes"),
    text("prefixes"),
    number("reported_at"),
    PrimaryKeyConstraint("fs_id", "node", "mount_id"),
    Index(None, "reported_at"),
)

snapshots = Table(
    "snapshots",
    metadata,
    row_number(),
    text("id"),
    _of_filesystem(),
    text("owner"),
    text("name"),
    text("sub_path"),
    text("kind"),
    text("state"),
    number("files"),
    number("bytes"),
    text("message"),
    number("created_at"),
    number("updated_at"),
    number("version"),
    UniqueConstraint("id"),
    Index(None, "fs_id", "seq"),
    Index(None, "state", "seq"),
    sqlite_autoincrement=True,
)
