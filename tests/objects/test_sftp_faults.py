"""Bad days of an SFTP server and of the way to it: made up for where that is safe, an error where it is not, and never
wrong bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from paddleflow.adapters.objects.retry import Patience, Retry
from paddleflow.adapters.objects.sftp import SftpStore, open_sftp
from paddleflow.adapters.objects.sftp_pool import SftpPool
from paddleflow.adapters.objects.ssh import SshLimits, Trust, connect, parse_login
from paddleflow.domain.errors import NotFound, Unavailable
from tests.objects.contract import MIB, listed, put, walked
from tests.objects.cutter import Cut, Cutter, Hang
from tests.objects.sshd import SshServer, start_sshd
from tests.waiting import DEADLINE_S, wait_for

PATIENT = SshLimits(connect_s=DEADLINE_S, stall_s=DEADLINE_S)
"""Nothing that works comes near it, however slow the machine."""
CONTENT = os.urandom(6 * MIB)
HANDSHAKE = 4_000
"""Bytes from the server that are more than logging in takes: the cut comes in the middle of the work."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    server = start_sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture
def cutter(server: SshServer) -> Iterator[Cutter]:
    cutter = Cutter(server.port)
    yield cutter
    cutter.close()


@pytest.fixture
def open_store(server: SshServer, cutter: Cutter, tmp_path: Path) -> Iterator[Callable[..., SftpStore]]:
    stores: list[SftpStore] = []

    def open_(*, attempts: int = 4, sleep: Callable[[float], object] = lambda _: None) -> SftpStore:
        retry = Retry(patience=Patience(attempts=attempts, deadline_s=1000), sleep=sleep)
        stores.append(open_sftp(cutter.address, str(tmp_path), server.properties(), limits=PATIENT, retry=retry))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.mark.parametrize("after", [0, 10, 500, HANDSHAKE, 200_000, 3_000_000, 6_000_000])
def test_a_read_that_is_cut_is_made_again(
    open_store: Callable[..., SftpStore], cutter: Cutter, tmp_path: Path, after: int
) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    cutter.plan(Cut(from_server=after), Cut(from_server=after // 2))
    assert open_store().read("f", 0, len(CONTENT)) == CONTENT
    assert cutter.count == 3


@pytest.mark.parametrize("after", [HANDSHAKE, 300_000, 3_000_000, 6_000_000])
def test_a_write_that_is_cut_is_made_again_and_leaves_nothing(
    open_store: Callable[..., SftpStore], cutter: Cutter, tmp_path: Path, after: int
) -> None:
    (tmp_path / "f").write_bytes(b"as it was")
    cutter.plan(Cut(from_client=after), Cut(from_client=after // 2))
    store = open_store()
    written = put(store, "f", CONTENT)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert store.stat("f").version == written.version
    assert set(listed(store)) == {"f"}


def test_a_write_that_never_gets_through_changes_nothing(
    open_store: Callable[..., SftpStore], cutter: Cutter, tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_bytes(b"as it was")
    cutter.plan(*[Cut(from_client=300_000)] * 3)
    store = open_store(attempts=3)
    with pytest.raises(Unavailable):
        put(store, "d/f", CONTENT)
    assert (tmp_path / "d/f").read_bytes() == b"as it was"
    assert set(listed(store, "d")) == {"d/f"}
    # What was left behind is hidden, and does not keep the directory from being removed.
    assert len(os.listdir(tmp_path / "d")) > 1
    store.delete("d/f")
    store.remove_directory("d")
    assert os.listdir(tmp_path) == []


def test_a_server_that_hangs_is_given_up(server: SshServer, cutter: Cutter, tmp_path: Path) -> None:
    """Only the connection that hangs has a short limit; on a slow machine it may be given up before, all the same."""
    (tmp_path / "f").write_bytes(CONTENT)
    cutter.plan(Hang(from_server=1_000_000))
    login = parse_login(cutter.address, server.properties())
    limits = iter([SshLimits(connect_s=DEADLINE_S, stall_s=0.5), PATIENT])
    pool = SftpPool(lambda: connect(login, Trust(), next(limits)))
    with closing(SftpStore(pool, str(tmp_path), name="behind the cutter")) as store:
        assert store.read("f", 0, len(CONTENT)) == CONTENT
    assert cutter.count == 2


def test_idle_connections_that_died_are_replaced(
    open_store: Callable[..., SftpStore], cutter: Cutter, tmp_path: Path
) -> None:
    store = open_store()
    put(store, "f", b"1")
    for call in (
        lambda: store.stat("f"),
        lambda: store.make_directory("d"),
        lambda: store.rename("f", "d/f"),
        lambda: store.delete("d/f"),
        lambda: store.remove_directory("d"),
    ):
        cutter.cut_all()
        wait_until_no_connection_lives(store)
        call()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("after", range(3_000, 4_600, 100))
def test_what_must_not_be_done_twice_is_done_once_or_says_that_it_may_have_been(
    open_store: Callable[..., SftpStore], cutter: Cutter, tmp_path: Path, after: int
) -> None:
    """The connection is cut somewhere: before the request, or when its answer is due."""
    (tmp_path / "f").write_bytes(b"1")
    store = open_store()
    cutter.plan(Cut(from_server=after))
    try:
        store.rename("f", "g")
        told = "done"
    except Unavailable as error:
        told = error.message
    assert "may have been changed" in told or (told == "done" and os.listdir(tmp_path) == ["g"])
    assert os.listdir(tmp_path) in (["f"], ["g"])


def test_a_server_that_comes_back_is_used_again(
    open_store: Callable[..., SftpStore], server: SshServer, tmp_path: Path
) -> None:
    store = open_store(attempts=2)
    put(store, "f", b"before")
    server.stop()
    try:
        wait_until_no_connection_lives(store)
        with pytest.raises(Unavailable):
            store.stat("f")
    finally:
        server.start_again()
    assert store.read("f", 0, 10) == b"before"
    put(store, "f", b"after")
    assert (tmp_path / "f").read_bytes() == b"after"


def test_a_server_that_restarts_is_waited_for(
    open_store: Callable[..., SftpStore], server: SshServer, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    failures = count(1)

    def pause(_: float) -> None:
        if next(failures) == 3:
            server.start_again()

    store = open_store(sleep=pause)
    store.stat("f")
    server.stop()
    try:
        assert store.read("f", 0, len(CONTENT)) == CONTENT
    finally:
        if server.process.poll() is not None:
            server.start_again()
    assert next(failures) == 4


def test_cuts_everywhere_never_give_wrong_bytes(
    open_store: Callable[..., SftpStore], cutter: Cutter, tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    for number in range(30):
        (tmp_path / f"d/{number}").write_bytes(CONTENT[number * 1000 : number * 50_000])
    for after in range(2_000, 120_000, 7_000):
        cutter.plan(Cut(from_server=after))
        store = open_store()
        assert len(walked(store)) == 31
        for number in (3, 17, 29):
            expected = CONTENT[number * 1000 : number * 50_000]
            assert store.read(f"d/{number}", 0, len(CONTENT)) == expected
        store.close()


def test_a_closed_store_says_so(open_store: Callable[..., SftpStore]) -> None:
    store = open_store(attempts=1)
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.stat("f")


def test_nothing_there_is_told_at_once(open_store: Callable[..., SftpStore], cutter: Cutter) -> None:
    with pytest.raises(NotFound):
        open_store().stat("none")
    assert cutter.count == 1


def wait_until_no_connection_lives(store: SftpStore) -> None:
    """The thread that reads from a connection has to notice its end."""
    for connection in list(store._pool._idle):
        wait_for(lambda connection=connection: not connection.is_alive, "the end of a connection is noticed")
