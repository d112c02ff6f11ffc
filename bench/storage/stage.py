"""Everything a run needs: the data in a bucket and beside it, the mounts of it, and the programs that read them."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bench.processes import BenchError
from bench.storage import content
from bench.storage.clients import Program
from bench.storage.daemons import Daemons
from bench.storage.ours import mount_ours
from bench.storage.servers import S3, rclone_mount
from paddleflow.pfs.options import MountOptions

MIB = 1 << 20
HOUR_S = 3600.0
NATIVE = "native"
RCLONE = "rclone"
READ_ONLY = "read-only"
DATA_SET = "data set"
NO_PASSTHROUGH = "no passthrough"
READ_WRITE = "read-write, as by default"
WRITE_BACK = "write-back"

OURS = {
    READ_ONLY: MountOptions(read_only=True, meta_ttl=HOUR_S, uid=os.getuid(), gid=os.getgid()),
    DATA_SET: MountOptions(dataset=True, read_only=True, meta_ttl=HOUR_S, uid=os.getuid(), gid=os.getgid()),
    NO_PASSTHROUGH: MountOptions(read_only=True, passthrough=False, meta_ttl=HOUR_S, uid=os.getuid(), gid=os.getgid()),
    READ_WRITE: MountOptions(uid=os.getuid(), gid=os.getgid()),
    WRITE_BACK: MountOptions(write_back=True, uid=os.getuid(), gid=os.getgid()),
}

_RCLONE_LONG = ["--dir-cache-time", "24h", "--attr-timeout", "1h", "--use-server-modtime", "--vfs-cache-max-age", "24h"]
RCLONE_READS = [*_RCLONE_LONG, "--read-only"]
RCLONE_WRITES = [*_RCLONE_LONG, "--vfs-write-back", "0s"]
"""These favour it: names and attributes are kept for long, and an upload begins as soon as a file is closed."""

SETTLED_S = 10.0
LARGE = 1 << 20
"""The number of the large file; the small ones are numbered from 0."""


class Kind(Enum):
    """What the mounts of a workload are for."""

    READ = "read"
    """Kept for the whole run, everything in their caches."""
    WRITE = "write"
    """Kept for the whole run, over the same bucket."""
    FRESH = "fresh"
    """A new mount with an empty cache, each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    rounds: int
    large: int
    small_count: int
    many: int
    first_count: int
    """Small files of the first reading from S3, and of writing."""
    copies: int
    random_s: float
    kills: int
    small_size: int = 100 * 1024
    copy_size: int = 30 * 1024

    def __str__(self) -> str:
        return (
            f"one file of {self.large // MIB:,} MiB, {self.small_count:,} of {self.small_size // 1024} KiB "
            f"({self.first_count:,} from an empty cache, and written), a directory of {self.many:,}, "
            f"{self.copies:,} of {self.copy_size // 1024} KiB copied; {self.rounds} rounds"
        )


FULL = Sizes(
    rounds=7,
    large=1024 * MIB,
    small_count=5000,
    many=10_000,
    first_count=1000,
    copies=6400,
    random_s=1,
    kills=100,
)
SHORT = Sizes(
    rounds=3,
    large=128 * MIB,
    small_count=1000,
    many=10_000,
    first_count=200,
    copies=640,
    random_s=0.3,
    kills=5,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One filesystem with the data in it."""

    name: str
    root: Path
    daemons: Daemons | None
    """None: the kernel does it all."""


class DataSet:
    """The files: a large one, many small ones in folders of a hundred, a folder of very many, and a tree to copy."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.block = content.filler()

    def make(self, root: Path) -> None:
        content.write(root / "large", LARGE, self.sizes.large, self.block)
        for number in range(self.sizes.small_count):
            path = root / self.small(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            content.write(path, number, self.sizes.small_size, self.block)
        (root / "many").mkdir()
        for number in range(self.sizes.many):
            (root / "many" / f"entry-{number:06}").write_text(f"{number}\n")

    def make_copies(self, root: Path) -> None:
        for number in range(self.sizes.copies):
            path = root / self.copy(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            content.write(path, number, self.sizes.copy_size, self.block)

    def small(self, number: int) -> str:
        return f"small/{number // 100:03}/f{number:06}"

    def copy(self, number: int) -> str:
        return f"{number // 100:03}/f{number:06}"

    def compare_large(self, root: Path) -> None:
        content.compare(root / "large", LARGE, self.sizes.large, self.block)

    def compare_small(self, root: Path, step: int) -> None:
        """Each ``step``-th."""
        for number in range(0, self.sizes.small_count, step):
            content.compare(root / self.small(number), number, self.sizes.small_size, self.block)

    def compare_many(self, root: Path) -> None:
        found = sorted(entry.name for entry in (root / "many").iterdir())
        if found != [f"entry-{number:06}" for number in range(self.sizes.many)]:
            raise content.WrongBytes(f"{root / 'many'} holds other names than were written")


class Stage:
    """Opens a side when a workload first asks for it, and keeps it until the end."""

    def __init__(self, folder: Path, s3: S3, data: DataSet, client: Program, closing: ExitStack) -> None:
        self.folder, self.s3, self.data, self.client = folder, s3, data, client
        self.sizes = data.sizes
        self.filler = folder / "filler"
        self.filler.write_bytes(data.block)
        self.copied = folder / "copied"
        data.make_copies(self.copied)
        self._closing = closing
        self._open: dict[tuple[str, Kind], Side] = {}
        self._failed: dict[tuple[str, Kind], BenchError] = {}
        self._mounts = 0

    def side(self, name: str, kind: Kind) -> Side:
        """A mount that could not be made is not tried again."""
        if (name, kind) in self._failed:
            raise self._failed[name, kind]
        if (name, kind) not in self._open:
            try:
                side = self._closing.enter_context(self._opened(name, kind))
            except BenchError as error:
                self._failed[name, kind] = error
                raise
            if kind is Kind.READ:
                self._fill(side)
            self._open[name, kind] = side
        return self._open[name, kind]

    @contextmanager
    def fresh(self, name: str) -> Iterator[Side]:
        """With nothing in its cache, which is deleted afterwards."""
        cache = self.folder / "fresh-cache"
        try:
            with self._opened(name, Kind.FRESH, cache) as side:
                settle(side)
                yield side
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def shuffled(self, side: Side, count: int) -> Path:
        """The small files of a side in random order, as a list for the client."""
        path = self.folder / "list"
        numbers = list(range(count))
        random.Random(count).shuffle(numbers)
        path.write_text("".join(f"{number} {side.root / self.data.small(number)}\n" for number in numbers))
        return path

    @contextmanager
    def _opened(self, name: str, kind: Kind, cache: Path | None = None) -> Iterator[Side]:
        if name == NATIVE:
            yield Side(name=name, root=self.folder / NATIVE, daemons=None)
            return
        self._mounts += 1
        mountpoint = self.folder / "mounts" / str(self._mounts)
        with self._mounted(name, kind, mountpoint, cache) as daemons:
            yield Side(name=name, root=mountpoint, daemons=daemons)

    def _mounted(self, name: str, kind: Kind, mountpoint: Path, cache: Path | None) -> AbstractContextManager[Daemons]:
        log = self.folder / "logs" / f"{mountpoint.name}.log"
        if name == RCLONE:
            options = RCLONE_WRITES if kind is Kind.WRITE else RCLONE_READS
            own = cache or self.folder / f"rclone-cache-{kind.value}"  # it cannot share one between mounts
            return rclone_mount(self.s3, mountpoint, own, log, options)
        return mount_ours(self.s3, mountpoint, cache or self.folder / "cache", self.folder / "state", OURS[name])

    def _fill(self, side: Side) -> None:
        """Read everything once, and look at every byte of it."""
        self.data.compare_large(side.root)
        self.data.compare_small(side.root, 1)
        self.data.compare_many(side.root)


def settle(side: Side) -> None:
    """Until a mount has started all it starts: the store was asked once, and its processes rest."""
    assert side.daemons is not None
    list(side.root.iterdir())
    before = -1.0
    deadline = time.monotonic() + SETTLED_S
    while (now := side.daemons.cpu_seconds()) != before and time.monotonic() < deadline:
        before = now
        time.sleep(0.2)
