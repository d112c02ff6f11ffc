"""How a place on a filesystem is written on the command line: ``FSNAME:/path``, or ``FSNAME`` for its root; and whose
filesystem it is."""

from __future__ import annotations

import re

import click

owner_option = click.option("-u", "--username", help="The owner of the filesystem, if it is another; for root.")

_PLACE = re.compile(r"([A-Za-z0-9_-]{1,63})(?::(.*))?", re.DOTALL)


def split_place(text: str) -> tuple[str, str]:
    """The name of the filesystem, and the path on it."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} should be FSNAME:/path, e.g. data:/images")
    path = found[2] or "/"
    return found[1], path if path.startswith("/") else f"/{path}"


def is_local(text: str) -> bool:
    """A path of this machine: it has a slash, or is a dot, before anything that could be the name of a filesystem."""
    return text.startswith((".", "/", "~")) or "/" in text.partition(":")[0]
