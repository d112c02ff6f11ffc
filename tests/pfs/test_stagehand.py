"""Stores, links and cache put together, as the vfs sees them."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, Unavailable
from paddleflow.pfs.backstage import Backstage, Found, ObjectVersion
from paddleflow.pfs.cache import Cache, Level
from paddleflow.pfs.later import run
from paddleflow.pfs.memory import MemoryPool
from paddleflow.pfs.routes import Routes
from paddleflow.pfs.stagehand import COPY_UP_TO, DirectBackstage, Stagehand
from paddleflow.ports.objects import ObjectEntry
from tests.pfs.cache.kit import PLENTY, data_files
from tests.pfs.stores import WatchedStore, put, random_bytes

MIB = 1 << 20


class Stage:
    def __init__(self, directory: Path, limit: int = PLENTY) -> None:
        self.root, self.linked, self.deep = WatchedStore(), WatchedStore(), WatchedStore()
        self.directory = directory / "cache"
        self.cache = Cache([Level(str(self.directory), limit, free_floor=0.0)])
        self.routes = Routes(
            self.root, "root", {"data/linked": (self.linked, "linked"), "far/away": (self.deep, "deep")}
        )
        self.hand = Stagehand(self.routes, self.cache, pool=MemoryPool(64 * MIB))
        self.staged = directory / "staged"

    def put(self, path: str, content: bytes) -> Found:
        self.staged.write_bytes(content)
        return self.hand.put(path, str(self.staged))

    def read(self, version: ObjectVersion | None) -> bytes:
        assert version is not None
        return Path(self.hand.fetch(version, 0, -1).path).read_bytes()

    def names(self, path: str) -> list[str]:
        return sorted(found.entry.key for found in listed(self.hand, path))


def listed(hand: Stagehand, path: str) -> list[Found]:
    entries: list[Found] = []
    while True:
        page = hand.list(path, len(entries))
        entries += page.entries
        if page.is_last:
            return entries
        assert page.entries, "a page that is not the last one has something"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    made.root.make_directory("data")
    yield made
    made.hand.close()


def test_what_is_put_is_there_and_cached(stage: Stage) -> None:
    content = random_bytes(3 * MIB + 5)
    found = stage.put("data/file", content)
    assert found.entry.key == "data/file" and found.version is not None and found.version.size == len(content)
    assert found == stage.hand.stat("data/file")
    assert stage.read(found.version) == content
    assert stage.root.reads == [], "it came from the cache"


def test_what_is_put_can_be_written_again_without_changing_the_cache(stage: Stage) -> None:
    first = stage.put("file", b"first")
    with stage.staged.open("r+b") as file:
        file.write(b"FIRST")
    assert stage.read(first.version) == b"first"
    second = stage.hand.put("file", str(stage.staged))
    assert second.version != first.version
    assert stage.read(second.version) == b"FIRST" and stage.read(first.version) == b"first"


def test_the_store_and_the_cache_get_the_same_bytes_whatever_is_written_meanwhile(stage: Stage) -> None:
    """Somebody writes to the staged file through a mapping, which no time stamp tells."""
    stage.staged.write_bytes(bytes(2 * MIB))
    stop = threading.Event()

    def write_on() -> None:
        value = 0
        with stage.staged.open("r+b", buffering=0) as file:
            while not stop.is_set():
                value = (value + 1) % 256
                os.pwrite(file.fileno(), bytes([value]) * MIB, 0)
                os.pwrite(file.fileno(), bytes([value]) * MIB, MIB)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for _ in range(20):
            found = stage.hand.put("busy", str(stage.staged))
            assert stage.read(found.version) == stage.root.read("busy", 0, 2 * MIB)
    finally:
        stop.set()
        writer.join()
    assert stage.root.reads == [("busy", 0, 2 * MIB)] * 20, "only the test itself asked the store"


def test_a_large_file_is_uploaded_and_not_copied(stage: Stage) -> None:
    with stage.staged.open("wb") as file:
        file.truncate(COPY_UP_TO + 1)
    found = stage.hand.put("large", str(stage.staged))
    assert found.entry.size == COPY_UP_TO + 1
    assert found.version is not None
    kept = stage.cache.find(found.version)
    assert kept is None or kept.is_verified(), "kept only where a copy costs nothing"
    stage.root.delete("large")


def test_a_full_cache_does_not_stop_an_upload(tmp_path: Path) -> None:
    stage = Stage(tmp_path, limit=8192)
    found = stage.put("file", b"x" * 100_000)
    assert found.version is not None and stage.cache.find(found.version) is None
    assert stage.hand.fetch(found.version, 0, -1).path == ""
    assert stage.hand.read(found.version, 5, 7) == b"x" * 7
    assert stage.hand.read(found.version, 99_999, 10**6) == b"x" and stage.hand.read(found.version, 10**6, 1) == b""
    stage.hand.close()


def test_a_failed_upload_leaves_nothing(stage: Stage) -> None:
    with pytest.raises(NotFound):
        stage.put("no/such/directory/file", b"x")
    assert data_files(stage.directory) == []
    with pytest.raises(Unavailable, match="staged"):
        stage.hand.put("file", str(stage.staged) + ".gone")


def test_links_are_directories_of_their_parents(stage: Stage) -> None:
    stage.root.make_directory("data/linked")
    put(stage.root, "data/linked/hidden", b"")
    put(stage.root, "data/own", b"own")
    put(stage.linked, "inside", b"in")
    assert stage.names("") == ["data", "far"]
    assert stage.names("data") == ["data/linked", "data/own"]
    assert stage.names("data/linked") == ["data/linked/inside"]
    assert stage.names("far") == ["far/away"], "a directory that the root does not have"
    assert stage.names("far/away") == []
    for path in ("", "data/linked", "far", "far/away"):
        found = stage.hand.stat(path)
        assert found.entry.is_directory and found.entry.key == path and found.version is None
    inside = stage.hand.stat("data/linked/inside")
    assert inside.version == ObjectVersion("linked", "inside", inside.entry.version, 2)
    assert stage.read(inside.version) == b"in" and stage.linked.reads
    for path in ("data/none", "far/none", "data/linked/none", "data/linked/hidden"):
        with pytest.raises(NotFound):
            stage.hand.stat(path)
    with pytest.raises(NotFound):
        stage.names("nowhere")
    with pytest.raises(Invalid):
        stage.names("data/own")


def test_writes_go_to_the_links_store(stage: Stage) -> None:
    found = stage.put("data/linked/new", b"n")
    assert found.entry.key == "data/linked/new" and found.version is not None and found.version.store == "linked"
    assert stage.linked.read("new", 0, 9) == b"n"
    stage.hand.make_directory("data/linked/dir")
    stage.hand.rename("data/linked/new", "data/linked/dir/moved")
    stage.hand.set_modes("data/linked/dir/moved", mode=0o600)
    stage.hand.set_xattr("data/linked/dir/moved", "user.a", b"1")
    assert stage.hand.xattrs("data/linked/dir/moved") == {"user.a": b"1"}
    stage.hand.remove_xattr("data/linked/dir/moved", "user.a")
    assert stage.linked.stat("dir/moved").mode == 0o600
    stage.hand.make_link("data/linked/dir/symlink", "moved")
    symlink = stage.hand.stat("data/linked/dir/symlink")
    assert symlink.entry.link_target == "moved" and symlink.version is None
    for name in ("moved", "symlink"):
        stage.hand.delete(f"data/linked/dir/{name}")
    stage.hand.remove_directory("data/linked/dir")
    assert stage.names("data/linked") == [] and stage.hand.usage("data/linked") is None


def test_links_themselves_are_not_changed(stage: Stage) -> None:
    put(stage.root, "file", b"")
    attempts = [
        lambda: stage.hand.remove_directory("data/linked"),
        lambda: stage.hand.remove_directory("far"),
        lambda: stage.hand.delete("far/away"),
        lambda: stage.hand.rename("data", "elsewhere"),
        lambda: stage.hand.rename("data/linked", "elsewhere"),
        lambda: stage.hand.rename("file", "far"),
        lambda: stage.put("data/linked", b""),
        lambda: stage.hand.remove_directory(""),
        lambda: stage.hand.make_link("far/away", "x"),
    ]
    for attempt in attempts:
        with pytest.raises(InUse):
            attempt()
    for path in ("data/linked", "far"):
        with pytest.raises(Duplicate):
            stage.hand.make_directory(path)


def test_nothing_moves_between_stores(stage: Stage) -> None:
    put(stage.root, "file", b"x")
    with pytest.raises(Invalid) as caught:
        stage.hand.rename("file", "data/linked/file")
    assert caught.value.code == "CrossStore"
    assert stage.names("data/linked") == []


def test_other_routes_from_now_on(stage: Stage) -> None:
    put(stage.root, "file", b"x")
    stage.hand.use_routes(Routes(stage.linked, "root"))
    assert stage.names("") == [] and stage.hand.routes.identities == {"root"}


class PagedStore(WatchedStore):
    """Gives what it has in pages of a size, and says how many times it was asked for one."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.pages_sent = 0
        self.listings = 0

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        self.listings += 1
        at = 0
        for size in self.sizes:
            self.pages_sent += 1
            yield [ObjectEntry(key=f"{number:06}", size=1, version="v") for number in range(at, at + size)]
            at += size


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [1], [1000], [1000, 1000, 3], [999, 1000], [0, 5, 0, 0, 7, 0], [1000, 0, 1], [3000], [1, 1, 1, 1, 1]],
)
def test_every_entry_is_listed_once(tmp_path: Path, sizes: list[int]) -> None:
    store = PagedStore(sizes)
    hand = Stagehand(Routes(store, "r"), Cache([Level(str(tmp_path), PLENTY)]))
    assert [found.entry.key for found in listed(hand, "")] == [f"{number:06}" for number in range(sum(sizes))]
    assert store.listings == 1, "one listing, gone through once"
    hand.close()


class LyingStore(WatchedStore):
    """Lists names that no directory can hold, beside one that it can."""

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        names = ("..", ".", "", "nul\0", "e" * 1025, "\u00e9" * 600, "sub/../../out", "good")
        yield [ObjectEntry(key=f"{key}/{name}", size=1, version="v") for name in names]
        yield [ObjectEntry(key=other, is_directory=True) for other in ("elsewhere", f"{key}", "", f"{key}x/y")]


def test_no_store_puts_a_name_into_a_directory_that_leads_out_of_it(tmp_path: Path) -> None:
    hand = Stagehand(Routes(LyingStore(), "r"), Cache([Level(str(tmp_path), PLENTY)]))
    assert [found.entry.key for found in listed(hand, "data")] == ["data/good"]
    hand.close()


def test_the_first_page_does_not_wait_for_the_second(tmp_path: Path) -> None:
    store = PagedStore([1000] * 100)
    hand = Stagehand(Routes(store, "r"), Cache([Level(str(tmp_path), PLENTY)]))
    assert len(hand.list("").entries) == 1000 and store.pages_sent == 1
    hand.close()


def test_a_listing_that_was_let_go_goes_on_where_it_was(tmp_path: Path) -> None:
    store = PagedStore([1000] * 5)
    hand = Stagehand(Routes(store, "r"), Cache([Level(str(tmp_path), PLENTY)]))
    first = hand.list("")
    hand._listings.clear()
    second = hand.list("", len(first.entries))
    assert [found.entry.key for found in second.entries] == [f"{number:06}" for number in range(1000, 2000)]
    other = hand.list("", 1500)
    assert other.entries[0].entry.key == "001500", "from wherever one was"
    hand.close()


def test_listings_in_progress_are_bounded_and_apart(tmp_path: Path) -> None:
    store = PagedStore([1000] * 3)
    hand = Stagehand(Routes(store, "r"), Cache([Level(str(tmp_path), PLENTY)]))
    for number in range(80):
        hand.list(f"d{number}")
    assert len(hand._listings) <= 64
    one, two = hand.list(""), hand.list("")
    assert one == two
    assert hand.list("", 1000) == hand.list("", 1000), "two who are at the same place each get it"
    assert not hand.list("", 2000).is_last and hand.list("", 3000).is_last
    hand.close()


def test_it_has_every_method_of_backstage(stage: Stage) -> None:
    """The same names and arguments, on the spot and awaited."""
    methods = [name for name in vars(Backstage) if not name.startswith("_")]
    assert len(methods) > 12
    for name in methods:
        wanted = list(inspect.signature(getattr(Backstage, name)).parameters.values())
        for of in (Stagehand, DirectBackstage):
            assert list(inspect.signature(getattr(of, name)).parameters.values()) == wanted, name


def test_backstage_on_the_spot(stage: Stage) -> None:
    backstage: Backstage = DirectBackstage(stage.hand)
    stage.staged.write_bytes(b"content")

    async def play() -> None:
        found = await backstage.put("data/file", str(stage.staged), mode=0o640)
        assert found.version is not None and found.entry.mode == 0o640
        assert (await backstage.fetch(found.version, 0, -1)).is_complete
        assert await backstage.read(found.version, 3, 4) == b"tent"
        await backstage.make_directory("dir")
        await backstage.rename("data/file", "dir/file")
        await backstage.set_modes("dir/file", mode=0o600)
        await backstage.set_xattr("dir/file", "user.x", b"y")
        assert await backstage.xattrs("dir/file") == {"user.x": b"y"}
        await backstage.remove_xattr("dir/file", "user.x")
        await backstage.make_link("dir/link", "file")
        page = await backstage.list("dir")
        assert page.is_last and len(page.entries) == 2
        await backstage.delete("dir/link")
        await backstage.delete("dir/file")
        await backstage.remove_directory("dir")
        assert await backstage.usage("") is None
        with pytest.raises(NotFound):
            await backstage.stat("dir")

    run(play())


def test_who_fetches_hears_how_full_memory_is(stage: Stage) -> None:
    found = put(stage.root, "f", b"content")
    version = ObjectVersion("root", "f", found.version, 7)
    assert stage.hand.fetch(version, 0, -1).pressure == 0
    with stage.hand.pool.borrow(stage.hand.pool.limit // 2):
        assert stage.hand.fetch(version, 0, -1).pressure == pytest.approx(0.5)
