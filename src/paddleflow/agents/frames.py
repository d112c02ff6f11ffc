"""The words between the two ends of remote execution, and the proof that both know the job's secret.

A frame is one byte of kind, four of length, then the payload. The side that listens sends a random challenge; the side
that asks answers with its own challenge, the command line, and a code over all of it made with the secret, which
itself never travels; the listener proves itself in the same way before anything runs. The line is not encrypted: the
tasks of a job are on one host or on the cluster's own network.
"""

from __future__ import annotations

import hmac
from enum import IntEnum

CHALLENGE_BYTES = 32
CODE_BYTES = 32
LONGEST = 1 << 20
HEADER_BYTES = 5


class Kind(IntEnum):
    CHALLENGE = 1
    RUN = 2
    WELCOME = 3
    INPUT = 4
    """Empty at the end of the input."""
    OUTPUT = 5
    ERRORS = 6
    EXIT = 7


class Broken(Exception):
    """The other side does not speak this language, or does not know the secret."""


def pack(kind: Kind, payload: bytes = b"") -> bytes:
    return bytes((kind,)) + len(payload).to_bytes(4, "big") + payload


def unpack_header(header: bytes) -> tuple[Kind, int]:
    length = int.from_bytes(header[1:HEADER_BYTES], "big")
    try:
        kind = Kind(header[0])
    except ValueError as error:
        raise Broken("an unknown kind of frame") from error
    if length > LONGEST:
        raise Broken(f"a frame of {length} bytes")
    return kind, length


def request(secret: bytes, theirs: bytes, ours: bytes, line: bytes) -> bytes:
    return ours + _code(secret, b"run", theirs, ours, line) + line


def check_request(secret: bytes, ours: bytes, payload: bytes) -> tuple[bytes, bytes]:
    """The other side's challenge and the command line, if it knows the secret."""
    theirs = payload[:CHALLENGE_BYTES]
    code = payload[CHALLENGE_BYTES : CHALLENGE_BYTES + CODE_BYTES]
    line = payload[CHALLENGE_BYTES + CODE_BYTES :]
    if not hmac.compare_digest(code, _code(secret, b"run", ours, theirs, line)):
        raise Broken("the other side does not know this job's secret")
    return theirs, line


def welcome(secret: bytes, theirs: bytes) -> bytes:
    return _code(secret, b"welcome", theirs)


def check_welcome(secret: bytes, ours: bytes, payload: bytes) -> None:
    if not hmac.compare_digest(payload, _code(secret, b"welcome", ours)):
        raise Broken("whoever listens there does not know this job's secret")


def _code(secret: bytes, *parts: bytes) -> bytes:
    code = hmac.new(secret, digestmod="sha256")
    for part in parts:
        code.update(len(part).to_bytes(4, "big") + part)
    return code.digest()
