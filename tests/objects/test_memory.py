"""The store in memory: the contract, and nothing else to tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.ports.objects import ObjectStore
from tests.objects.contract import ObjectStoreContract


class TestMemoryStore(ObjectStoreContract):
    examples = 100

    @pytest.fixture
    def make_store(self) -> Callable[[], ObjectStore]:
        return MemoryStore
