"""Markers of lists: where the next page begins, in a form that cannot be made up or taken to another list."""

from __future__ import annotations

import hashlib
import hmac

from paddleflow.domain.errors import Invalid

_NUMBER_BYTES = 8
_TAG_BYTES = 16


def make_marker(key: bytes, kind: str, after: int) -> str:
    number = after.to_bytes(_NUMBER_BYTES, "big")
    return (number + _tag(key, kind, number)).hex()


def read_marker(key: bytes, kind: str, marker: str) -> int:
    """The row number in a marker this installation gave for this kind of list."""
    try:
        raw = bytes.fromhex(marker)
    except ValueError:
        raw = b""
    number, tag = raw[:_NUMBER_BYTES], raw[_NUMBER_BYTES:]
    if not hmac.compare_digest(tag, _tag(key, kind, number)):
        raise Invalid(f"marker[{marker[:80]}] is invalid, use the nextMarker of the page before", code="InvalidMarker")
    return int.from_bytes(number, "big")


def _tag(key: bytes, kind: str, number: bytes) -> bytes:
    return hmac.new(key, kind.encode() + b"\0" + number, hashlib.sha256).digest()[:_TAG_BYTES]
