"""Benches for the vfs: a store of each kind, a cache, a state directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.pfs.options import MountOptions
from tests.pfs.vfs.driver import Bench, directory_store
from tests.pfs.vfs.flat import FlatStore

MakeBench = Callable[..., Bench]


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[MakeBench]:
    """``make_bench(kind, **options)``: kind is directory, memory or flat."""
    os.umask(0o022)
    made: list[Bench] = []

    def make(kind: str = "flat", **options: Any) -> Bench:
        folder = tmp_path / str(len(made))
        folder.mkdir(exist_ok=True)  # a test may have mounted a disk below it
        stores: dict[str, Callable[[], Any]] = {
            "directory": lambda: directory_store(str(folder)),
            "memory": MemoryStore,
            "flat": FlatStore,
        }
        made.append(Bench(str(folder), stores[kind](), MountOptions(**options)))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture(params=["directory", "memory", "flat"])
def bench(request: pytest.FixtureRequest, make_bench: MakeBench) -> Bench:
    return make_bench(request.param)
