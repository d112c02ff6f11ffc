"""``-o`` options of a mount, by the names that users know, become a MountRequest.

Some options of the original named parts that are not there any more. They are taken and have no effect, and the one who
gave them is told so; what is misspelt is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from paddleflow.files.errors import InvalidFile

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}

NO_EFFECT = {
    "block-size": "the cache keeps pieces of a size of its own",
    "data-cache-expire": "a cached version never expires; the cache makes room by itself",
    "data-read-ahead-size": "reading ahead finds its own size",
    "meta-cache-driver": "names and attributes are kept in memory",
    "meta-cache-path": "names and attributes are kept in memory",
    "entry-cache-expire": "names live as long as attributes: give meta-ttl",
    "path-cache-expire": "names live as long as attributes: give meta-ttl",
    "attr-timeout": "the kernel is told meta-ttl",
    "entry-timeout": "the kernel is told meta-ttl",
    "clean-cache": "the cache is shared and stays; clear it with: paddleflow fs evict",
    "free-space-ratio": "a tenth of the disk is always left free",
    "no-implicit-dir": "directories are found however they were made",
    "ignore-security-labels": "security labels are answered at once",
    "disable-xattrs": "extended attributes cost nothing while nobody asks",
    "skip-check-links": "links are told by the server",
    "link-update-interval": "links are told by the server",
    "link-meta-dir-prefix": "links are told by the server",
    "log-dir": "the log is in the mount's state directory",
    "log-level": "the log is in the mount's state directory",
    "metrics-service-on": "metrics: paddleflow fs stats",
    "metrics-service-port": "metrics: paddleflow fs stats",
    "pprof-port": "there is none",
}
"""Options of the original that are taken and mean nothing here, and why."""


def size(name: str, text: str) -> int:
    """``10G``, ``512MiB``, ``1048576``: powers of 1024 all of them."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise _wrong(name, text, "a size such as 20G or 512M")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))


def seconds(name: str, text: str) -> float:
    """``5``, ``5s``, ``500ms``, ``2m``."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise _wrong(name, text, "a time such as 5s, 500ms or 2m")
    return float(found[1]) * _SECONDS[found[2]]


def switch(name: str, text: str) -> bool:
    """The name alone means yes."""
    known = {"": True, "true": True, "yes": True, "1": True, "on": True}
    known |= {"false": False, "no": False, "0": False, "off": False}
    if text.lower() not in known:
        raise _wrong(name, text, "true or false, or the name alone")
    return known[text.lower()]


def number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise _wrong(name, text, "a whole number")
    return int(text)


def bits(name: str, text: str) -> int:
    """Permission bits, always in octal as ``chmod`` takes them."""
    try:
        value = int(text.removeprefix("0o"), 8)
    except ValueError as error:
        raise _wrong(name, text, "permission bits such as 0644") from error
    if value > 0o7777:
        raise _wrong(name, text, "permission bits such as 0644")
    return value


def words(name: str, text: str) -> str:
    if not text:
        raise _wrong(name, text, "given")
    return text


OPTIONS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "ro": ("read_only", switch),
    "dataset": ("dataset", switch),
    "write-back": ("write_back", switch),
    "allow-other": ("allow_other", switch),
    "passthrough": ("passthrough", switch),
    "cache-dir": ("cache_dir", words),
    "cache-size": ("cache_size", size),
    "memory-cache-size": ("memory_cache_size", size),
    "meta-ttl": ("meta_ttl", seconds),
    "negative-ttl": ("negative_ttl", seconds),
    "small-file": ("small_file", size),
    "snapshot": ("snapshot", words),
    "uid": ("uid", number),
    "gid": ("gid", number),
    "file-mode": ("file_mode", bits),
    "dir-mode": ("dir_mode", bits),
    # The original's names for the same.
    "data-cache-path": ("cache_dir", words),
    "meta-cache-expire": ("meta_ttl", seconds),
}


def wishes(options: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The fields of a MountRequest that were given, and a sentence for every option that has no effect."""
    fields: dict[str, Any] = {}
    told: list[str] = []
    given: dict[str, str] = {}
    for name, text in options.items():
        plain = name.strip().replace("_", "-").lower()
        if plain in NO_EFFECT:
            told.append(f"{name} has no effect: {NO_EFFECT[plain]}")
            continue
        if plain == "rw":
            plain, text = "ro", "false"  # noqa: PLW2901 - the same wish, the other way round
        if plain not in OPTIONS:
            raise InvalidFile("InvalidOption", f"option[{name}] is unknown; there are {', '.join(OPTIONS)}")
        field, read = OPTIONS[plain]
        if field in given:
            raise InvalidFile("InvalidOption", f"option[{name}] says the same as option[{given[field]}]; give one")
        given[field] = name
        fields[field] = read(name, text)
    if fields.get("write_back") and (fields.get("read_only") or fields.get("dataset") or fields.get("snapshot")):
        raise InvalidFile("InvalidOption", "option[write-back] has no meaning for a mount that is only read")
    return fields, told


def _wrong(name: str, text: str, wanted: str) -> InvalidFile:
    return InvalidFile("InvalidOption", f"option[{name}] should be {wanted}, not {text!r}")
