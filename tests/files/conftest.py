"""File access over real stores and a real cache directory, opened as the composition does it, without a server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paddleflow import Client
from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.files import Files
from paddleflow.files.opened import OpenFilesystems
from paddleflow.pfs.cache import Cache, Level
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.routes import Routes
from paddleflow.pfs.stagehand import Stagehand
from paddleflow.ports.objects import ObjectStore
from tests.objects.servers import S3Server, start_rclone_s3

_NUMBERS = itertools.count(1)
_BUCKET = "files"
"""Of all tests, each below a root of its own: the server does not see buckets that are made while it runs."""


@dataclass
class Opened:
    routes: Routes
    cache: Cache
    stagehand: Stagehand
    options: MountOptions = field(default_factory=MountOptions)
    closed: int = 0

    def close(self) -> None:
        self.closed += 1
        self.stagehand.close()


@dataclass
class Storage:
    """Filesystems by name, which tests may look behind."""

    cache_dir: Path
    stores: dict[str, ObjectStore]
    links: dict[str, dict[str, ObjectStore]] = field(default_factory=dict)
    limit: int = 1 << 30
    opened: list[Opened] = field(default_factory=list)

    def open(self, fsname: str) -> Opened:
        links = {path: (store, f"link-{path}") for path, store in self.links.get(fsname, {}).items()}
        routes = Routes(self.stores[fsname], f"store-{fsname}", links)
        cache = Cache([Level(directory=str(self.cache_dir), limit=self.limit, free_floor=0.0)])
        made = Opened(routes, cache, Stagehand(routes, cache))
        self.opened.append(made)
        return made

    def files(self) -> Files:
        client = Client("127.0.0.1", "root", "paddleflow")
        return Files(client, filesystems=OpenFilesystems(self.open))


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    directory = tmp_path_factory.mktemp("s3")
    (directory / _BUCKET).mkdir()
    server = start_rclone_s3(directory)
    yield server
    server.stop()


def make_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if kind == "memory":
        return MemoryStore()
    from paddleflow.adapters.objects import open_store

    if kind == "local":
        place = tmp_path / f"store{next(_NUMBERS)}"
        place.mkdir()
        return open_store("local", "", str(place), {})
    server: S3Server = request.getfixturevalue("rclone")
    return open_store("s3", "", f"root{next(_NUMBERS)}", server.properties(_BUCKET))


@contextmanager
def stored(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    stores = {name: make_store(kind, request, tmp_path) for name in ("data", "other")}
    yield Storage(tmp_path / "cache", stores)
    for store in stores.values():
        store.close()


@pytest.fixture(params=["memory", "local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    with stored(request.param, request, tmp_path) as made:
        yield made


@pytest.fixture
def files(storage: Storage) -> Iterator[Files]:
    made = storage.files()
    yield made
    made.close()


@pytest.fixture
def on_local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """Of one kind, for what does not depend on the store."""
    with stored("local", request, tmp_path) as made:
        yield made


Writes = Callable[[str, bytes], None]


@pytest.fixture
def write(files: Files) -> Writes:
    def write_file(path: str, content: bytes) -> None:
        with files.open("data", path, "wb") as file:
            file.write(content)

    return write_file
