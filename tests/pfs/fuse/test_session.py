"""Single requests, over a socket that keeps messages whole: what a kernel may send, and rarely does."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.domain.errors import Duplicate
from paddleflow.pfs.attrs import Attr, Caller, Entry, Opened, OpenMode
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.fuse import protocol
from paddleflow.pfs.fuse.loop import Loop
from paddleflow.pfs.fuse.negotiation import Negotiated
from paddleflow.pfs.fuse.passthrough import NoBackings
from paddleflow.pfs.fuse.protocol import Opcode
from paddleflow.pfs.fuse.session import Session, is_dying
from paddleflow.pfs.later import Later
from tests.pfs.fuse.toy_front import Mirror

ATTR = Attr(ino=9, mode=0o100644, size=3, mtime_ns=0, ctime_ns=0, atime_ns=0, uid=0, gid=0)


class Delayed(Mirror):
    """Names are answered when the test says so."""

    def __init__(self, where: Path) -> None:
        (where / "root").mkdir()
        (where / "state").mkdir()
        super().__init__({"root": str(where / "root"), "state": str(where / "state")})
        self.asked: dict[str, Later[Entry]] = {}
        self.forgotten: list[tuple[int, int]] = []
        self.released: list[tuple[int, int]] = []
        self.requests: list[tuple[int, bool]] = []

    async def lookup(self, parent: int, name: str, caller: Caller) -> Entry:
        self.asked[name] = Later()
        return await self.asked[name]

    async def create(self, parent: int, name: str, mode: int, flags: int, caller: Caller) -> tuple[Entry, Opened]:
        self.asked[name] = Later()
        return await self.asked[name], Opened(77, OpenMode.DIRECT)

    async def unlink(self, parent: int, name: str, caller: Caller) -> None:
        self.requests.append(self.request)
        if name == "odd":
            raise RuntimeError("nobody foresaw this")
        if name == "taken":
            raise Duplicate("it is there")
        raise FsError(errno.EISDIR)

    def forget(self, node: int, count: int) -> None:
        self.forgotten.append((node, count))

    async def release(self, node: int, handle: int) -> None:
        self.released.append((node, handle))


class Talk:
    def __init__(self, where: Path) -> None:
        ours, self.kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self.ours = ours
        self.kernel.setblocking(False)
        self.loop = Loop()
        self.vfs = Delayed(where)
        self.ends = 0
        negotiated = Negotiated(minor=45, flags=0, max_write=65536)
        self.session = Session(ours.fileno(), self.vfs, negotiated, NoBackings(), self.loop, self._ended)

    def _ended(self) -> None:
        self.ends += 1

    def say(self, opcode: int, body: bytes = b"", *, unique: int = 1, node: int = 1, pid: int = 0) -> None:
        header = protocol.IN_HEADER.pack(40 + len(body), opcode, unique, node, 0, 0, pid, 0, 0)
        self.kernel.send(header + body)
        self.session.serve()

    def answers(self) -> list[tuple[int, int, bytes]]:
        """number, error, body"""
        heard: list[tuple[int, int, bytes]] = []
        while True:
            try:
                raw = self.kernel.recv(1 << 17)
            except BlockingIOError:
                return heard
            length, error, unique = protocol.OUT_HEADER.unpack_from(raw)
            assert length == len(raw)
            heard.append((unique, -error, raw[16:]))


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path)
    yield talk
    talk.session.close()
    talk.loop.close()
    talk.ours.close()
    talk.kernel.close()


@pytest.mark.parametrize("opcode", [Opcode.LSEEK, Opcode.STATX, Opcode.COPY_FILE_RANGE_64, 60, 63, 64, 4096, 1 << 24])
def test_what_we_do_not_know_is_not_implemented(talk: Talk, opcode: int) -> None:
    talk.say(opcode, bytes(64))
    assert talk.answers() == [(1, errno.ENOSYS, b"")]


def test_a_question_for_a_terminal_is_answered_at_once(talk: Talk) -> None:
    talk.say(Opcode.IOCTL, bytes(32))
    assert talk.answers() == [(1, errno.ENOTTY, b"")]


def test_answers_come_in_any_order(talk: Talk) -> None:
    for number, name in enumerate((b"a\0", b"b\0", b"c\0"), 1):
        talk.say(Opcode.LOOKUP, name, unique=number)
    assert talk.answers() == []
    assert talk.session.waiting == 3
    talk.vfs.asked["c"].succeed(Entry(30, ATTR, 1.0, 1.0))
    talk.vfs.asked["a"].fail(FsError(errno.ENOENT))
    talk.vfs.asked["b"].succeed(Entry(0, ATTR, 2.0, 0.0))
    third, first, second = talk.answers()
    assert third[:2] == (3, 0)
    assert struct.unpack_from("<Q", third[2]) == (30,)
    assert first == (1, errno.ENOENT, b"")
    assert second[2] == protocol.pack_absence(2.0)
    assert talk.session.waiting == 0


def test_errors_become_numbers(talk: Talk) -> None:
    for number, name in enumerate((b"dir\0", b"taken\0", b"odd\0"), 1):
        talk.say(Opcode.UNLINK, name, unique=number)
    assert talk.answers() == [(1, errno.EISDIR, b""), (2, errno.EEXIST, b""), (3, errno.EIO, b"")]


def test_a_request_sent_again_is_marked_and_answered_under_its_number(talk: Talk) -> None:
    talk.say(Opcode.UNLINK, b"x\0", unique=42)
    talk.say(Opcode.UNLINK, b"x\0", unique=42 | protocol.RESENT)
    assert talk.vfs.requests == [(42, False), (42, True)]
    assert [number for number, _, _ in talk.answers()] == [42, 42 | protocol.RESENT]


def test_forgetting_has_no_answer(talk: Talk) -> None:
    talk.say(Opcode.FORGET, struct.pack("<Q", 3), node=8)
    talk.say(Opcode.BATCH_FORGET, struct.pack("<IIQQQQ", 2, 0, 9, 1, 10, 5))
    assert talk.vfs.forgotten == [(8, 3), (9, 1), (10, 5)]
    assert talk.answers() == []


def test_an_interrupt_of_what_is_answered_is_nothing(talk: Talk) -> None:
    talk.say(Opcode.INTERRUPT, struct.pack("<Q", 99))
    assert talk.answers() == []


def test_the_living_are_not_dying() -> None:
    assert not is_dying(os.getpid())
    assert not is_dying(1 << 22)


def abandoned(talk: Talk, opcode: Opcode, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddleflow.pfs.fuse.session.is_dying", lambda pid: pid == 55)
    talk.say(opcode, body, unique=5, pid=55)
    talk.say(Opcode.INTERRUPT, struct.pack("<Q", 5), unique=7)
    assert talk.answers() == [(5, errno.EINTR, b"")]


def test_what_an_abandoned_lookup_found_is_let_go(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    abandoned(talk, Opcode.LOOKUP, b"x\0", monkeypatch)
    talk.vfs.asked["x"].succeed(Entry(30, ATTR, 1.0, 1.0))
    assert talk.vfs.forgotten == [(30, 1)]
    assert talk.answers() == []


def test_what_an_abandoned_create_opened_is_closed(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    abandoned(talk, Opcode.CREATE, struct.pack("<IIII", os.O_RDWR, 0o644, 0, 0) + b"x\0", monkeypatch)
    talk.vfs.asked["x"].succeed(Entry(30, ATTR, 1.0, 1.0))
    assert talk.vfs.forgotten == [(30, 1)]
    assert talk.vfs.released == [(30, 77)]
    assert talk.answers() == []


def test_a_caller_that_lives_is_looked_at_again_and_waits(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def is_dying_at_last(pid: int) -> bool:
        nonlocal looks
        looks += 1
        talk.loop.stop()
        return looks == 4

    monkeypatch.setattr("paddleflow.pfs.fuse.session.is_dying", is_dying_at_last)
    monkeypatch.setattr("paddleflow.pfs.fuse.session.INTERRUPT_CHECK_S", 0.001)
    talk.say(Opcode.LOOKUP, b"x\0", unique=5, pid=55)
    talk.say(Opcode.INTERRUPT, struct.pack("<Q", 5), unique=7)
    while looks < 4:
        assert talk.answers() == []
        talk.loop._is_stopped = False
        talk.loop.run()
    assert talk.answers() == [(5, errno.EINTR, b"")]


def test_a_name_with_rest_of_an_older_request_behind_it(talk: Talk) -> None:
    talk.say(Opcode.LOOKUP, b"a-very-long-name\0", unique=1)
    talk.say(Opcode.LOOKUP, b"short\0", unique=2)
    assert set(talk.vfs.asked) == {"a-very-long-name", "short"}
