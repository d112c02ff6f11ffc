"""The SFTP protocol against servers that are slow, stingy or hostile: a scripted one, over a pair of sockets."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.adapters.objects.sftp_wire import Attributes, Broken, Kind, Refused, Reply, SftpSession, pack, text
from tests.waiting import DEADLINE_S

U32 = st.integers(0, 2**32 - 1)
ATTRIBUTES = st.builds(
    lambda size, owner, mode, times: Attributes(
        size=size, uid=owner[0], gid=owner[1], mode=mode, atime=times[0], mtime=times[1]
    ),
    st.none() | st.integers(0, 2**64 - 1),
    st.tuples(U32, U32) | st.just((None, None)),
    st.none() | U32,
    st.tuples(U32, U32) | st.just((None, None)),
)
Answer = Callable[[int, int, bytes], list[bytes]]
"""From kind, number and body of a request to the packets that answer it."""


@given(ATTRIBUTES)
def test_attributes_come_back_as_they_were(attributes: Attributes) -> None:
    assert Reply(Kind.ATTRS, pack(attributes)).attributes() == attributes


@given(st.binary(max_size=60))
def test_no_bytes_do_more_than_break_an_answer(body: bytes) -> None:
    for take in (Reply.attributes, Reply.text, Reply.number, Reply.long):
        try:
            take(Reply(Kind.ATTRS, body))
        except Broken:
            continue


def packet(kind: int, number: int, body: bytes = b"") -> bytes:
    return text(struct.pack(">BI", kind, number) + body)


def status(number: int, code: int) -> bytes:
    return packet(Kind.STATUS, number, struct.pack(">I", code) + text(b"told") + text(b""))


@contextmanager
def session_with(answer: Answer) -> Iterator[SftpSession]:
    ours, theirs = socket.socketpair()
    ours.settimeout(DEADLINE_S)

    def serve() -> None:
        # The client ends it, and sometimes in the middle.
        with suppress(OSError), theirs, theirs.makefile("rb") as requests:
            while head := requests.read(4):
                body = requests.read(struct.unpack(">I", head)[0])
                kind, number = struct.unpack_from(">BI", body)
                if kind == Kind.INIT:
                    theirs.sendall(text(struct.pack(">BI", Kind.VERSION, 3)))
                    continue
                for part in answer(kind, number, body[5:]):
                    theirs.sendall(part)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        yield SftpSession(ours)
    finally:
        ours.close()
        server.join()


@settings(max_examples=30)
@given(
    size=st.integers(0, 200_000),
    start=st.integers(0, 250_000),
    length=st.integers(0, 250_000),
    stingy=st.integers(2_000, 40_000),
)
def test_short_answers_are_asked_on_until_the_end(size: int, start: int, length: int, stingy: int) -> None:
    content = (b"0123456789abcdef" * (size // 16 + 1))[:size]

    def answer(kind: int, number: int, body: bytes) -> list[bytes]:
        at, wanted = struct.unpack_from(">QI", body, 4 + 1)
        part = content[at : at + min(wanted, stingy)]
        return [packet(Kind.DATA, number, text(part))] if part else [status(number, 1)]

    with session_with(answer) as session:
        assert session.read(b"h", start, length) == content[start : start + length]
        assert session.is_settled


def test_answers_may_come_in_any_order() -> None:
    held: list[bytes] = []

    def answer(kind: int, number: int, body: bytes) -> list[bytes]:
        held.append(packet(Kind.ATTRS, number, pack(Attributes(size=number))))
        return held[::-1] if len(held) == 3 else []

    with session_with(answer) as session:
        numbers = [session.send(Kind.LSTAT, text(b"x")) for _ in range(3)]
        assert not session.is_settled
        assert [session.receive(number, Kind.ATTRS).attributes().size for number in numbers] == numbers
        assert session.is_settled


def test_a_refusal_leaves_the_session_usable() -> None:
    with session_with(lambda kind, number, body: [status(number, 2)]) as session:
        for _ in range(2):
            with pytest.raises(Refused, match="told") as caught:
                session.call(Kind.REMOVE, text(b"x"))
            assert caught.value.status == 2
        assert session.is_settled and not session.is_broken


@pytest.mark.parametrize(
    "answer",
    [
        lambda kind, number, body: [b"\0\0\0\0"],
        lambda kind, number, body: [b"Welcome to this server!\n"],
        lambda kind, number, body: [packet(Kind.NAME, number)],
        lambda kind, number, body: [packet(Kind.DATA, number, text(b"x" * 11))],
        lambda kind, number, body: [packet(Kind.DATA, number, text(b""))],
    ],
    ids=["empty", "banner", "another kind", "too much", "nothing"],
)
def test_nonsense_breaks_the_session(answer: Answer) -> None:
    with session_with(answer) as session:
        with pytest.raises(Broken):
            session.read(b"h", 0, 10)
        assert session.is_broken and not session.is_settled


@pytest.mark.parametrize("name", [b"../../etc/passwd", b"a/b", b"", b"a\0b"])
def test_a_name_that_leads_elsewhere_breaks_the_session(name: bytes) -> None:
    def answer(kind: int, number: int, body: bytes) -> list[bytes]:
        if kind == Kind.OPENDIR:
            return [packet(Kind.HANDLE, number, text(b"h"))]
        entry = text(name) + text(b"") + pack(Attributes())
        return [packet(Kind.NAME, number, struct.pack(">I", 1) + entry)]

    with session_with(answer) as session, pytest.raises(Broken, match="no name"):
        list(session.names(b"/d"))
