"""All tables of the product: whoever asks for them here gets those of every file that declares some."""

from __future__ import annotations

from paddleflow.adapters.sql import pipeline_tables, storage_tables, tables
from paddleflow.adapters.sql.columns import metadata

DECLARED_IN = (tables, pipeline_tables, storage_tables)

__all__ = ["DECLARED_IN", "metadata"]
