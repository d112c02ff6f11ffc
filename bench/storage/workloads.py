"""The workloads: what is done, on which sides, and what we aim for."""

from __future__ import annotations

import subprocess
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import BenchError, wait_until
from bench.storage import content
from bench.storage.clients import PATIENCE_S, PYTHON, Program, Took
from bench.storage.stage import (
    DATA_SET,
    LARGE,
    NATIVE,
    NO_PASSTHROUGH,
    RCLONE,
    READ_ONLY,
    READ_WRITE,
    WRITE_BACK,
    Kind,
    Side,
    Stage,
)

CLOSED = "until closed"
STORED = "until in the store"
STORED_S = 180.0
"""How long an upload in the background may take."""
STAT_PASSES = 10
DIRECTORY_PASSES = 3
"""Of warm directories, which one pass reads too fast for a clock."""

Run = Callable[[Stage, Side, str], Mapping[str, Took]]
"""Given a name that no other run has. Several things may be timed in one run, each under its name; "" is the whole."""
Check = Callable[[Stage, Side], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    what: str
    unit: str
    sides: Sequence[str]
    run: Run
    check: Check
    """Compares what the side shows with what was written, before the first round and after the last."""
    kind: Kind = Kind.READ
    cold: bool = False
    """Every cache of the kernel is dropped before each run, which only root can do."""
    native_aims: Mapping[str, float] = field(default_factory=dict)
    peer_aims: Mapping[str, float] = field(default_factory=dict)


READS = (NATIVE, READ_ONLY, NO_PASSTHROUGH, RCLONE)
SMALL = (NATIVE, READ_ONLY, DATA_SET, NO_PASSTHROUGH, RCLONE)
NAMES = (NATIVE, READ_ONLY, RCLONE)
FIRST = (READ_ONLY, DATA_SET, NO_PASSTHROUGH, RCLONE)
WRITES = (NATIVE, READ_WRITE, WRITE_BACK, RCLONE)


def workloads() -> Iterator[Workload]:
    yield from large_files()
    yield from small_files()
    yield from directories()
    yield from first_reads()
    yield from writes()


# One large file.


def large_files() -> Iterator[Workload]:
    yield Workload(
        name="sequential-hot",
        what="large file, hot, 1 MiB reads",
        unit="MiB/s",
        sides=READS,
        run=sequential(1),
        check=check_large,
        native_aims={READ_ONLY: 0.90},
        peer_aims={READ_ONLY: 20},
    )
    yield Workload(
        name="sequential-hot-4",
        what="large file, hot, 1 MiB reads, 4 readers",
        unit="MiB/s",
        sides=READS,
        run=sequential(4),
        check=check_large,
    )
    yield Workload(
        name="sequential-cold",
        what="large file, cold pages, 1 MiB reads",
        unit="MiB/s",
        sides=READS,
        run=sequential(1),
        check=check_large,
        cold=True,
        native_aims={READ_ONLY: 0.7},
        peer_aims={READ_ONLY: 4},
    )
    yield Workload(
        name="random-hot",
        what="large file, hot, random 4 KiB",
        unit="reads/s",
        sides=READS,
        run=at_random,
        check=check_large,
        native_aims={READ_ONLY: 0.80},
        peer_aims={READ_ONLY: 50},
    )


def sequential(readers: int) -> Run:
    def run(stage: Stage, side: Side, _name: str) -> Mapping[str, Took]:
        return {"": stage.client.run("sequential", side.root / "large", LARGE, stage.sizes.large, readers)}

    return run


def at_random(stage: Stage, side: Side, _name: str) -> Mapping[str, Took]:
    size, seconds = stage.sizes.large, stage.sizes.random_s
    return {"": stage.client.run("random", side.root / "large", LARGE, size, 1, seconds)}


def check_large(stage: Stage, side: Side) -> None:
    stage.data.compare_large(side.root)


# Small files.


def small_files() -> Iterator[Workload]:
    for readers in (1, 4):
        yield Workload(
            name=f"small-cold-{readers}",
            what=f"small files, cold pages, {counted(readers)}",
            unit="files/s",
            sides=SMALL,
            run=opened(readers),
            check=check_small,
            cold=True,
            native_aims={READ_ONLY: 0.5},
            peer_aims={READ_ONLY: 4},
        )
    for readers in (1, 4):
        yield Workload(
            name=f"small-warm-{readers}",
            what=f"small files, warm, {counted(readers)}",
            unit="files/s",
            sides=(*SMALL, READ_WRITE),
            run=opened(readers),
            check=check_small,
            native_aims={DATA_SET: 0.6} | ({READ_ONLY: 0.35} if readers == 4 else {}),
            peer_aims={READ_ONLY: 12} if readers == 4 else {},
        )
    for readers in (1, 4):
        yield Workload(
            name=f"python-warm-{readers}",
            what=f"small files, warm, Python's open().read(), {counted(readers)}",
            unit="files/s",
            sides=SMALL,
            run=opened(readers, PYTHON),
            check=check_small,
        )


def counted(readers: int) -> str:
    return "1 reader" if readers == 1 else f"{readers} readers"


def opened(readers: int, program: Program | None = None) -> Run:
    def run(stage: Stage, side: Side, _name: str) -> Mapping[str, Took]:
        files = stage.shuffled(side, stage.sizes.small_count)
        return {"": (program or stage.client).run("small", files, stage.sizes.small_size, readers)}

    return run


def check_small(stage: Stage, side: Side) -> None:
    stage.data.compare_small(side.root, 17)


# Names and attributes.


def directories() -> Iterator[Workload]:
    yield Workload(
        name="stat",
        what="stat by name, attributes kept",
        unit="stats/s",
        sides=NAMES,
        run=stat,
        check=check_small,
        native_aims={READ_ONLY: 0.9},
    )
    for cold in (True, False):
        state, passes = ("cold", 1) if cold else ("warm", DIRECTORY_PASSES)
        yield Workload(
            name=f"readdir-{state}",
            what=f"readdir of a large directory, {state}",
            unit="entries/s",
            sides=NAMES,
            run=listed("readdir", passes),
            check=check_many,
            cold=cold,
        )
        yield Workload(
            name=f"ls-{state}",
            what=f"ls -l of a large directory, {state}",
            unit="entries/s",
            sides=NAMES,
            run=listed("list", passes),
            check=check_many,
            cold=cold,
            native_aims={READ_ONLY: 1.0},
            peer_aims={READ_ONLY: 10},
        )


def stat(stage: Stage, side: Side, _name: str) -> Mapping[str, Took]:
    return {"": stage.client.run("stat", stage.shuffled(side, stage.sizes.small_count), 1, STAT_PASSES)}


def listed(command: str, passes: int) -> Run:
    def run(stage: Stage, side: Side, _name: str) -> Mapping[str, Took]:
        return {"": stage.client.run(command, side.root / "many", stage.sizes.many, passes)}

    return run


def check_many(stage: Stage, side: Side) -> None:
    stage.data.compare_many(side.root)


# The first reading, from the store.


def first_reads() -> Iterator[Workload]:
    yield Workload(
        name="first-large",
        what="large file, first read from S3",
        unit="MiB/s",
        kind=Kind.FRESH,
        sides=(READ_ONLY, NO_PASSTHROUGH, RCLONE),
        run=sequential(1),
        check=check_large,
        peer_aims={READ_ONLY: 1.0},
    )
    for readers in (1, 4):
        yield Workload(
            name=f"first-small-{readers}",
            what=f"small files, first read from S3, {counted(readers)}",
            unit="files/s",
            kind=Kind.FRESH,
            sides=FIRST,
            run=first_opened(readers),
            check=check_small,
            peer_aims={READ_ONLY: 1.0},
        )


def first_opened(readers: int) -> Run:
    def run(stage: Stage, side: Side, _name: str) -> Mapping[str, Took]:
        files = stage.shuffled(side, stage.sizes.first_count)
        return {"": stage.client.run("small", files, stage.sizes.small_size, readers)}

    return run


# Writing. What a run wrote is compared inside the store and deleted at once, so there is nothing to check after.


def writes() -> Iterator[Workload]:
    for name, what, unit, run in (
        ("write-large", "large file written", "MiB/s", write_large),
        ("write-small", "small files written", "files/s", write_small),
        ("copy", "cp -r of many files of 30 KB", "files/s", copy),
    ):
        yield Workload(
            name=name, what=what, unit=unit, kind=Kind.WRITE, sides=WRITES, run=run, check=lambda _stage, _side: None
        )


def write_large(stage: Stage, side: Side, name: str) -> Mapping[str, Took]:
    number, size = LARGE + 1 + zlib.crc32(name.encode()) % LARGE, stage.sizes.large
    took = stage.client.run("write", side.root / name, number, size, stage.filler)
    kept = in_store(stage, side, name)
    stored = waited(took, [(kept, size)])
    content.compare(kept, number, size, stage.data.block)
    (side.root / name).unlink()
    return {CLOSED: took, STORED: stored}


def write_small(stage: Stage, side: Side, name: str) -> Mapping[str, Took]:
    count, size = stage.sizes.first_count, stage.sizes.small_size
    (side.root / name).mkdir()
    took = stage.client.run("writes", side.root / name, count, size, stage.filler)
    kept = [in_store(stage, side, f"{name}/f{number:06}") for number in range(count)]
    stored = waited(took, [(path, size) for path in kept])
    for number, path in enumerate(kept):
        content.compare(path, number, size, stage.data.block)
    remove_tree(side.root / name)
    return {CLOSED: took, STORED: stored}


def copy(stage: Stage, side: Side, name: str) -> Mapping[str, Took]:
    count, size = stage.sizes.copies, stage.sizes.copy_size
    began = time.perf_counter()
    argv = ["cp", "-r", str(stage.copied), str(side.root / name)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    took = Took(seconds=time.perf_counter() - began, operations=count, cpu_s=0)
    if done.returncode:
        raise BenchError(f"cp: {done.stderr[-300:]}")
    kept = [in_store(stage, side, f"{name}/{stage.data.copy(number)}") for number in range(count)]
    stored = waited(took, [(path, size) for path in kept])
    for number, path in enumerate(kept):
        content.compare(path, number, size, stage.data.block)
    remove_tree(side.root / name)
    return {CLOSED: took, STORED: stored}


def in_store(stage: Stage, side: Side, name: str) -> Path:
    """The file as the store keeps it; the native side is its own store."""
    return (side.root if side.name == NATIVE else stage.s3.kept) / name


def waited(took: Took, files: Sequence[tuple[Path, int]]) -> Took:
    """The same with the time until the store has everything. Most is there already, so asking costs little."""
    began = time.perf_counter()
    left = list(files)

    def are_there() -> bool:
        while left and has(*left[-1]):
            left.pop()
        return not left

    wait_until(are_there, what="the uploads", timeout_s=STORED_S, every_s=0.005)
    return Took(seconds=took.seconds + time.perf_counter() - began, operations=took.operations, cpu_s=took.cpu_s)


def has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False


def remove_tree(path: Path) -> None:
    subprocess.run(["rm", "-rf", str(path)], check=True, timeout=PATIENCE_S)
