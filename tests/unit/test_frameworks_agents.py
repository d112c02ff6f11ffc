"""What travels between the two ends of a remote execution, and what mpirun is told of the workers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.agents import frames
from paddleflow.agents.frames import Broken, Kind
from paddleflow.agents.mpi_master import hostfile


@given(secret=st.binary(min_size=1), line=st.binary(max_size=2000))
def test_both_sides_prove_that_they_know_the_secret(secret: bytes, line: bytes) -> None:
    host, caller = b"h" * 32, b"c" * 32
    theirs, heard = frames.check_request(secret, host, frames.request(secret, host, caller, line))
    assert (theirs, heard) == (caller, line)
    frames.check_welcome(secret, caller, frames.welcome(secret, theirs))


@given(line=st.binary(max_size=200), place=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_nothing_of_a_request_can_be_changed(line: bytes, place: int, flip: int) -> None:
    challenge = b"h" * 32
    payload = bytearray(frames.request(b"secret", challenge, b"c" * 32, line))
    payload[place % len(payload)] ^= flip
    with pytest.raises(Broken):
        frames.check_request(b"secret", challenge, bytes(payload))


def test_a_request_is_good_for_one_challenge_and_one_secret() -> None:
    payload = frames.request(b"secret", b"h" * 32, b"c" * 32, b"ls")
    for secret, challenge in ((b"secret", b"x" * 32), (b"other", b"h" * 32)):
        with pytest.raises(Broken):
            frames.check_request(secret, challenge, payload)
    with pytest.raises(Broken):
        frames.check_welcome(b"secret", b"c" * 32, b"")


@given(header=st.binary(min_size=5, max_size=5))
def test_a_strange_frame_is_refused(header: bytes) -> None:
    try:
        kind, length = frames.unpack_header(header)
    except Broken:
        return
    assert kind in Kind
    assert length <= frames.LONGEST


def test_the_hostfile_of_nobody_is_empty() -> None:
    assert hostfile([]) == ""
