"""Copies: up, down, across; each file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from paddleflow.domain.errors import Invalid, NotFound, Stale
from paddleflow.files import Files
from paddleflow.files.copying import Copy
from paddleflow.sdk.file_access import Transferred
from tests.files.conftest import Storage, Writes

MIB = 1 << 20


def tree_of(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    dice = random.Random(3)
    for name, size in {"a": 10, "d/b": 100_000, "d/e/large": 20 * MIB + 1, "d/e/empty": 0, "ü x/#": 5}.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(dice.randbytes(size))
    return top


def test_a_tree_up_across_and_down(files: Files, tree: Path, tmp_path: Path) -> None:
    (tree / "hollow").mkdir()
    told: list[Transferred] = []
    done = files.cp(tree, "data:/up", recursive=True, progress=told.append)
    size = sum(len(content) for content in tree_of(tree).values())
    assert (done.files, done.total_files, done.bytes, done.total_bytes) == (5, 5, size, size)
    assert told[-1] == done
    files.cp("data:/up", "data:/copy", recursive=True)
    files.cp("data:/copy", "other:/far/", recursive=True)
    done = files.cp("other:/far", tmp_path / "down", recursive=True, progress=told.append)
    assert (done.files, done.bytes) == (5, size)
    assert tree_of(tmp_path / "down") == tree_of(tree)
    assert (tmp_path / "down" / "hollow").is_dir()


@pytest.mark.parametrize("cached", [True, False])
def test_down_with_and_without_the_cache(
    storage: Storage, files: Files, tree: Path, tmp_path: Path, cached: bool
) -> None:
    files.cp(tree, "data:/up", recursive=True)
    files.evict("data")
    if cached:
        files.warm("data")
    before = storage.opened[0].cache.usage().bytes
    files.cp("data:/up", tmp_path / "down", recursive=True)
    assert tree_of(tmp_path / "down") == tree_of(tree)
    assert storage.opened[0].cache.usage().bytes == before, "a copy does not fill the cache"


@pytest.mark.parametrize(
    ("source", "target", "ends"),
    [
        ("data:/d/f", "{local}/x", "x"),
        ("data:/d/f", "{local}", "f"),
        ("data:/d/f", "{local}/", "f"),
        ("data:d/f", "{local}/there", "there/f"),
        ("data:/d", "{local}/new", "new/f"),
        ("data:/d", "{local}/there", "there/d/f"),
        ("data:/", "{local}/new", "new/d/f"),
        ("data:", "{local}/there", "there/d/f"),
    ],
)
def test_where_it_goes(on_local: Storage, tmp_path: Path, source: str, target: str, ends: str) -> None:
    files = on_local.files()
    with files.open("data", "/d/f", "wb") as file:
        file.write(b"content")
    local = tmp_path / "local"
    (local / "there").mkdir(parents=True)
    files.cp(source, target.format(local=local), recursive=True)
    assert tree_of(local) == {ends: b"content"}
    files.close()


def test_where_it_goes_up(on_local: Storage, tmp_path: Path) -> None:
    files = on_local.files()
    source = tmp_path / "f"
    source.write_bytes(b"1")
    files.mkdir("data", "/there")
    for target, ends in {
        "data:/x": "/x",
        "data:/there": "/there/f",
        "data:/new/": "/new/f",
        "data:": "/f",
        "data:/deep/er/x": "/deep/er/x",
    }.items():
        files.cp(source, target)
        assert files.cat("data", ends) == b"1", target
    files.close()


def test_modes_and_links_where_they_can_be_held(storage: Storage, files: Files, tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "d").mkdir(parents=True)
    (top / "run").write_bytes(b"#!")
    (top / "run").chmod(0o750)
    (top / "link").symlink_to("run")
    (top / "folder").symlink_to("d")
    if storage.stores["data"].traits.holds_links:
        files.cp(top, "data:/up", recursive=True)
        assert files.stat("data", "/up/run").mode == 0o750
        files.cp("data:/up", tmp_path / "down", recursive=True)
        assert os.readlink(tmp_path / "down" / "link") == "run"
        assert os.readlink(tmp_path / "down" / "folder") == "d"
        assert (tmp_path / "down" / "run").stat().st_mode & 0o777 == 0o750
    else:
        with pytest.raises(Invalid, match="cannot hold the symbolic link"):
            files.cp(top, "data:/up", recursive=True)
        assert files.cat("data", "/up/link") == b"#!", "the file behind a link is copied"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_interrupted_it_leaves_no_half_file(
    files: Files, tree: Path, tmp_path: Path, error: type[BaseException]
) -> None:
    files.cp(tree, "data:/up", recursive=True)
    files.evict("data")
    (tmp_path / "down").mkdir()
    (tmp_path / "down" / "a").write_bytes(b"old")

    def interrupt(so_far: Transferred) -> None:
        if so_far.bytes > 8 * MIB:
            raise error

    with pytest.raises(error):
        files.cp("data:/up/d/e/large", tmp_path / "down" / "a", progress=interrupt)
    assert tree_of(tmp_path / "down") == {"a": b"old"}
    with pytest.raises(error):
        files.cp("data:/up", tmp_path / "again", recursive=True, progress=interrupt)
    whole = tree_of(tree)
    left = tree_of(tmp_path / "again")
    assert left.items() <= whole.items()
    assert "d/e/large" not in left


def test_one_that_fails_is_named_and_ends_it(files: Files, tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "d" / "pipe")
    with pytest.raises(Invalid, match=r"d/pipe is neither a file nor a directory"):
        files.cp(tree, "data:/up", recursive=True)


@pytest.mark.parametrize(
    ("source", "target", "recursive", "error", "said"),
    [
        ("data:/none", "{tmp}/x", False, NotFound, "data:/none"),
        ("{tmp}/none", "data:/x", False, FileNotFoundError, "none is not there"),
        ("data:/d", "{tmp}/x", False, IsADirectoryError, "-r, or recursive=True"),
        ("data:/d", "data:/d/e", True, Invalid, "into itself"),
        ("data:/d/f", "data:/d/f", False, Invalid, "the same"),
        ("data:/d", "data:/d/f", True, NotADirectoryError, "is a file"),
        ("data:/d/f", "{tmp}/no/such/place", False, FileNotFoundError, "make it first"),
        ("data:/../x", "{tmp}/x", False, Invalid, "should not have"),
        ("", "{tmp}/x", False, Invalid, "FSNAME:/path"),
        ("{tmp}/none", "{tmp}/x", False, Invalid, "is on a filesystem: write FSNAME:/path"),
        ("data:/no/file", "{tmp}/x", False, FileNotFoundError, "data:/no: it is not there"),
    ],
)
def test_bad_input_names_what_is_wrong(
    on_local: Storage,
    tmp_path: Path,
    source: str,
    target: str,
    recursive: bool,
    error: type[Exception],
    said: str,
) -> None:
    files = on_local.files()
    with files.open("data", "/d/f", "wb") as file:
        file.write(b"1")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error) as caught:
        files.cp(source.format(tmp=tmp_path), target.format(tmp=tmp_path), recursive=recursive)
    assert said in str(caught.value)
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before and "cache" not in path.parts] == []
    files.close()


def test_at_least_one_at_a_time(on_local: Storage) -> None:
    files = on_local.files()
    with pytest.raises(Invalid, match="parallel should be 1 or more"):
        Copy(files._filesystems, 0, lambda _: None)
    files.close()


def test_a_file_that_is_replaced_while_it_is_copied(files: Files, write: Writes, tmp_path: Path) -> None:
    first, second = b"1" * (20 * MIB), b"2" * (20 * MIB)
    write("/f", first)
    files.evict("data")
    done = False

    def replace(so_far: Transferred) -> None:
        nonlocal done
        if so_far.bytes and not done:
            done = True
            write("/f", second)

    with contextlib.suppress(Stale):
        files.cp("data:/f", tmp_path / "f", progress=replace)
    assert done
    assert not (tmp_path / "f").exists() or (tmp_path / "f").read_bytes() in (first, second)
