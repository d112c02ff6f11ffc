"""HDFS, by its REST protocol.

Of the two ways to HDFS the native protocol reads two to four times as fast; but the library that speaks it removes
directories with all that is in them, knows one user for the whole process, keeps no permissions, and gives up an
unreachable name node after minutes. So this store takes the slower way, which has exact words for everything: a
directory is removed only when it is empty, a rename replaces at once or not at all, and every request names its user.

An object is written beside its place under a hidden name and moved over it. Its version is the number HDFS gives the
file, its time and its size. A name may hold anything that is UTF-8, but no colon. Owners are names in HDFS and numbers
here: they are not shown, and cannot be set. No links, no extended attributes.

Properties: ``user``; ``webhdfs``, the HTTP addresses of the name nodes where they are not the usual port 9870 of the
hosts in the URL; ``blockSize`` and ``replication`` of new files.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from paddleflow.adapters.objects.connections import Limits
from paddleflow.adapters.objects.keys import (
    check_key,
    check_object_key,
    check_range,
    hidden_name,
    is_below,
    is_hidden,
    join_key,
    parent_of,
)
from paddleflow.adapters.objects.retry import Retry
from paddleflow.adapters.objects.source import read_exactly
from paddleflow.adapters.objects.webhdfs import NameNodes, Refusal
from paddleflow.domain.errors import (
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    PaddleFlowError,
    Stale,
    Unavailable,
    invalid_field,
)
from paddleflow.ports.objects import ObjectEntry, Traits, Usage

_HTTP_PORT = 9870
_PIECE = 1024 * 1024
_COPY_PIECE = 8 * 1024 * 1024
_SETTLED_READS = 10


def open_hdfs(
    address: str, root: str, properties: Mapping[str, str], *, limits: Limits | None = None, retry: Retry | None = None
) -> HdfsStore:
    """``address`` is host:port of the name node, or several of them with commas between."""
    if kerberos := sorted(name for name in properties if name.startswith("kerberos.")):
        raise invalid_field(
            kerberos[0], "Kerberos is not supported: mount a cluster that trusts user names, or copy the data over"
        )
    user = properties.get("user", "")
    if not user:
        raise invalid_field("user", "it is missing: an HDFS filesystem needs the name of the user there")
    nodes = NameNodes(endpoints_of(address, properties.get("webhdfs", "")), user, limits=limits)
    return HdfsStore(nodes, "/" + root.strip("/"), creation=_creation(properties), retry=retry)


def endpoints_of(address: str, given: str) -> Sequence[str]:
    """Where the name nodes serve HTTP: ``given``, or the usual port of the hosts of the address."""
    if given:
        endpoints = [part.strip().rstrip("/") for part in given.split(",")]
        for endpoint in endpoints:
            if not re.fullmatch(r"https?://[^/\s:]+:\d{1,5}|https?://\[[0-9a-fA-F:]+\]:\d{1,5}", endpoint):
                raise invalid_field("webhdfs", f"[{endpoint}] is no address: write http://host:{_HTTP_PORT}")
        return endpoints
    hosts = [part.strip().rpartition(":")[0] or part.strip() for part in address.split(",")]
    if not all(hosts):
        raise invalid_field("url", f"[{address}] names no host: write hdfs://host:port/path")
    return [f"http://{host}:{_HTTP_PORT}" for host in hosts]


def _creation(properties: Mapping[str, str]) -> Mapping[str, str]:
    """How new files are to be kept."""
    wishes = {"blockSize": "blocksize", "replication": "replication"}
    for name in wishes:
        value = properties.get(name, "1")
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            raise invalid_field(name, f"[{value}] is no whole number above 0")
    return {parameter: properties[name] for name, parameter in wishes.items() if name in properties}


class HdfsStore:
    """``ports.objects.ObjectStore``."""

    traits = Traits(
        real_directories=True,
        atomic_rename=True,
        holds_modes=True,
        holds_links=False,
        holds_xattrs=False,
        checked_reads=False,
    )

    def __init__(
        self, nodes: NameNodes, root: str, *, creation: Mapping[str, str] | None = None, retry: Retry | None = None
    ) -> None:
        self._nodes, self._root = nodes, root.rstrip("/")
        self._creation = creation or {}
        self._retry = retry or Retry()

    def check(self) -> None:
        try:
            root = self.stat("")
        except NotFound as error:
            raise NotFound(f"there is no directory [{self._root or '/'}] in HDFS: make it, or correct it") from error
        except Unavailable as error:
            raise Unavailable(
                f"{error.message}; if the name node serves HTTP elsewhere, set the property webhdfs to http://host:port"
            ) from error
        if not root.is_directory:
            raise Invalid(f"[{self._root}] in HDFS is not a directory")

    def stat(self, key: str) -> ObjectEntry:
        path = self._path(check_key(key))
        found = self._retry.run(lambda: self._nodes.ask_again("GET", path, "GETFILESTATUS"))
        with _understood():
            return _entry(key, found["FileStatus"])

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        if not self.stat(key).is_directory:
            raise Invalid(f"{key!r} is not a directory")
        path, after, left = self._path(key), "", 1
        while left:
            listing = self._retry.run(partial(self._list_batch, path, after))
            with _understood():
                held = listing["partialListing"]["FileStatuses"]["FileStatus"]
                left = int(listing["remainingEntries"]) if held else 0
                before, after = after, _name(held[-1]) if held else ""
                page = [_entry(join_key(key, _name(status)), status) for status in held]
            if held and after <= before:
                raise Unavailable("the listing of HDFS does not come to an end: it goes round in a circle")
            yield [entry for entry in page if not is_hidden(entry.key)]

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        waiting = [key]
        while waiting:
            directory = waiting.pop()
            try:
                for page in self.list(directory):
                    waiting.extend(entry.key for entry in page if entry.is_directory)
                    yield page
            except (NotFound, Invalid):
                # Below the top, somebody took it away, or put a file there, since its parent was listed.
                if directory == key:
                    raise

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        check_range(start, size)
        for _ in range(_SETTLED_READS):
            content = self._retry.run(lambda: self._read_settled(key, start, size, version))
            if content is not None:
                return content
        raise Unavailable(f"{key!r} is changed all the time while it is read")

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        def pieces() -> Iterator[bytes]:
            return (read_exactly(source, at, min(_PIECE, size - at)) for at in range(0, size, _PIECE))

        return self._retry.run(lambda: self._put(check_object_key(key), size, pieces(), mode))

    def delete(self, key: str) -> None:
        if self.stat(check_object_key(key)).is_directory:
            raise Invalid(f"{key!r} is a directory")
        self._remove(key)

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        """Made under another name and moved, because HDFS makes directories that are there already, gladly."""
        if not check_key(key):
            raise Duplicate("the root of a store is there already")
        self._check_parent(key)
        if self._find(key) is not None:
            raise Duplicate(f"{key!r} is there already")
        hidden = join_key(parent_of(key), hidden_name())
        self._once("PUT", hidden, "MKDIRS", permission=_octal(0o755 if mode is None else mode))
        try:
            self._once("PUT", hidden, "RENAME", destination=self._path(key), renameoptions="NONE")
        except BaseException:
            self._remove(hidden)
            raise
        if mode is not None:
            # The server took its umask away from it.
            self.set_modes(key, mode=mode)

    def remove_directory(self, key: str) -> None:
        if not self.stat(check_object_key(key)).is_directory:
            raise Invalid(f"{key!r} is not a directory")
        try:
            self._remove(key)
        except InUse:
            self._sweep(key)
            self._remove(key)

    def rename(self, source: str, target: str) -> None:
        moved = self.stat(check_object_key(source))
        if check_object_key(target) == source:
            return
        if is_below(target, source):
            raise Invalid(f"{source!r} cannot be moved into itself")
        self._check_parent(target)
        replaced = self._find(target)
        if replaced is not None and replaced.is_directory != moved.is_directory:
            raise Invalid(f"{target!r} is there, and only one of the two is a directory")
        if replaced is not None and replaced.is_directory:
            self._sweep(target)
        self._once("PUT", source, "RENAME", destination=self._path(target), renameoptions="OVERWRITE")

    def copy(self, source: str, target: str) -> ObjectEntry:
        """HDFS copies nothing by itself: the content passes through here."""
        found = self._file(check_object_key(source))

        def pieces() -> Iterator[bytes]:
            for start in range(0, found.size, _COPY_PIECE):
                yield self.read(source, start, _COPY_PIECE, version=found.version)

        return self._retry.run(lambda: self._put(check_object_key(target), found.size, pieces(), None))

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        path = self._path(check_key(key))
        if uid is not None or gid is not None:
            raise Invalid("owners and groups are names in HDFS: they cannot be set by number")
        if mode is not None:
            self._retry.run(lambda: self._nodes.ask_again("PUT", path, "SETPERMISSION", permission=_octal(mode)))
        if modified_ns is not None:
            moment = modified_ns // 1_000_000
            self._retry.run(lambda: self._nodes.ask_again("PUT", path, "SETTIMES", modificationtime=moment))

    def make_link(self, key: str, target: str) -> None:
        check_object_key(key)
        raise Invalid("HDFS has no symbolic links")

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        raise _no_xattrs(key)

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        raise _no_xattrs(key)

    def remove_xattr(self, key: str, name: str) -> None:
        raise _no_xattrs(key)

    def usage(self) -> Usage | None:
        try:
            found = self._retry.run(lambda: self._nodes.ask_again("GET", self._path(""), "GETSTATUS"))["FsStatus"]
        except (Invalid, Refusal):
            # Older ones do not know the question.
            return None
        return Usage(total=int(found["capacity"]), free=int(found["remaining"]))

    def close(self) -> None:
        self._nodes.close()

    def _read_settled(self, key: str, start: int, size: int, version: str) -> bytes | None:
        """None: it was changed meanwhile, and the bytes are not to be trusted."""
        found = self._file(key)
        if version and found.version != version:
            raise Stale(f"{key!r} is another version by now")
        length = max(0, min(size, found.size - start))
        try:
            content = self._nodes.read(self._path(key), start, length) if length else b""
        except Unavailable:
            # It may have become shorter. If it has not, this is how it is.
            if self.stat(key).version == found.version:
                raise
            return None
        return content if self.stat(key).version == found.version else None

    def _put(self, key: str, size: int, pieces: Iterator[bytes], mode: int | None) -> ObjectEntry:
        old = self._find(key)
        if old is not None and old.is_directory:
            raise Invalid(f"{key!r} is a directory")
        self._check_parent(key)
        mode = old.mode if mode is None and old is not None else mode
        permission = _octal(0o644 if mode is None else mode)
        hidden = join_key(parent_of(key), hidden_name())
        path = self._path(hidden)
        self._nodes.find_leader()
        try:
            self._nodes.create(path, size, pieces, **self._creation)
            self._nodes.ask("PUT", path, "SETPERMISSION", permission=permission)
            written = self._written(hidden, size)
            destination = self._path(key)
            self._nodes.ask("PUT", path, "RENAME", destination=destination, renameoptions="OVERWRITE")
        except BaseException:
            # What cannot be taken away now is hidden, and goes with its directory.
            with contextlib.suppress(PaddleFlowError):
                self._nodes.ask("DELETE", path, "DELETE")
            raise
        return replace(written, key=key)

    def _written(self, key: str, size: int) -> ObjectEntry:
        written = self.stat(key)
        if written.size != size:
            raise Unavailable(f"HDFS holds {written.size} bytes of a file of {size}")
        return written

    def _once(self, method: str, key: str, operation: str, **parameters: str | int) -> Any:
        """For what must not be done twice."""
        path = self._path(key)
        self._nodes.find_leader()
        try:
            return self._nodes.ask(method, path, operation, **parameters)
        except Refusal:
            raise
        except Unavailable as error:
            raise Unavailable(f"{error.message}; {key!r} may have been changed") from error

    def _remove(self, key: str) -> None:
        """A file, or a directory that is empty."""
        if not self._once("DELETE", key, "DELETE", recursive="false")["boolean"]:
            raise NotFound(f"{key!r} is not there")

    def _sweep(self, key: str) -> None:
        """Out of a directory that shows nothing: what writers that died have left in it."""
        path = self._path(key)
        held = self._nodes.ask_again("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        if not all(is_hidden(status["pathSuffix"]) for status in held):
            raise InUse(f"{key!r} is not empty")
        for status in held:
            self._remove(join_key(key, status["pathSuffix"]))

    def _list_batch(self, path: str, after: str) -> Any:
        parameters = {"startAfter": after} if after else {}
        listing = self._nodes.ask_again("GET", path, "LISTSTATUS_BATCH", **parameters)
        with _understood():
            return listing["DirectoryListing"]

    def _find(self, key: str) -> ObjectEntry | None:
        try:
            return self.stat(key)
        except NotFound:
            return None

    def _file(self, key: str) -> ObjectEntry:
        found = self.stat(key)
        if found.is_directory:
            raise Invalid(f"{key!r} is a directory")
        return found

    def _check_parent(self, key: str) -> None:
        """HDFS would make what is missing of the way."""
        if not self.stat(parent_of(key)).is_directory:
            raise Invalid(f"{parent_of(key)!r} is not a directory")

    def _path(self, key: str) -> str:
        try:
            key.encode()
        except UnicodeEncodeError as error:
            raise invalid_field("key", f"{key!r} is no UTF-8, and HDFS holds no other names") from error
        if ":" in key:
            raise invalid_field("key", f"{key!r} has a colon in it, which HDFS does not allow")
        return f"{self._root}/{key}" if key else self._root or "/"


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Whatever is at the address may answer whatever it likes."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Unavailable("the answer is not what HDFS answers: is the address a name node's?") from error


def _name(status: Mapping[str, Any]) -> str:
    """As it becomes a part of a path."""
    name = str(status["pathSuffix"])
    if "/" in name or not check_key(name):
        raise ValueError("no name of a file")
    return name


def _entry(key: str, status: Mapping[str, Any]) -> ObjectEntry:
    is_directory = status["type"] == "DIRECTORY"
    moment, size = int(status["modificationTime"]), int(status["length"])
    return ObjectEntry(
        key=key,
        is_directory=is_directory,
        size=0 if is_directory else size,
        modified_ns=moment * 1_000_000,
        version="" if is_directory else f"{status['fileId']}-{moment}-{size}",
        mode=int(status["permission"], 8),
    )


def _octal(mode: int) -> str:
    return f"{mode & 0o1777:o}"


def _no_xattrs(key: str) -> Invalid:
    check_key(key)
    return Invalid("this store keeps no extended attributes")
