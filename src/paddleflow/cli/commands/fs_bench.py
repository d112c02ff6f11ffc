"""``paddleflow fs bench``: how fast the directory one stands in is, whatever it is mounted from."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show
from paddleflow.domain.errors import Invalid

MIB = 1 << 20
KIB = 1 << 10
_HEADERS = ["ITEM", "VALUE", "COST"]


@dataclass(frozen=True)
class Load:
    """What is written and read, by each of ``threads``."""

    block: int
    big: int
    small: int
    count: int
    threads: int


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--block-size", type=click.IntRange(1), default=1, show_default=True, help="MiB in one read or write.")
@click.option("--big-file-size", type=click.IntRange(0), default=1024, show_default=True, help="MiB; 0 leaves it out.")
@click.option("--small-file-size", type=click.IntRange(1), default=128, show_default=True, help="KiB.")
@click.option("--small-file-count", type=click.IntRange(0), default=100, show_default=True, help="0 leaves them out.")
@click.option("-p", "--threads", type=click.IntRange(1, 256), default=1, show_default=True, help="At a time.")
@click.pass_obj
def bench(
    invocation: Invocation,
    *,
    path: Path,
    block_size: int,
    big_file_size: int,
    small_file_size: int,
    small_file_count: int,
    threads: int,
) -> None:
    """measure a directory: big file, small files, stat; what it writes it removes

    Root drops the kernel's caches between writing and reading, unless SKIP_DROP_CACHES=true.
    """
    load = Load(block_size * MIB, big_file_size * MIB, small_file_size * KIB, small_file_count, threads)
    place = path / f"__paddleflow_bench_{secrets.token_hex(4)}"
    try:
        place.mkdir()
    except OSError as error:
        raise Invalid(f"cannot write to {path}: {error.strerror}", code="InvalidPath") from error
    if not _drop_caches():
        click.echo("note: the kernel's caches stay, so reads may come from memory; root can drop them", err=True)
    try:
        show(invocation.output, _HEADERS, [*_big(place, load), *_small(place, load)], style="simple")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _big(place: Path, load: Load) -> list[list[str]]:
    if not load.big:
        return []
    names = [place / f"big.{index}" for index in range(load.threads)]
    total = load.big * load.threads / MIB
    rows = []
    for item, act in (
        ("Write big file", lambda name: _write(name, load.big, load.block)),
        ("Read big file", lambda name: _read(name, load.block)),
        ("Read from cache", lambda name: _read(name, load.block)),
    ):
        if item == "Read big file":
            _drop_caches()
        took = _timed(names, load.threads, act)
        rows.append([item, f"{total / took:.2f} MiB/s", f"{took / load.threads:.2f} s/file"])
    return rows


def _small(place: Path, load: Load) -> list[list[str]]:
    if not load.count:
        return []
    names = [place / f"small.{index}" for index in range(load.count * load.threads)]
    rows = []
    for item, act in (
        ("Write small file", lambda name: _write(name, load.small, load.block)),
        ("Read small file", lambda name: _read(name, load.block)),
        ("Read small file from cache", lambda name: _read(name, load.block)),
        ("Stat file", lambda name: name.stat()),
    ):
        if item == "Read small file":
            _drop_caches()
        took = _timed(names, load.threads, act)
        rows.append([item, f"{len(names) / took:.1f} files/s", f"{took * load.threads / len(names) * 1e3:.3f} ms/file"])
    return rows


def _timed(names: list[Path], threads: int, act: Callable[[Path], object]) -> float:
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        list(pool.map(act, names))
        return max(time.perf_counter() - began, 1e-9)


def _write(name: Path, size: int, block: int) -> None:
    data = os.urandom(min(block, size))
    with name.open("wb", buffering=0) as file:
        written = 0
        while written < size:
            written += file.write(data[: size - written])


def _read(name: Path, block: int) -> None:
    with name.open("rb", buffering=0) as file:
        while file.read(block):
            pass


def _drop_caches() -> bool:
    """Whether it could be, or was not wanted."""
    if os.environ.get("SKIP_DROP_CACHES", "").lower() == "true":
        return True
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
    except OSError:
        return False
    return True
