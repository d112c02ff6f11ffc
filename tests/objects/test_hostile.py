"""Storages that answer whatever they like: a refusal in words, no hang, no crash, and no name that leads elsewhere."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import permutations
from types import SimpleNamespace
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from paddleflow.adapters.objects import http1, snapshot_store
from paddleflow.adapters.objects.connections import Limits
from paddleflow.adapters.objects.endpoints import open_s3
from paddleflow.adapters.objects.hdfs import open_hdfs
from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.adapters.objects.retry import Patience, Retry
from paddleflow.adapters.objects.s3 import S3Store
from paddleflow.adapters.objects.snapshot_store import SnapshotStore
from paddleflow.domain.errors import Invalid, PaddleFlowError, Unavailable
from tests.objects.conftest import PATIENT
from tests.objects.contract import put

Reply = Callable[[str, str], bytes]
"""What is sent for a method and a target."""
ONCE = Retry(patience=Patience(attempts=1))
IMPATIENT = Limits(stall_s=0.05)
"""Where nothing comes that is worth waiting for."""


@contextmanager
def serving(reply: Reply) -> Iterator[int]:
    """A server of one's own making; the port it listens on."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    def converse(connection: socket.socket) -> None:
        # Whoever asked hangs up as soon as it has seen enough.
        with suppress(OSError), connection, connection.makefile("rb") as asked:
            while line := asked.readline():
                method, target, _ = line.decode().split(" ")
                while asked.readline().strip():
                    """Headers, which nobody looks at."""
                connection.sendall(reply(method, target))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@contextmanager
def hostile_s3(reply: Reply, root: str = "", limits: Limits = PATIENT) -> Iterator[S3Store]:
    with serving(reply) as port:
        properties = {
            "endpoint": f"http://127.0.0.1:{port}",
            "accessKey": "a",
            "secretKey": "b",
            "bucket": "bucket",
            "s3ForcePathStyle": "true",
        }
        store = open_s3("s3", "", root, properties, limits=limits, retry=ONCE)
        try:
            yield store
        finally:
            store.close()


def answer(body: bytes = b"", **headers: str) -> bytes:
    given = {"content-length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return b"HTTP/1.1 200 OK\r\n" + head.encode("latin-1") + b"\r\n" + body


def listing(
    keys: Sequence[str] = (), prefixes: Sequence[str] = (), *, token: str = "", size: str = "1", **more: str
) -> bytes:
    return listing_of((contents(key, size=size, **more) for key in keys), prefixes, token=token)


def contents(key: str, *, size: str = "1", time: str = "2026-01-01T00:00:00Z", etag: str = "&quot;abc&quot;") -> str:
    return (
        f"<Contents><Key>{quote(key)}</Key><Size>{size}</Size><LastModified>{time}</LastModified>"
        f"<ETag>{etag}</ETag></Contents>"
    )


def listing_of(objects: Iterable[str], prefixes: Sequence[str] = (), *, token: str = "") -> bytes:
    common = "".join(f"<CommonPrefixes><Prefix>{quote(one)}</Prefix></CommonPrefixes>" for one in prefixes)
    goes_on = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return answer(
        f"<ListBucketResult><Name>bucket</Name><EncodingType>url</EncodingType>{goes_on}{''.join(objects)}{common}"
        "</ListBucketResult>".encode()
    )


def names(store: S3Store, key: str = "") -> set[str]:
    return {entry.key for page in store.list(key) for entry in page}


def walked(store: S3Store, key: str = "") -> set[str]:
    return {entry.key for page in store.walk(key) for entry in page}


STRANGE = [
    "../x",
    "/abs",
    "a//b",
    "",
    ".",
    "..",
    "a/../../b",
    "nul\0name",
    "dir/",
    "good",
    "good",
    ".pf-ours",
    "x" * 1024,
]


def test_keys_that_are_no_paths_are_not_shown() -> None:
    with hostile_s3(lambda *_: listing(STRANGE, ["dir/", "../", "//", "nul\0dir/"])) as store:
        assert names(store) == {"good", "dir", "x" * 1024}
        assert walked(store) == {"good", "dir", "x" * 1024, "a"}  # of "a//b" only the directory has a name


@pytest.mark.parametrize("order", list(permutations([("f", "&quot;abc&quot;"), ("f", ""), ("g", "")])))
def test_a_key_that_is_listed_twice_is_one_entry(order: tuple[tuple[str, str], ...]) -> None:
    """rclone does it after several wrote one key at once, and leaves the ETag out of one of the two."""
    with hostile_s3(lambda *_: listing_of(contents(key, etag=etag) for key, etag in order)) as store:
        for look in (store.list, store.walk):
            found = {entry.key: entry.version for page in look("") for entry in page}
            assert sum(len(page) for page in look("")) == 2
            assert found == {"f": "abc", "g": "t1767225600-1"}


@pytest.mark.parametrize("keys", [["data.../escaped"], ["elsewhere"], ["dat"]])
def test_keys_outside_of_what_was_asked_for_are_refused(keys: list[str]) -> None:
    """``data.../escaped`` without its first five characters would be ``../escaped``."""
    for prefixes, objects in (([], keys), ([f"{key}/" for key in keys], [])):
        with hostile_s3(lambda *_, o=objects, p=prefixes: listing(o, p)) as store:
            for look in (names, walked):
                if prefixes and look is walked:
                    continue
                with pytest.raises(Unavailable, match="not asked for"):
                    look(store, "data")


@pytest.mark.parametrize("token", ["same", "{count}"])
def test_a_listing_without_end_is_given_up(token: str) -> None:
    count = iter(range(1_000_000))
    with (
        hostile_s3(lambda *_: listing(["a"], token=token.format(count=next(count)))) as store,
        pytest.raises(Unavailable, match="circle"),
    ):
        names(store)


def test_a_directory_that_never_becomes_empty_is_not_moved_for_ever() -> None:
    def reply(method: str, target: str) -> bytes:
        if method == "GET" and "prefix" in target:
            prefix = parse_qs(urlsplit(target).query)["prefix"][0]
            return listing([prefix + "x"]) if prefix == "old/" else listing()
        if method == "HEAD":
            path = urlsplit(target).path
            return answer(etag='"e"') if path.endswith("/old/x") else b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"
        return answer(b'<CopyObjectResult><ETag>"e"</ETag></CopyObjectResult>')

    with hostile_s3(reply) as store, pytest.raises(Unavailable, match="does not become empty"):
        store.rename("old", "new")


NONSENSE = [
    listing(["a"], size="many"),
    listing(["a"], size="-1"),
    listing(["a"], size="9" * 30),
    listing(["a"], size="1_0"),
    listing(["a"], time="yesterday"),
    listing(["a"], time="9999-99-99T00:00:00Z"),
    answer(b"<ListBucketResult>"),
    answer(b"\xff\xfe<a/>"),
    answer(b'<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx">]><a>&x;</a>'),
    answer(b""),
    b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 10_000_000,
    b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"t: x\r\n" * 100_000,
    b"\0\1\2\3\r\n\r\n",
]


@pytest.mark.parametrize("sent", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_an_error_in_words(sent: bytes) -> None:
    with hostile_s3(lambda *_: sent) as store, pytest.raises(PaddleFlowError) as refused:
        names(store)
    assert len(refused.value.message) < 500


@pytest.mark.parametrize(
    "sent",
    [b"", b"\0\1\2\3", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<p>"],
    ids=repr,
)
def test_a_server_that_falls_silent_is_given_up(sent: bytes) -> None:
    with hostile_s3(lambda *_: sent, limits=IMPATIENT) as store, pytest.raises(Unavailable, match="sent nothing for"):
        store.check()


@pytest.mark.parametrize(
    "headers",
    [
        {"content_length": "many"},
        {"content_length": "-1"},
        {"content_length": "9" * 30},
        {"last_modified": "yesterday"},
        {"last_modified": "Mon, 99 Foo 99999 99:99:99 GMT"},
    ],
)
def test_nonsense_about_one_object_is_an_error_in_words(headers: dict[str, str]) -> None:
    with hostile_s3(lambda *_: answer(b"", **headers)) as store, pytest.raises(Unavailable):
        store.stat("a")


@pytest.mark.parametrize("etag", ["a&#13;&#10;x-injected: 1", "a&#10;b", "ünïcode", "e" * 100_000, "a&quot;b"])
def test_a_strange_etag_is_a_version_and_never_a_header(etag: str) -> None:
    asked: list[str] = []

    def reply(method: str, target: str) -> bytes:
        asked.append(f"{method} {target}")
        if "list-type" in target:
            return listing(["a"], etag=etag)
        return answer(b"x", content_range="bytes 0-0/1", etag='"other"')

    with hostile_s3(reply) as store:
        [found] = [entry for page in store.list("") for entry in page]
        assert found.version.isascii()
        assert found.version.isalnum()
        with pytest.raises(PaddleFlowError):
            store.read("a", 0, 1, version=found.version)
    assert not [line for line in asked if "injected" in line]


def test_a_server_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte every now and then is no answer: it would take days. Here each takes a second of a clock of our own."""
    listener = socket.create_server(("127.0.0.1", 0))
    begun = threading.Event()
    dripped = 0

    def clock() -> int:
        """Looked at for the first time when the request is on its way."""
        begun.set()
        return dripped

    monkeypatch.setattr(http1, "time", SimpleNamespace(monotonic=clock))

    def drip() -> None:
        nonlocal dripped
        connection, _ = listener.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            begun.wait()
            with suppress(OSError):
                while True:
                    dripped += 1
                    connection.sendall(b"y")

    thread = threading.Thread(target=drip)
    thread.start()
    properties = {"endpoint": f"http://127.0.0.1:{listener.getsockname()[1]}", "accessKey": "a", "secretKey": "b"}
    store = open_s3("s3", "", "", properties | {"bucket": "bucket"}, limits=PATIENT, retry=ONCE)
    try:
        with pytest.raises(Unavailable, match="sent nothing for"):
            store.check()
    finally:
        store.close()
        thread.join()
        listener.close()


def test_what_a_server_says_moves_no_cursor() -> None:
    body = b"<Error><Code>AccessDenied\x1b[2J</Code><Message>no\r\nFAKE LOG LINE\x07</Message></Error>"
    sent = b"HTTP/1.1 403 No\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    with hostile_s3(lambda *_: sent) as store, pytest.raises(PaddleFlowError) as refused:
        store.check()
    assert refused.value.message.isprintable()


# HDFS


def hdfs_listing(*suffixes: str, left: int = 0) -> bytes:
    held = [
        {"pathSuffix": name, "type": "FILE", "length": 1, "modificationTime": 1, "fileId": 1, "permission": "644"}
        for name in suffixes
    ]
    partial = {"FileStatuses": {"FileStatus": held}}
    return answer(json.dumps({"DirectoryListing": {"partialListing": partial, "remainingEntries": left}}).encode())


def _directory() -> bytes:
    status = {"type": "DIRECTORY", "length": 0, "modificationTime": 1, "fileId": 1, "permission": "755"}
    return answer(json.dumps({"FileStatus": status}).encode())


NAME_NODES = [
    hdfs_listing("../x"),
    hdfs_listing(".."),
    hdfs_listing(""),
    hdfs_listing("a\0b"),
    hdfs_listing("a", left=5),
    answer(b"[]"),
    answer(b"{}"),
    answer(b"no json"),
    answer(b"[" * 100_000),
    answer(b'{"DirectoryListing": {"partialListing": 3}}'),
]


@pytest.mark.parametrize("sent", NAME_NODES, ids=range(len(NAME_NODES)))
def test_a_hostile_name_node_is_refused(sent: bytes) -> None:
    with serving(lambda _, target: sent if "LISTSTATUS" in target else _directory()) as port:
        properties = {"user": "me", "webhdfs": f"http://127.0.0.1:{port}"}
        store = open_hdfs(f"127.0.0.1:{port}", "/", properties, limits=PATIENT, retry=ONCE)
        try:
            with pytest.raises(PaddleFlowError):
                list(store.list("data"))
        finally:
            store.close()


# Manifests of snapshots


def snapshot_with(manifest: bytes) -> SnapshotStore:
    store = MemoryStore()
    put(store, "manifest", manifest)
    return SnapshotStore(store, manifest="manifest", content="")


def packed(*lines: dict[str, object]) -> bytes:
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())


FILE = {"size": 1, "version": "v"}


MANIFESTS = [
    packed({"path": "../x", **FILE}),
    packed({"path": "/etc/passwd", **FILE}),
    packed({"path": "", **FILE}),
    packed({"path": "a/../../b", **FILE}),
    packed({"path": "a\0b", **FILE}),
    packed({"path": "/".join(["a"] * 5000), **FILE}),
    packed({"path": "a", "version": "v", "size": 1 << 70}),
    packed({"path": "a", "version": "v", "size": "1"}),
    packed({"path": "a", **FILE}, {"path": "a/b", **FILE}),
    gzip.compress(b"[]\n"),
    gzip.compress(b"[" * 50_000 + b"\n"),
    gzip.compress(b"\0" * 50_000_000),
    gzip.compress(b'{"path": "a"}'),
    b"no gzip at all",
    packed({"path": "a"})[:-9],
]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=range(len(MANIFESTS)))
def test_a_hostile_manifest_is_damaged(manifest: bytes) -> None:
    with pytest.raises(Invalid, match="damaged"):
        snapshot_with(manifest)


def test_a_manifest_without_end_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_store, "MOST_ENTRIES", 100)
    lines = packed(*({"path": "same", **FILE} for _ in range(100)))
    assert snapshot_with(lines).stat("same").size == 1
    with pytest.raises(Invalid, match="damaged"):
        snapshot_with(packed(*({"path": "same", **FILE} for _ in range(101))))


@pytest.mark.parametrize("name", ["line\u2028separator", "next\x85line", "form\x0cfeed", "new\nline"])
def test_names_with_unusual_line_ends_are_names(name: str) -> None:
    line = json.dumps({"path": name, **FILE}, ensure_ascii=False)
    assert snapshot_with(gzip.compress(f"{line}\n".encode())).stat(name).version == "v"
