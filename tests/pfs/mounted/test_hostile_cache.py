"""Whatever happens to the cache's files, readers of a mount get the store's bytes: damaged, cut, deleted, full, too
small, or shared by several mounts and programs at once."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from paddleflow.pfs.cache import Cache, Level
from paddleflow.pfs.stagehand import Stagehand
from paddleflow.wiring.stores import open_routes
from tests.pfs.mounted.places import is_whole, local_store, stamped
from tests.pfs.mounts import RealMount, mounted
from tests.pfs.programs import await_more, finish, start
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.timeout(300)

SIZES = [1, 5_000, 300_000, 5 << 20]
"""Read through the kernel and, the last one, through us."""


@pytest.fixture
def contents(tmp_path: Path) -> dict[str, bytes]:
    store = tmp_path / "store"
    store.mkdir()
    found = {f"f{number}": stamped(number, size) for number, size in enumerate(SIZES)}
    for name, content in found.items():
        (store / name).write_bytes(content)
    return found


def read_all(mount: RealMount, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        assert (mount.path / name).read_bytes() == content, name


def files_in(cache: Path, kind: str) -> list[Path]:
    found = [path for path in (cache / "pfcache1" / kind).rglob("*") if path.is_file()]
    assert found, f"the cache has no {kind}: nothing is tested"
    return found


def flip_a_bit(path: Path) -> None:
    with path.open("r+b") as file:
        content = bytearray(file.read())
        if content:
            content[len(content) // 2] ^= 4
        file.seek(0)
        file.write(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more" * 5000)


def garble(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(max(path.stat().st_size, 100)))


def make_a_directory_of_it(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], None]] = [flip_a_bit, cut, empty, lengthen, garble, Path.unlink]


@pytest.mark.parametrize("passthrough", [True, False], ids=["passthrough", "without"])
def test_damage_between_two_opens(tmp_path: Path, contents: dict[str, bytes], passthrough: bool) -> None:
    cache = tmp_path / "cache"
    with mounted(tmp_path, local_store(tmp_path), passthrough=passthrough) as mount:
        for damage in DAMAGES:
            for kind in ("data", "entries"):
                read_all(mount, contents)
                for path in files_in(cache, kind):
                    damage(path)
                read_all(mount, contents)
        shutil.rmtree(cache)
        read_all(mount, contents)
        read_all(mount, contents)
        for name, content in contents.items():
            with open(mount.path / name, "ab") as file:  # the copy that is written to begins with the store's bytes
                for path in files_in(cache, "data"):
                    flip_a_bit(path)
                file.write(b"+")
            assert (tmp_path / "store" / name).read_bytes() == content + b"+", name


def test_damage_while_nobody_is_mounted(tmp_path: Path, contents: dict[str, bytes]) -> None:
    for damage in (flip_a_bit, cut):
        with mounted(tmp_path, local_store(tmp_path)) as mount:
            read_all(mount, contents)
        for path in files_in(tmp_path / "cache", "data"):
            damage(path)
    for path in files_in(tmp_path / "cache", "entries"):
        make_a_directory_of_it(path)
    with mounted(tmp_path, local_store(tmp_path)) as mount:
        read_all(mount, contents)


def test_a_disk_that_is_full(tmp_path: Path, contents: dict[str, bytes]) -> None:
    with (
        small_disk(tmp_path / "disk", "1m") as disk,
        mounted(tmp_path, local_store(tmp_path), levels=(Level(str(disk), 1 << 30, free_floor=0.0),)) as mount,
    ):
        read_all(mount, contents)
        fill(disk)
        mount.kill_front()
        read_all(mount, contents)
        for name, content in contents.items():
            with open(mount.path / name, "ab") as file:
                file.write(b"+")
            assert (tmp_path / "store" / name).read_bytes() == content + b"+"


READER = """
import os, random, sys
from tests.pfs.mounted.places import is_whole
mnt, stop, seed, log = sys.argv[1:]
chance, steps = random.Random(int(seed)), open(log, "ab", buffering=0)
while not os.path.exists(stop):
    for name in chance.sample(sorted(os.listdir(mnt)), 10):
        with open(f"{mnt}/{name}", "rb", buffering=0) as file:
            content = b"".join(iter(lambda: file.read(100_000), b""))
        if not is_whole(content) or not content:
            sys.exit(f"{name} has other bytes")
        steps.write(b".")
"""


def test_two_mounts_and_a_program_share_a_cache_that_is_too_small(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    for number in range(24):
        (tmp_path / "store" / f"f{number}").write_bytes(stamped(number, 200_000 + number * 20_000))
    (tmp_path / "store" / "large").write_bytes(stamped(99, 6 << 20))
    levels = (Level(str(tmp_path / "cache"), 2 << 20, free_floor=0.0),)
    stop, logs = tmp_path / "stop", [tmp_path / f"log{seed}" for seed in range(3)]
    with (
        ExitStack() as started,
        mounted(tmp_path / "one", store, levels=levels) as one,
        mounted(tmp_path / "two", store, levels=levels) as two,
        closing(Stagehand(open_routes([store]), Cache(levels))) as hand,
    ):
        users = [
            start(started, READER, mount.path, stop, seed, logs[seed]) for seed, mount in enumerate((one, one, two))
        ]
        await_more(users, *logs)
        for turn in range(60):
            name = f"f{turn * 7 % 24}"
            found = hand.stat(name)
            assert found.version is not None
            hand.fetch(found.version, 0, -1)
            Cache(levels).trim()
            assert is_whole(hand.read(found.version, 0, found.version.size))
            if turn == 30:
                one.kill_front()
                shutil.rmtree(tmp_path / "cache", ignore_errors=True)
                await_more(users, *logs)
        stop.touch()
        finish(users)
    Cache(levels).trim()
    assert Cache(levels).usage().bytes <= 3 << 20
