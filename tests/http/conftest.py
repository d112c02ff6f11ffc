"""One served platform for the tests of a module that only add to it; a fresh one for those that break it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.http.served import Caller, Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("served"))
    yield served
    served.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


@pytest.fixture(scope="module")
def root(served: Served) -> Caller:
    return served.root


@pytest.fixture(scope="module")
def alice(served: Served) -> Caller:
    return served.a_user("alice", "default-queue")


@pytest.fixture(scope="module")
def bobby(served: Served) -> Caller:
    return served.a_user("bobby", "default-queue")


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}{next(numbers)}"
