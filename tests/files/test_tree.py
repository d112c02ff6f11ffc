"""Directories, removing, moving, warming, on every store."""

from __future__ import annotations

import pytest

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.domain.errors import InUse, Invalid
from paddleflow.files import Files
from paddleflow.sdk.file_access import Transferred
from tests.files.conftest import Storage, Writes


def names(files: Files, path: str) -> list[str]:
    return [one.path + ("/" if one.is_directory else "") for one in files.ls("data", path)]


def test_ls_walk_stat(files: Files, write: Writes) -> None:
    write("/a/b/c", b"123")
    write("/a/ä ö#%?+'\"", b"12")
    assert names(files, "/") == ["/a/"]
    assert names(files, "a") == ["/a/b/", "/a/ä ö#%?+'\""]
    assert names(files, "/a/b/c") == ["/a/b/c"]
    walked = [
        (path, [one.name for one in below], [one.name for one in rest]) for path, below, rest in files.walk("data")
    ]
    assert walked == [("/", ["a"], []), ("/a", ["b"], ["ä ö#%?+'\""]), ("/a/b", [], ["c"])]
    entry = files.stat("data", "/a/b/c")
    assert (entry.size, entry.kind, entry.name) == (3, "file", "c")
    assert entry.modified > 1.6e9
    assert entry.version
    assert files.stat("data", "/a").kind == "directory"
    assert files.exists("data", "/a/b")
    assert not files.exists("data", "/a/b/none")
    for ask in (files.ls, files.stat, lambda fs, path: list(files.walk(fs, path))):
        with pytest.raises(FileNotFoundError):
            ask("data", "/none")


def test_a_directory_of_many_pages(files: Files, storage: Storage, write: Writes) -> None:
    if storage.stores["data"].__class__.__name__ not in ("MemoryStore", "DirectoryStore"):
        pytest.skip("thousands of uploads to the S3 server take long; paging is the same")
    for index in range(2100):
        write(f"/many/{index:05}", b"")
    assert [one.name for one in files.ls("data", "/many")] == [f"{index:05}" for index in range(2100)]


def test_mkdir(files: Files, write: Writes) -> None:
    files.mkdir("data", "/d")
    assert files.ls("data", "/d") == []
    with pytest.raises(FileExistsError):
        files.mkdir("data", "/d")
    files.mkdir("data", "/d", parents=True)
    files.mkdir("data", "/x/y/z", parents=True)
    assert files.stat("data", "/x/y/z").is_directory
    write("/f", b"")
    with pytest.raises(NotADirectoryError):
        files.mkdir("data", "/f/below", parents=True)


def test_rm(files: Files, write: Writes) -> None:
    for path in ("/d/a", "/d/e/b", "/d/e/f/c", "/other"):
        write(path, b"x")
    files.mkdir("data", "/d/empty", parents=True)
    with pytest.raises(IsADirectoryError):
        files.rm("data", "/d")
    assert files.exists("data", "/d/e/f/c")
    files.rm("data", "/d/a")
    assert not files.exists("data", "/d/a")
    files.rm("data", "/d", recursive=True)
    assert not files.exists("data", "/d")
    assert files.exists("data", "/other")
    with pytest.raises(FileNotFoundError):
        files.rm("data", "/d", recursive=True)


def test_linked_storage_is_seen_and_not_removed(storage: Storage) -> None:
    linked = MemoryStore()
    storage.stores["data"].make_directory("d")
    storage.links["data"] = {"d/linked": linked}
    files = storage.files()
    with files.open("data", "/d/linked/f", "w") as file:
        file.write("there")
    assert [one.key for page in linked.list("") for one in page] == ["f"]
    assert names(files, "/d") == ["/d/linked/"]
    assert files.cat("data", "/d/linked/f") == b"there"
    for path in ("/", "/d", "/d/linked"):
        with pytest.raises(InUse, match="unlink"):
            files.rm("data", path, recursive=True)
    files.mv("data:/d/linked/f", "data:/d/g")
    assert files.cat("data", "/d/g") == b"there"
    assert list(files.ls("data", "/d/linked")) == []
    files.close()


def test_mv(files: Files, write: Writes) -> None:
    write("/d/f", b"1")
    files.mv("data:/d/f", "data:/d/g")
    assert names(files, "/d") == ["/d/g"]
    files.mkdir("data", "/into", parents=True)
    files.mv("data:/d", "data:/into")
    assert files.cat("data", "/into/d/g") == b"1"
    assert not files.exists("data", "/d")
    files.mv("data:/into", "other:/moved")
    assert files.cat("other", "/moved/d/g") == b"1"
    assert not files.exists("data", "/into")
    with pytest.raises(FileNotFoundError):
        files.mv("data:/none", "data:/x")
    with pytest.raises(Invalid, match="FSNAME:/path"):
        files.mv("/local", "data:/x")


def test_warm_and_evict(storage: Storage, files: Files, write: Writes) -> None:
    content = {f"/set/{index}": bytes([index]) * 1000 for index in range(20)} | {"/set/large": b"x" * (5 << 20)}
    for path, data in content.items():
        write(path, data)
    assert files.evict("data", "/") > 0
    told: list[Transferred] = []
    done = files.warm("data", ["/set"], parallel=3, progress=told.append)
    assert (done.files, done.total_files) == (21, 21)
    assert done.bytes == done.total_bytes == sum(map(len, content.values()))
    assert [one.files for one in told] == sorted(one.files for one in told)
    fetcher = storage.opened[0].stagehand.fetcher
    before = fetcher.tally.requests
    assert {path: files.cat("data", path) for path in content} == content
    assert fetcher.tally.requests == before
    freed = files.evict("data", "/set/large")
    assert freed >= 5 << 20
    files.cat("data", "/set/1")
    assert fetcher.tally.requests == before
    files.cat("data", "/set/large")
    assert fetcher.tally.requests > before
    with pytest.raises(FileNotFoundError):
        files.warm("data", ["/none"])


def test_warming_tells_what_could_not_be(storage: Storage, write: Writes) -> None:
    write("/a", b"x" * 5000)
    poor = Storage(storage.cache_dir / "small", storage.stores, limit=1)
    files = poor.files()
    with pytest.raises(OSError, match="1 of 1 files are not cached; /a: the cache has no room"):
        files.warm("data")
    files.close()
