"""Kinds of columns, and the one collection that every table is declared in.

Times are whole microseconds since 1970 in UTC, and structured values are JSON text: both engines then hold the same
bytes and neither loses a digit. Text compares by code point on both engines, whatever the database's locale.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Integer, MetaData, Text
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


def row_number() -> Column[int]:
    return Column("seq", ROW_NUMBER, Identity(), primary_key=True)


def text(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=False)


def text_or_null(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=True)


def number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def number_or_null(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)
