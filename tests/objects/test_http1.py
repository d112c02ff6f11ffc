"""HTTP answers, whole, in pieces, and broken, on a real pair of sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.adapters.objects.http1 import Answer, HungUp, Line, Malformed, TooLong
from tests.waiting import DEADLINE_S


def converse(pieces: Sequence[bytes], *, method: str = "GET", body: bytes = b"", at_most: int = 1000) -> list[Answer]:
    """What a client makes of a server that sends these pieces and hangs up; asks until the connection is used up."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        # Everything is read first, or hanging up would take the answer with it.
        asked = b""
        while not asked.endswith(b"\r\n\r\n" + body):
            asked += theirs.recv(100_000)
        for piece in pieces:
            theirs.sendall(piece)
        theirs.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=serve)
    thread.start()
    line = Line(ours, DEADLINE_S)
    try:
        return [line.ask(method, "/x", {"host": "h"}, body, at_most=at_most)]
    finally:
        line.close()
        thread.join()
        theirs.close()


WHOLE = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    (b"HTTP/1.1 200 OK\r\ncontent-length:5\r\nConnection: close\r\n\r\nhello", b"hello", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", False),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b"", False),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", False),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", b"hello", False),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: y\r\n\r\n", b"x", False),
    (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end", True),
    (b"HTTP/1.1 404\r\nContent-Length: 1\r\n\r\n-", b"-", False),
]


@pytest.mark.parametrize(("sent", "body", "is_last"), WHOLE)
def test_whole_answers(sent: bytes, body: bytes, is_last: bool) -> None:
    for pieces in ([sent], [sent[index : index + 1] for index in range(len(sent))]):
        [answer] = converse(pieces)
        assert (answer.body, answer.is_last) == (body, is_last)


@settings(max_examples=60)
@given(st.sampled_from(WHOLE[:-2]), st.data())
def test_an_answer_that_is_cut_off_anywhere_is_an_error(case: tuple[bytes, bytes, bool], data: st.DataObject) -> None:
    sent, _, _ = case
    cut = data.draw(st.integers(0, len(sent) - 1))
    with pytest.raises((HungUp, Malformed)) as failure:
        converse([sent[:cut]])
    assert isinstance(failure.value, HungUp) == (cut == 0 or sent[:cut].endswith(b"Continue\r\n\r\n"))


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    ],
    ids=lambda sent: sent[:60],
)
def test_what_is_no_answer(sent: bytes) -> None:
    with pytest.raises(Malformed):
        converse([sent])


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
    ],
    ids=lambda sent: sent[:60],
)
def test_an_answer_that_is_too_long_is_not_taken(sent: bytes) -> None:
    with pytest.raises(TooLong):
        converse([sent])


def test_the_head_of_a_head_request_has_a_length_but_no_body() -> None:
    [answer] = converse([b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nETag: x\r\n\r\n"], method="HEAD")
    assert answer.body == b"" and answer.header("content-length") == "500" and answer.header("etag") == "x"


def test_a_line_is_used_again_and_again() -> None:
    ours, theirs = socket.socketpair()
    line = Line(ours, DEADLINE_S)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000
    for _ in range(3):
        thread = threading.Thread(target=theirs.sendall, args=(answer,))
        thread.start()
        assert line.ask("GET", "/", {}, b"", at_most=70_000).body == b"x" * 70_000
        thread.join()
        assert theirs.recv(1000) == b"GET / HTTP/1.1\r\n\r\n"
    line.close()
    theirs.close()


def test_silence_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    line = Line(ours, 0.05)
    for said in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"):
        theirs.sendall(said)
        with pytest.raises(TimeoutError):
            line.ask("GET", "/", {}, b"", at_most=10)
    with pytest.raises(TimeoutError):
        line.ask("PUT", "/", {}, b"x" * 50_000_000, at_most=10)
    line.close()
    theirs.close()
