"""Bring a database's tables up to date when a store is opened.

A database that is at the newest revision costs one question. An empty one gets the declared tables at once, because
the migrations are proven by a test to lead to exactly these. Only a database of an older revision runs migrations,
and only then is Alembic imported. All of it happens in one transaction under a lock, so two servers may start at the
same time and a failed migration leaves the database as it was. A database of a revision this code does not know is
refused and not touched.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, MetaData, String, Table, insert, inspect, select
from sqlalchemy.engine import Connection

from paddleflow.adapters.sql.database import Database
from paddleflow.adapters.sql.errors import translate
from paddleflow.adapters.sql.schema import metadata
from paddleflow.domain.errors import Invalid

HEAD = "0004"
"""The revision that the declared tables are; a test holds it equal to the newest migration."""

MIGRATIONS = Path(__file__).parent / "migrations"

# As Alembic itself declares it.
_revisions = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True, nullable=False))


def bring_up_to_date(database: Database) -> None:
    try:
        with database.engine().connect() as connection:
            if _revision(connection) == HEAD:
                return
            connection.exec_driver_sql(database.schema_lock)
            try:
                _migrate(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
    except database.driver.errors as error:
        raise translate(error) from error


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_revisions.name):
        return None
    return connection.execute(select(_revisions.c.version_num)).scalar()


def _migrate(connection: Connection) -> None:
    """Look again: another server may have been faster while this one waited for the lock."""
    if _revision(connection) == HEAD:
        return
    present = inspect(connection).get_table_names()
    if _revisions.name in present:
        upgrade(connection)
        return
    strangers = set(present) & set(metadata.tables)
    if strangers:
        raise Invalid(
            f"the database has tables named {', '.join(sorted(strangers))} but no revision; "
            "it was not made by this product. Give it a database of its own"
        )
    metadata.create_all(connection)
    _revisions.create(connection)
    connection.execute(insert(_revisions).values(version_num=HEAD))


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run the migrations the database lacks, in the caller's transaction."""
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, to)
    except CommandError as error:
        raise Invalid(
            f"the database is at revision [{_revision(connection)}], which this version does not know "
            f"(it knows up to [{HEAD}]); start a newer version of PaddleFlow"
        ) from error
