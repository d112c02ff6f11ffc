"""The pool of bytes on their way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from paddleflow.pfs.memory import SHARE, MemoryPool, cgroup_limit, pool_limit
from tests.waiting import wait_for


def test_it_never_lends_more_than_it_has() -> None:
    pool = MemoryPool(100)
    most: list[int] = []
    failures: list[str] = []

    def borrow_some(size: int) -> None:
        for _ in range(200):
            with pool.borrow(size):
                if pool.used > pool.limit:
                    failures.append(f"{pool.used}")
                most.append(pool.used)

    threads = [threading.Thread(target=borrow_some, args=(size,)) for size in (1, 30, 60, 100, 45, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and pool.used == 0 and 0 < pool.peak <= 100
    assert max(most) <= 100


def test_pressure_is_what_is_lent() -> None:
    pool = MemoryPool(200)
    assert pool.pressure == 0
    with pool.borrow(50), pool.borrow(100):
        assert pool.pressure == 0.75
    with pytest.raises(RuntimeError), pool.borrow(10):
        raise RuntimeError
    assert pool.pressure == 0 and pool.peak == 150


def test_who_came_first_is_served_first() -> None:
    """A large request is not starved by small ones that would still fit."""
    pool = MemoryPool(100)
    order: list[str] = []

    def borrow_named(name: str, size: int) -> None:
        with pool.borrow(size):
            order.append(name)

    with pool.borrow(60):
        large = threading.Thread(target=borrow_named, args=("large", 90))
        large.start()
        wait_for(lambda: len(pool._queue) == 1)
        small = threading.Thread(target=borrow_named, args=("small", 10))
        small.start()
        wait_for(lambda: len(pool._queue) == 2)
        assert order == []
    large.join()
    small.join()
    assert order == ["large", "small"]


def test_what_can_never_be_lent_is_refused() -> None:
    with pytest.raises(ValueError, match="more than the pool"), MemoryPool(10).borrow(11):
        pass
    with pytest.raises(ValueError, match="limit"):
        MemoryPool(0)


def group(mount: Path, path: str, name: str, value: str) -> None:
    folder = mount / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"{value}\n")


def test_the_least_limit_above_counts(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    membership = tmp_path / "self"
    membership.write_text("0::/kube/pod/box\n")
    group(mount, "kube/pod/box", "memory.max", "max")
    assert cgroup_limit(membership, mount) is None
    group(mount, "kube", "memory.max", "5000")
    assert cgroup_limit(membership, mount) == 5000, "inherited"
    group(mount, "kube/pod/box", "memory.max", "9000")
    assert cgroup_limit(membership, mount) == 5000
    group(mount, "kube/pod", "memory.max", "1000")
    assert cgroup_limit(membership, mount) == 1000
    group(tmp_path, ".", "memory.max", "1")
    assert cgroup_limit(membership, mount) == 1000, "what lies outside the mount is no group"


def test_version_one_counts_too(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    membership = tmp_path / "self"
    membership.write_text("12:cpu,cpuacct:/a\n7:memory:/docker/abc\n1:name=systemd:/x\n0::/\n")
    group(mount, "memory/docker/abc", "memory.limit_in_bytes", "9223372036854771712")
    assert cgroup_limit(membership, mount) is None
    group(mount, "memory/docker", "memory.limit_in_bytes", "4096")
    assert cgroup_limit(membership, mount) == 4096
    assert cgroup_limit(tmp_path / "none", mount) is None


def test_the_pool_is_a_share_of_what_there_is() -> None:
    assert pool_limit(1000) == 1000
    with open("/proc/meminfo") as file:
        total = int(file.readline().split()[1]) * 1024
    assert 0 < pool_limit(1 << 60) <= total // SHARE
