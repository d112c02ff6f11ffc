"""Keys: which are legal, and how they are taken apart.

Every store checks what it is asked for here, before it touches anything, so that no key can name something outside of
the store's root. What one kind of store cannot hold (bytes that are no UTF-8, names that are too long) it says itself.
"""

from __future__ import annotations

import secrets

from paddleflow.domain.errors import Invalid, invalid_field

HIDDEN = ".pf-"
"""Names that begin like this are ours: files that are being written, notes of what is under way. Never listed."""


def check_key(key: str) -> str:
    """The key itself, when it is legal."""
    if not key:
        return key
    if "\0" in key:
        raise invalid_field("key", f"{key!r} has a NUL character in it")
    for part in key.split("/"):
        if not part:
            raise invalid_field("key", f"{key!r} has an empty part: take away slashes at the ends and double ones")
        if part in {".", ".."}:
            raise invalid_field("key", f"{key!r} has the part {part!r}: give the path from the root, without dots")
    return key


def check_object_key(key: str) -> str:
    """A legal key that is not the root."""
    if not key:
        raise Invalid("the root of a store cannot be written, removed or renamed: name something below it")
    return check_key(key)


def parent_of(key: str) -> str:
    return key.rpartition("/")[0]


def name_of(key: str) -> str:
    return key.rpartition("/")[2]


def join_key(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def is_below(key: str, directory: str) -> bool:
    return not directory or key.startswith(directory + "/")


def is_hidden(key: str) -> bool:
    return name_of(key).startswith(HIDDEN)


def hidden_name() -> str:
    """A name nobody else uses, for something that is not there yet."""
    return HIDDEN + secrets.token_hex(12)


def check_range(start: int, size: int) -> None:
    if start < 0:
        raise invalid_field("start", f"{start} is negative")
    if size < 0:
        raise invalid_field("size", f"{size} is negative")
