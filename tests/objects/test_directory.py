"""A directory as an object store: the contract, and that there is no way out of it."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddleflow.adapters.objects.directory import DirectoryStore
from paddleflow.domain.errors import Denied, Invalid, NotFound, PaddleFlowError, Stale
from paddleflow.ports.objects import ObjectStore
from tests.objects.contract import ObjectStoreContract, get, listed, put, walked


class TestDirectoryStore(ObjectStoreContract):
    examples = 60

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], ObjectStore]:
        numbers = itertools.count()

        def make() -> ObjectStore:
            directory = tmp_path / str(next(numbers))
            directory.mkdir()
            return DirectoryStore(str(directory))

        return make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> DirectoryStore:
    return DirectoryStore(str(root))


def test_no_call_goes_through_a_link(store: DirectoryStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "way").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    put(store, "mine", b"mine")
    calls: list[Callable[[], object]] = [
        lambda: store.stat("way/secret"),
        lambda: store.read("way/secret", 0, 10),
        lambda: store.read("file", 0, 10),
        lambda: listed(store, "way"),
        lambda: walked(store, "way"),
        lambda: put(store, "way/new", b"x"),
        lambda: store.delete("way/secret"),
        lambda: store.make_directory("way/new"),
        lambda: store.remove_directory("way"),
        lambda: store.rename("way/secret", "stolen"),
        lambda: store.rename("mine", "way/new"),
        lambda: store.copy("file", "stolen"),
        lambda: store.copy("mine", "way/new"),
        lambda: store.set_modes("way/secret", mode=0o777),
        lambda: store.set_modes("file", mode=0o777),
        lambda: store.make_link("way/new", "x"),
        lambda: store.set_xattr("way/secret", "user.x", b""),
    ]
    for call in calls:
        with pytest.raises((NotFound, Invalid)):
            call()
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").stat().st_mode & 0o777 != 0o777
    assert set(walked(store)) == {"way", "file", "mine"}


def test_writing_over_a_link_replaces_the_link(store: DirectoryStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("as it was")
    (root / "l").symlink_to(tmp_path / "outside")
    put(store, "l", b"new")
    assert (tmp_path / "outside").read_text() == "as it was"
    assert get(store, "l") == b"new" and store.stat("l").link_target is None
    put(store, "plain", b"new")
    assert store.stat("l").mode == store.stat("plain").mode


def test_what_has_no_content_is_left_out(store: DirectoryStore, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        assert listed(store) == {}
        for key in ("pipe", "socket"):
            with pytest.raises(NotFound):
                store.stat(key)
            with pytest.raises(PaddleFlowError):
                store.read(key, 0, 1)


def test_drafts_of_dead_writers_are_not_seen_and_do_not_keep_a_directory(store: DirectoryStore, root: Path) -> None:
    store.make_directory("d")
    (root / "d" / ".pf-0123").write_text("half")
    assert listed(store, "d") == {} and set(walked(store)) == {"d"}
    store.remove_directory("d")
    assert walked(store) == {}


def test_a_failed_write_leaves_nothing_behind(store: DirectoryStore, root: Path) -> None:
    read_end, write_end = os.pipe()
    try:
        with pytest.raises(PaddleFlowError):
            store.write("f", read_end, 10)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert list(root.iterdir()) == []


def test_a_change_by_somebody_else_is_another_version(store: DirectoryStore, root: Path) -> None:
    version = put(store, "f", b"old").version
    (root / "f").write_text("new")
    with pytest.raises(Stale):
        store.read("f", 0, 3, version=version)


def test_the_root_may_be_a_link_and_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    store = DirectoryStore(str(tmp_path / "root"))
    store.check()
    put(store, "f", b"x")
    assert (tmp_path / "real" / "f").read_bytes() == b"x"
    (tmp_path / "file").write_text("")
    for missing in ("none", "file"):
        with pytest.raises(NotFound, match=missing):
            DirectoryStore(str(tmp_path / missing)).check()


@pytest.fixture
def as_nobody() -> Iterator[None]:
    if os.geteuid():
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_permissions_are_the_systems(tmp_path_factory: pytest.TempPathFactory, as_nobody: None) -> None:
    # Created by the ordinary user, so that it may be entered by him.
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        store = DirectoryStore(name)
        put(store, "f", b"x")
        store.make_directory("d")
        put(store, "d/g", b"y")
        store.set_modes("f", mode=0)
        store.set_modes("d", mode=0o555)
        try:
            for call in (
                lambda: store.read("f", 0, 1),
                lambda: put(store, "d/new", b""),
                lambda: store.delete("d/g"),
                lambda: store.set_modes("f", uid=0),
            ):
                with pytest.raises(Denied):
                    call()
            put(store, "f", b"replaced", mode=0o600)
            assert get(store, "f") == b"replaced"
        finally:
            store.set_modes("d", mode=0o755)


def test_usage_is_that_of_the_disk(store: DirectoryStore, root: Path) -> None:
    usage = store.usage()
    assert usage is not None
    assert usage.total == os.statvfs(root).f_blocks * os.statvfs(root).f_frsize
