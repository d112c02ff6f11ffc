"""Fixtures shared by the contract suites of the store."""

from __future__ import annotations

from tests.postgres import postgres_server

__all__ = ["postgres_server"]
