"""Backing ids, registered with the real kernel on a mount that nobody looks at."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddleflow.pfs.fuse import device, holding, negotiation
from paddleflow.pfs.fuse.negotiation import Wanted
from paddleflow.pfs.fuse.passthrough import Backings, NoBackings

pytestmark = pytest.mark.usefixtures("as_root")


@dataclass
class Kernel:
    """The registrar of a privileged process, and what is registered."""

    fuse_fd: int
    alive: set[int] = field(default_factory=set)

    def open_backing(self, fd: int) -> int:
        backing = negotiation.open_backing(self.fuse_fd, fd)
        assert backing not in self.alive
        self.alive.add(backing)
        return backing

    def close_backing(self, backing: int) -> None:
        negotiation.close_backing(self.fuse_fd, backing)
        self.alive.remove(backing)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    where = tmp_path / "mnt"
    where.mkdir()
    mounted = device.mount(device.Place(mountpoint=str(where), source="toy"))
    try:
        negotiated = negotiation.negotiate(mounted.fuse_fd, Wanted(), [str(tmp_path)])
        if not negotiated.passthrough:
            pytest.skip(negotiated.passthrough_why)
        yield Kernel(mounted.fuse_fd)
    finally:
        device.unmount(str(where), mounted.way, lazy=True)
        os.close(mounted.fuse_fd)


@pytest.fixture
def table() -> Iterator[Callable[[int], int]]:
    tables: list[int] = []

    def make(limit: int = 100) -> int:
        tables.append(holding.make_table(limit))
        return tables[-1]

    yield make
    for fd in tables:
        os.close(fd)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"file{number}" for number in range(10)]
    for path in paths:
        path.write_text(path.name)
    return [str(path) for path in paths]


Table = Callable[[int], int]


def test_an_id_is_kept_after_the_last_close(kernel: Kernel, table: Table, files: list[str]) -> None:
    backings = Backings(kernel, table(100))
    first = backings.acquire(5, files[0], False, 1)
    assert backings.acquire(5, files[0], False, 2) == first
    backings.release(5, 3)
    backings.release(5, 4)
    assert kernel.alive == {first}
    assert backings.acquire(5, files[0], False, 5) == first


def test_an_id_of_a_written_file_is_not_kept(kernel: Kernel, table: Table, files: list[str]) -> None:
    backings = Backings(kernel, table(100))
    backings.acquire(5, files[0], True, 1)
    backings.acquire(5, files[0], False, 2)
    backings.release(5, 3)
    assert kernel.alive
    backings.release(5, 4)
    assert not kernel.alive


def test_an_open_node_has_one_file(kernel: Kernel, table: Table, files: list[str]) -> None:
    backings = Backings(kernel, table(100))
    backings.acquire(5, files[0], False, 1)
    assert backings.clashes(5, files[1], False)
    assert not backings.clashes(5, files[0], False)
    assert backings.clashes(5, "", False)
    with pytest.raises(OSError) as refused:
        backings.acquire(5, files[1], False, 2)
    assert refused.value.errno == errno.EBUSY
    backings.release(5, 3)
    assert not backings.clashes(5, files[1], False)
    backings.acquire(5, files[1], False, 4)
    assert len(kernel.alive) == 1


def test_the_same_path_with_another_file_is_noticed_when_written(
    kernel: Kernel, table: Table, files: list[str]
) -> None:
    backings = Backings(kernel, table(100))
    backings.acquire(5, files[0], True, 1)
    os.rename(files[1], files[0])
    with pytest.raises(OSError) as refused:
        backings.acquire(5, files[0], True, 2)
    assert refused.value.errno == errno.EBUSY


def test_the_least_recently_used_id_makes_room(kernel: Kernel, table: Table, files: list[str]) -> None:
    backings = Backings(kernel, table(3))
    ids = {}
    for node in range(3):
        ids[node] = backings.acquire(node + 10, files[node], False, 10 + node)
        backings.release(node + 10, 20 + node)
    backings.acquire(10, files[0], False, 30)
    backings.release(10, 31)
    backings.acquire(99, files[9], False, 40)
    assert ids[0] in kernel.alive, "it was used last"
    assert len(kernel.alive) == 3
    backings.acquire(10, files[0], False, 41)
    backings.acquire(98, files[8], False, 42)
    with pytest.raises(OSError) as full:
        backings.acquire(97, files[7], False, 43)
    assert full.value.errno == errno.ENFILE
    backings.release(99, 44)
    backings.acquire(97, files[7], False, 45)


def test_a_dropped_node_gives_its_id_back_when_nobody_has_it_open(
    kernel: Kernel, table: Table, files: list[str]
) -> None:
    backings = Backings(kernel, table(100))
    backings.acquire(5, files[0], False, 1)
    backings.drop(5)
    assert kernel.alive
    backings.release(5, 2)
    assert not kernel.alive
    backings.acquire(5, files[0], False, 3)
    backings.release(5, 4)
    backings.drop(5)
    assert not kernel.alive
    backings.drop(5)


def test_evicted_files_are_swept(kernel: Kernel, table: Table, files: list[str]) -> None:
    backings = Backings(kernel, table(100))
    for node in range(10):
        backings.acquire(node + 2, files[node], False, 2 * node)
        if node:
            backings.release(node + 2, 2 * node + 1)
    for path in files[:5]:
        os.unlink(path)
    while backings.sweep(3):
        pass
    assert len(backings) == 6, "the open one stays, and those whose file is there"
    assert len(kernel.alive) == 6


def test_a_missing_file_takes_no_room(kernel: Kernel, table: Table, files: list[str]) -> None:
    backings = Backings(kernel, table(1))
    for request in range(5):
        with pytest.raises(FileNotFoundError):
            backings.acquire(5, files[0] + "-absent", False, request)
    backings.acquire(5, files[0], False, 9)


def test_a_successor_has_the_ids_of_open_files_and_no_others(kernel: Kernel, table: Table, files: list[str]) -> None:
    memory = table(100)
    first = Backings(kernel, memory)
    kept = first.acquire(5, files[0], False, 1)
    written = first.acquire(6, files[1], True, 2)
    first.acquire(7, files[2], False, 3)
    first.release(7, 4)
    second = Backings(kernel, memory)
    assert kernel.alive == {kept, written}
    assert second.acquire(5, files[0], False, 5) == kept
    assert second.acquire(6, files[1], False, 6) == written
    with pytest.raises(OSError):
        second.acquire(5, files[3], False, 7)
    third = Backings(kernel, memory)
    for request, node in enumerate((5, 5, 6, 6), 10):
        third.release(node, request)
    assert kernel.alive == {kept}
    assert third.opens == 0


def test_a_request_that_comes_again_is_not_counted_again(kernel: Kernel, table: Table, files: list[str]) -> None:
    memory = table(100)
    first = Backings(kernel, memory)
    first.acquire(5, files[0], False, 1)
    second = Backings(kernel, memory)
    second.acquire(5, files[0], False, 1)
    assert second.opens == 1
    second.acquire(5, files[0], False, 2)
    second.release(5, 3)
    third = Backings(kernel, memory)
    third.release(5, 3)
    assert third.opens == 1


steps = st.lists(
    st.tuples(st.sampled_from(["open", "write", "close", "drop", "crash"]), st.integers(2, 5), st.integers(0, 1)),
    max_size=40,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_any_history_leaves_the_kernel_with_what_is_open(
    kernel: Kernel, table: Table, files: list[str], history: list[tuple[str, int, int]]
) -> None:
    memory = table(100)
    backings = Backings(kernel, memory)
    opens: dict[int, list[str]] = {}
    for request, (step, node, which) in enumerate(history, 1):
        path = files[2 * node - 4 + which]
        held = opens.setdefault(node, [])
        if step in ("open", "write"):
            if held and path not in held:
                with pytest.raises(OSError, match="another backing file"):
                    backings.acquire(node, path, step == "write", request)
            else:
                backings.acquire(node, path, step == "write", request)
                held.append(path)
        elif step == "close" and held:
            held.pop()
            backings.release(node, request)
        elif step == "drop":
            backings.drop(node)
        elif step == "crash":
            backings = Backings(kernel, memory)
        assert backings.opens == sum(map(len, opens.values()))
        assert len(kernel.alive) == len(backings)
    for node, held in opens.items():
        for number in range(len(held)):
            backings.release(node, 1000 + number)
        backings.drop(node)
    assert not kernel.alive


def test_without_passthrough_nothing_is_taken() -> None:
    none = NoBackings()
    with pytest.raises(OSError):
        none.acquire(1, "/", False, 1)
    none.release(1, 1)
    none.drop(1)
    assert (none.sweep(1), none.opens, len(none), none.clashes(1, "", True)) == (0, 0, 0, False)
