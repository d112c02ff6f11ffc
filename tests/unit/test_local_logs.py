"""The log of a task: written in segments under a cap, read while it is written."""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.adapters.local.log_reading import read_log
from paddleflow.adapters.local.logs import LogSink


@given(chunks=st.lists(st.binary(max_size=40), max_size=40), cap=st.integers(4, 300), step=st.integers(1, 50))
def test_a_log_keeps_its_beginning_and_its_end_under_the_cap(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], cap: int, step: int
) -> None:
    directory = tmp_path_factory.mktemp("log")
    path = str(directory / "log")
    sink = LogSink(path, cap)
    for chunk in chunks:
        sink.write(chunk)
        assert sum(file.stat().st_size for file in directory.iterdir()) <= cap
    sink.close()
    written = b"".join(chunks)
    size = len(written)
    kept = read_in_steps(path, step)
    for begin, content in kept.items():
        assert written[begin : begin + len(content)] == content
    lost = tuple((one + len(kept[one]), other) for one, other in pairwise(kept))
    whole = read_log(path, 0, 1)
    assert (whole.gaps, whole.size, whole.is_cut_off) == (lost, size, False)
    if size > cap:
        ((begin, end),) = lost
        assert begin == cap // 2 and size - end >= cap // 4
    elif size < cap:
        assert not lost


def read_in_steps(path: str, step: int) -> dict[int, bytes]:
    """What is kept, by its offset."""
    kept: dict[int, bytes] = {}
    begin = position = 0
    while (chunk := read_log(path, position, step)).content:
        assert read_log(path, position - chunk.size, step) == chunk
        if chunk.start > position:
            begin = chunk.start
        kept[begin] = kept.get(begin, b"") + chunk.content
        position = chunk.start + len(chunk.content)
    return kept


def test_a_log_is_read_while_it_is_written_and_its_middle_deleted(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    line = b"0123456789abcde\n"
    sink = LogSink(path, 64 * len(line))
    writer = threading.Thread(target=lambda: [sink.write(line) for _ in range(20_000)])
    writer.start()
    while writer.is_alive():
        size = read_log(path, 0, 0).size
        for start in (0, size // 2, -200):
            chunk = read_log(path, start, 300)
            expected = (line * 21)[chunk.start % len(line) :]
            assert expected.startswith(chunk.content)
            assert all(begin == 32 * len(line) and end % len(line) == 0 for begin, end in chunk.gaps)
    writer.join()
    sink.close()
    assert read_log(path, -len(line), 100).content == line


def test_a_named_pipe_in_place_of_a_segment_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.4")
    sink = LogSink(str(tmp_path / "log"), 8)
    sink.write(b"0123")
    sink.write(b"45")
    sink.write(b"67")
    sink.close()
    assert (tmp_path / "log.6").read_bytes() == b"67"


def test_a_named_pipe_in_place_of_the_log_does_not_block_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    assert read_log(str(tmp_path / "log"), 0, 10).content == b""
