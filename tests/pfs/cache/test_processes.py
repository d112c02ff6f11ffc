"""Real processes on one cache directory, killed in the middle of anything: no wrong byte, no error, no leak."""

from __future__ import annotations

import collections
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddleflow.domain.errors import Stale
from paddleflow.pfs.cache import shelf
from tests.pfs.cache.filler import VERSIONS
from tests.pfs.cache.kit import CHUNK, PLENTY, cache, chunk, content, data_files, sidecars, version

ROOT = Path(__file__).resolve().parents[3]
UNDER_WAY = VERSIONS[-1].size + 2 * CHUNK
"""What one process may be about to write while another counts."""


@contextmanager
def filler(directory: Path, limit: int, seed: int, count: int = 0) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pfs.cache.filler", str(directory), str(limit), str(seed), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def did(process: subprocess.Popen[str], count: int) -> collections.Counter[str]:
    """So many things it has done since."""
    assert process.stdout is not None
    done: collections.Counter[str] = collections.Counter()
    for _ in range(count):
        line = process.stdout.readline().strip()
        if not line:
            assert process.stderr is not None
            pytest.fail(process.stderr.read())
        done[line] += 1
    return done


def all_right(directory: Path) -> int:
    """Every entry of a fresh look is right or found out; how many are whole."""
    kept = cache(directory)
    whole = 0
    for of in VERSIONS:
        found = kept.find(of)
        if found is None:
            continue
        with found:
            if found.is_verified():
                assert Path(found.path).read_bytes() == content(of)
                whole += 1
                continue
            for start in range(0, of.size, CHUNK):
                try:
                    assert found.read(start, CHUNK) == content(of)[start : start + CHUNK]
                except Stale:
                    continue
            if found.verify():
                assert Path(found.path).read_bytes() == content(of)
    return whole


@pytest.mark.slow
@pytest.mark.parametrize("limit", [PLENTY, 60 * CHUNK])
def test_killed_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    chance = random.Random(limit)
    whole = 0
    for round_ in range(8):
        with filler(tmp_path, limit, round_) as one, filler(tmp_path, limit, 100 + round_) as two:
            did(one, 1)
            did(two, chance.randint(1, 60))
            one.kill()
            did(two, 10)
        whole += all_right(tmp_path)
    assert whole > 0, "some of it was whole, or this proves nothing"
    kept = cache(tmp_path, limit)
    monkeypatch.setattr(shelf, "ORPHAN_AGE_S", -1.0)
    kept.trim()
    assert len(data_files(tmp_path)) == len(sidecars(tmp_path)) == kept.usage().files
    assert not any(path.is_file() for folder in ("new", "gone") for path in (tmp_path / "pfcache1" / folder).iterdir())
    assert kept.usage().bytes <= limit + UNDER_WAY


@pytest.mark.slow
def test_two_processes_that_evict_each_others_files(tmp_path: Path) -> None:
    limit = 40 * CHUNK
    with filler(tmp_path, limit, 1, 150) as one, filler(tmp_path, limit, 2, 150) as two:
        done = did(one, 150) + did(two, 150)
        assert (one.wait(), two.wait()) == (0, 0)
    assert done["verified"] and done["filled"] and done["right"], done
    kept = cache(tmp_path, limit)
    assert kept.usage().bytes <= limit + 2 * UNDER_WAY
    kept.trim()
    assert kept.usage().bytes <= limit + UNDER_WAY, "but for what may not be evicted yet"
    all_right(tmp_path)


@contextmanager
def running(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_processes_fill_the_same_object(tmp_path: Path) -> None:
    of = version("same", size=200 * CHUNK)
    program = (
        "import sys; from tests.pfs.cache.kit import *\n"
        "of = version('same', size=200 * CHUNK)\n"
        "whole = content(of)\n"
        "order = list(range(200))[:: int(sys.argv[2])]\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "with cache(sys.argv[1]).open(of) as entry:\n"
        "    for index in order:\n"
        "        entry.store(index * CHUNK, whole[index * CHUNK : (index + 1) * CHUNK])\n"
        "    entry.verify()\n"
    )
    with running(program, tmp_path, "1") as one, running(program, tmp_path, "-1") as two:
        for process in (one, two):
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert (one.wait(), two.wait()) == (0, 0)
    assert len(sidecars(tmp_path)) == len(data_files(tmp_path)) == 1
    found = cache(tmp_path).find(of)
    assert found is not None and found.verify()
    assert Path(found.path).read_bytes() == content(of)


def test_a_reader_of_an_evicted_file_reads_on(tmp_path: Path) -> None:
    of = version()
    reader = cache(tmp_path).fill(of, content(of))
    fd = reader.fd
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from tests.pfs.cache.kit import *; assert cache(sys.argv[1]).evict('s' * 16) > 0",
            tmp_path,
        ],
        cwd=ROOT,
        check=True,
    )
    assert os.pread(fd, of.size, 0) == content(of)
    assert not reader.is_verified() and not reader.is_in_place()
    assert cache(tmp_path).find(of) is None
    other = cache(tmp_path).open(of)
    assert other.path != reader.path, "a name is never used again"


def test_threads_of_one_process_share_an_entry(tmp_path: Path) -> None:
    of = version(size=64 * CHUNK)
    kept = cache(tmp_path)
    entry = kept.open(of)
    failures: list[Exception] = []

    def store(first: int) -> None:
        try:
            for index in range(first, 64, 4):
                entry.store(index * CHUNK, chunk(of, index))
                assert entry.has(index * CHUNK, CHUNK)
                assert entry.read(index * CHUNK, CHUNK) == chunk(of, index)
        except Exception as error:  # noqa: BLE001 - told below, by the thread that asserts
            failures.append(error)

    threads = [threading.Thread(target=store, args=(first % 4,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert entry.verify() and Path(entry.path).read_bytes() == content(of)
