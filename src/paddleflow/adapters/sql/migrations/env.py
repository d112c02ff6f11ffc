"""Run by Alembic around every migration: gives it the connection that migrate.py has locked."""

from __future__ import annotations

from alembic import context

from paddleflow.adapters.sql.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place; this makes Alembic copy the table instead.
    render_as_batch=True,
)
context.run_migrations()
