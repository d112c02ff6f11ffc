"""The platform's own work on users' filesystems, over object stores: the contract of Files, and that the answers are
those of a plain directory of the same content."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.adapters.directories import DirectoryFiles
from paddleflow.adapters.objects.directory import DirectoryStore
from paddleflow.adapters.objects.files import StoredFiles
from paddleflow.adapters.objects.keys import parent_of
from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.adapters.objects.sftp import open_sftp
from paddleflow.domain.errors import Duplicate, Invalid, NotFound, TooLarge, Unavailable
from paddleflow.domain.filesystems import Filesystem
from paddleflow.ports.objects import ObjectStore
from tests.contracts import samples
from tests.contracts.files_contract import FilesContract, MakeDirectory, Write
from tests.objects.conftest import MakeS3
from tests.objects.contract import put
from tests.objects.sshd import SshServer, start_sshd


def make_directories(store: ObjectStore, key: str) -> None:
    for depth in range(1, len(key.split("/")) + 1):
        try:
            store.make_directory("/".join(key.split("/")[:depth]))
        except Duplicate:
            continue


def write_to(store: ObjectStore, key: str, content: bytes) -> None:
    if parent_of(key):
        make_directories(store, parent_of(key))
    put(store, key, content)


class StoredFilesContract(FilesContract):
    @pytest.fixture
    def store(self) -> Iterator[ObjectStore]:
        raise NotImplementedError

    @pytest.fixture
    def fs(self) -> Filesystem:
        return samples.filesystem(type="sftp")

    @pytest.fixture
    def files(self, store: ObjectStore, fs: Filesystem) -> StoredFiles:
        def open_store(wanted: Filesystem) -> ObjectStore:
            if wanted.type != fs.type:
                raise Invalid(f"a filesystem of type [{wanted.type}] has no store here")
            return store

        return StoredFiles(open_store)

    @pytest.fixture
    def write(self, store: ObjectStore) -> Write:
        return lambda path, content: write_to(store, path, content)

    @pytest.fixture
    def make_directory(self, store: ObjectStore) -> MakeDirectory:
        return lambda path: make_directories(store, path)


class TestOverMemory(StoredFilesContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


class TestOverADirectory(StoredFilesContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ObjectStore]:
        store = DirectoryStore(str(tmp_path))
        yield store
        store.close()


class TestOverS3(StoredFilesContract):
    """Flat: directories are prefixes, and trees are walked at once."""

    @pytest.fixture
    def store(self, open_rclone: MakeS3) -> ObjectStore:
        return open_rclone()


@pytest.fixture(scope="module")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    server = start_sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


class TestOverSftp(StoredFilesContract):
    @pytest.fixture
    def store(self, ssh_server: SshServer, tmp_path: Path) -> Iterator[ObjectStore]:
        store = open_sftp(ssh_server.address, str(tmp_path), ssh_server.properties())
        yield store
        store.close()


# The same as a plain directory

NAMES = st.sampled_from(["a", "b", "a.b", "a-b", ".pipeline", "ä", os.fsdecode(b"\xff")])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TREES = st.lists(
    st.one_of(
        st.tuples(st.just("file"), PATHS, st.binary(max_size=20)),
        st.tuples(st.just("directory"), PATHS, st.just(b"")),
        st.tuples(st.just("link"), PATHS, st.sampled_from([b"a", b"../x", b"/nowhere/at/all"])),
    ),
    max_size=15,
)


@settings(max_examples=60)
@given(tree=TREES, asked=st.lists(PATHS, max_size=6))
def test_every_answer_is_that_of_a_directory(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, str, bytes]], asked: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    memory = MemoryStore()
    for kind, path, content in tree:
        place = root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "file":
                    place.write_bytes(content)
                case "link":
                    place.symlink_to(os.fsdecode(content))
                case _:
                    place.mkdir()
        except OSError:
            continue
    copy_into(memory, root)
    plain = samples.filesystem(type="local", sub_path=str(root))
    stored = samples.filesystem(type="sftp")
    on_disk, in_memory = DirectoryFiles(), StoredFiles(lambda _: memory)
    for path in ["", *asked, *(path for _, path, _ in tree)]:
        for call in (
            lambda files, fs, path=path: files.read(fs, path, 10),
            lambda files, fs, path=path: files.read_range(fs, path, 2, 5),
            lambda files, fs, path=path: told(files.entry(fs, path)),
            lambda files, fs, path=path: [told(entry) for entry in files.walk(fs, path)],
            lambda files, fs, path=path: files.digest(fs, path),
        ):
            assert outcome(lambda call=call: call(in_memory, stored)) == outcome(lambda call=call: call(on_disk, plain))
    for path in asked:
        assert outcome(lambda path=path: in_memory.remove(stored, path)) == outcome(
            lambda path=path: on_disk.remove(plain, path)
        )
        assert outcome(lambda path=path: in_memory.make_way(stored, path)) == outcome(
            lambda path=path: on_disk.make_way(plain, path)
        )
        assert in_memory.digest(stored, "") == on_disk.digest(plain, "")


def copy_into(store: MemoryStore, root: Path) -> None:
    for place, directories, names in os.walk(root):
        directory = os.path.relpath(place, root)
        for name in directories + names:
            full = os.path.join(place, name)
            key = name if directory == "." else f"{directory}/{name}"
            if os.path.islink(full):
                store.make_link(key, os.readlink(full))
            elif os.path.isdir(full):
                store.make_directory(key)
            else:
                put(store, key, Path(full).read_bytes())


def told(entry: object) -> tuple[object, ...]:
    return tuple(getattr(entry, name) for name in ("path", "is_directory", "is_link", "is_special", "size"))


def outcome(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except (NotFound, Invalid) as error:
        return type(error).__name__, error.details
    except (TooLarge, Unavailable) as error:
        return type(error).__name__


# Stores are kept


class CountedStore(MemoryStore):
    """A store in memory that knows whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Opener:
    def __init__(self) -> None:
        self.opened: list[CountedStore] = []

    def __call__(self, fs: Filesystem) -> ObjectStore:
        store = CountedStore()
        put(store, "f", fs.name.encode())
        self.opened.append(store)
        return store


def test_a_store_is_kept_until_its_filesystem_changes() -> None:
    opener = Opener()
    files = StoredFiles(opener)
    for _ in range(3):
        assert files.read(samples.filesystem(version=1), "f", 10) == b"data"
    assert len(opener.opened) == 1
    assert files.read(samples.filesystem(version=2), "f", 10) == b"data"
    assert [store.is_closed for store in opener.opened] == [True, False]


def test_only_so_many_stores_are_kept_the_last_used_ones() -> None:
    opener = Opener()
    files = StoredFiles(opener, most_stores=2)
    for name in ("a", "b", "a", "c", "a"):
        assert files.read(samples.filesystem(name), "f", 10) == name.encode()
    assert [store.is_closed for store in opener.opened] == [False, True, False]
    files.close()
    assert all(store.is_closed for store in opener.opened)


def test_a_store_is_not_closed_under_a_walk() -> None:
    opener = Opener()
    files = StoredFiles(opener)
    walk = files.walk(samples.filesystem(version=1), "")
    next(walk)
    files.read(samples.filesystem(version=2), "f", 10)
    assert not opener.opened[0].is_closed
    assert [entry.path for entry in walk] == ["f"]
    assert opener.opened[0].is_closed


# Digests are remembered


class ReadCounted(MemoryStore):
    reads = 0

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        self.reads += 1
        return super().read(key, start, size, version=version)


def test_a_digest_is_remembered_once_its_version_is_old_enough() -> None:
    store = ReadCounted()
    put(store, "f", b"1234")
    written = store.stat("f").modified_ns
    now = [written + 1_900_000_000]
    files = StoredFiles(lambda _: store, now_ns=lambda: now[0])
    fs = samples.filesystem()
    one = files.digest(fs, "f")
    assert files.digest(fs, "f") == one and store.reads == 2, "a young version was remembered"
    now[0] = written + 2_000_000_000
    for _ in range(3):
        assert files.digest(fs, "f") == one
    assert store.reads == 3
    put(store, "f", b"4321")
    assert files.digest(fs, "f") != one


def test_a_file_that_changes_while_it_is_read_is_read_again() -> None:
    class Restless(MemoryStore):
        changes = itertools.count()

        def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
            if next(self.changes) < 2:
                put(self, key, b"other")
            return super().read(key, start, size, version=version)

    store = Restless()
    put(store, "f", b"first")
    files = StoredFiles(lambda _: store)
    assert files.read(samples.filesystem(), "f", 10) == b"other"
    store.changes = itertools.count(-100)
    with pytest.raises(Unavailable):
        files.digest(samples.filesystem(), "f")


def test_what_nobody_wants_any_more_is_given_up() -> None:
    store = MemoryStore()
    for number in range(10):
        write_to(store, f"d/{number}/f", b"x")
    files, fs = StoredFiles(lambda _: store), samples.filesystem()
    for call in (lambda: files.digest(fs, "d", lambda: False), lambda: files.remove(fs, "d", lambda: False)):
        with pytest.raises(Unavailable, match="nobody"):
            call()
    answers = iter([True] * 6)
    with pytest.raises(Unavailable, match="in part"):
        files.remove(fs, "d", lambda: next(answers, False))
    assert 0 < len([entry for page in store.list("d") for entry in page]) < 10
    files.remove(fs, "d")
    assert [entry.path for entry in files.walk(fs, "")] == [""]
