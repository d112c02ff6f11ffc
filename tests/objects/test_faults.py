"""Bad days of an S3 server and of the network before it: asked again where that is safe, an error where it is not, and
never wrong bytes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from paddleflow.adapters.objects.endpoints import open_s3
from paddleflow.adapters.objects.http1 import Line
from paddleflow.adapters.objects.retry import Patience, Retry
from paddleflow.adapters.objects.s3 import S3Store
from paddleflow.domain.errors import Denied, DiskFull, PaddleFlowError, Stale, Unavailable
from tests.objects.conftest import PATIENT, MakeS3
from tests.objects.contract import MIB, get, listed, put, source_of, walked
from tests.objects.proxy import (
    Alter,
    Drip,
    Fault,
    FaultProxy,
    First,
    Pass,
    Refuse,
    Reset,
    ResetRequest,
    Stall,
    Truncate,
)
from tests.objects.servers import S3Server

ATTEMPTS = 4
ONCE = Retry(patience=Patience(attempts=1))
CONTENT = os.urandom(300_000)


@pytest.fixture
def proxy(rclone_s3: S3Server) -> Iterator[FaultProxy]:
    proxy = FaultProxy(rclone_s3.port)
    yield proxy
    proxy.close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def root() -> str:
    return f"faults/{uuid.uuid4()}"


@pytest.fixture
def direct(open_rclone: MakeS3, root: str) -> S3Store:
    """The same place, past the proxy."""
    return open_rclone(root)


@pytest.fixture
def open_through(proxy: FaultProxy, rclone_s3: S3Server) -> Iterator[MakeS3]:
    """Opens stores behind the proxy, whose sockets it sees: so nothing is given up but what it stalls."""
    with ExitStack() as stack:

        def open_(root: str, retry: Retry, **properties: str) -> S3Store:
            given = rclone_s3.properties("bucket", **properties) | {"endpoint": proxy.endpoint}
            store = open_s3("s3", "", root, given, limits=PATIENT, retry=retry)
            stack.callback(store.close)
            connections = store._bucket._connections
            connect = connections._connect

            def connect_seen() -> Line:
                line = connect()
                proxy.see(line._socket)
                return line

            connections._connect = connect_seen  # type: ignore[method-assign]
            return store

        yield open_


@pytest.fixture
def store(open_through: MakeS3, proxy: FaultProxy, root: str, pauses: list[float]) -> S3Store:
    patience = Patience(attempts=ATTEMPTS, first_pause_s=1, deadline_s=1000)
    store = open_through(root, Retry(patience=patience, sleep=pauses.append))
    # What is found out once per server is found out before the faults begin.
    put(store, "warm", b"up")
    store.delete("warm")
    proxy.seen.clear()
    return store


ANSWER_FAULTS: list[Fault] = [
    Reset(0),
    Reset(40),
    Stall(0),
    Stall(30),
    Refuse(503, "SlowDown"),
    Refuse(500, "InternalError"),
    Refuse(502, ""),
    Refuse(429, "TooManyRequests"),
    ResetRequest(0),
]
BODY_FAULTS: list[Fault] = [Reset(2_000), Reset(200_000), Stall(200_000), Truncate(0), Truncate(299_999)]


@pytest.mark.parametrize("fault", [*ANSWER_FAULTS, *BODY_FAULTS], ids=str)
def test_a_read_is_tried_again(store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault) -> None:
    version = put(direct, "f", CONTENT).version
    for given in ("", version):
        proxy.plan("GET", fault, fault)
        assert store.read("f", 0, len(CONTENT), version=given) == CONTENT
    assert proxy.left == 0


@pytest.mark.parametrize("fault", [*ANSWER_FAULTS, *BODY_FAULTS], ids=str)
def test_a_read_gives_up_after_some_attempts(
    store: S3Store, direct: S3Store, proxy: FaultProxy, pauses: list[float], fault: Fault
) -> None:
    version = put(direct, "f", CONTENT).version
    proxy.plan("GET", *[fault] * 20)
    with pytest.raises(Unavailable):
        store.read("f", 0, len(CONTENT), version=version)
    assert len(pauses) == ATTEMPTS - 1 and pauses == sorted(pauses)


def test_a_slow_answer_is_an_answer(store: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    put(direct, "f", CONTENT)
    proxy.plan("GET", Drip(997))
    assert store.read("f", 0, len(CONTENT)) == CONTENT


def test_bytes_of_another_version_are_stale(store: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    version = put(direct, "f", b"old content").version
    proxy.plan("GET", First(lambda: put(direct, "f", b"new content")))
    with pytest.raises(Stale):
        store.read("f", 0, 11, version=version)


def test_a_change_between_attempts_is_stale(store: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    version = put(direct, "f", CONTENT).version
    proxy.plan("GET", Truncate(1000), First(lambda: put(direct, "f", CONTENT[::-1])))
    with pytest.raises(Stale):
        store.read("f", 0, len(CONTENT), version=version)


def test_another_etag_in_the_answer_is_stale(store: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    version = put(direct, "f", CONTENT).version
    proxy.plan("GET", Alter(rb'(?i)etag: "[0-9a-f]+"', b'ETag: "00000000000000000000000000000000"'))
    with pytest.raises(Stale):
        store.read("f", 0, len(CONTENT), version=version)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (rb"(?i)content-range: bytes 0-", b"Content-Range: bytes 1-"),
        (rb"(?i)content-range: bytes [0-9-]+/300000", b"Content-Range: bytes 0-299999/300001"),
        (rb"(?i)content-range: bytes [^\r]+", b"Content-Range: bytes nonsense"),
    ],
    ids=str,
)
def test_an_answer_that_is_not_the_part_asked_for(
    store: S3Store, direct: S3Store, proxy: FaultProxy, pattern: bytes, replacement: bytes
) -> None:
    put(direct, "f", CONTENT)
    proxy.plan("GET", *[Alter(pattern, replacement)] * ATTEMPTS)
    with pytest.raises(Unavailable):
        store.read("f", 0, len(CONTENT) + 1)
    assert store.read("f", 0, len(CONTENT) + 1) == CONTENT


@pytest.mark.parametrize("fault", ANSWER_FAULTS, ids=str)
def test_looking_is_tried_again(store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault) -> None:
    put(direct, "f", b"12345")
    proxy.plan("HEAD", fault, fault)
    assert store.stat("f").size == 5
    proxy.plan("GET", fault)
    assert set(listed(store)) == {"f"}


@pytest.mark.parametrize("fault", [Truncate(10), Truncate(200)], ids=str)
def test_half_a_listing_is_no_listing(store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault) -> None:
    for number in range(5):
        put(direct, str(number), b"")
    proxy.plan("GET", fault, fault)
    assert len(listed(store)) == 5


@pytest.mark.parametrize("fault", [*ANSWER_FAULTS, ResetRequest(1000), ResetRequest(299_999)], ids=str)
def test_a_write_is_tried_again(store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault) -> None:
    put(direct, "f", b"old")
    proxy.plan("PUT", fault, fault)
    written = put(store, "f", CONTENT)
    assert get(direct, "f") == CONTENT and direct.stat("f").version == written.version


@pytest.mark.parametrize("fault", [*ANSWER_FAULTS, ResetRequest(1000), ResetRequest(299_999)], ids=str)
def test_a_write_that_fails_leaves_the_old_or_the_new(
    store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault
) -> None:
    put(direct, "f", b"old")
    proxy.plan("PUT", *[fault] * 20)
    with pytest.raises(Unavailable):
        put(store, "f", CONTENT)
    assert get(direct, "f") in (b"old", CONTENT)
    assert set(walked(direct)) == {"f"}


LARGE = os.urandom(1 * MIB) * 20


@pytest.mark.parametrize("fault", [Reset(0), Refuse(), ResetRequest(100_000), Stall(0)], ids=str)
def test_parts_are_tried_again(store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault) -> None:
    proxy.plan("PUT", fault, Pass(), fault)
    written = put(store, "large", LARGE)
    assert direct.stat("large").version == written.version
    assert direct.read("large", 0, len(LARGE)) == LARGE


@pytest.mark.parametrize("fault", [Reset(0), Reset(30), Refuse()], ids=str)
def test_the_end_of_an_upload_may_be_asked_for_twice(
    store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault
) -> None:
    """The first attempt may have ended it: then the server knows nothing of the upload any more."""
    proxy.plan("POST", Pass(), fault)
    written = put(store, "large", LARGE)
    assert direct.stat("large").version == written.version
    assert direct.read("large", 0, len(LARGE)) == LARGE


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_an_upload_that_fails_is_given_up(store: S3Store, direct: S3Store, proxy: FaultProxy, method: str) -> None:
    put(direct, "large", b"old")
    proxy.plan(method, *[Pass()] * (method == "POST"), *[Refuse()] * 40)
    with pytest.raises(Unavailable):
        put(store, "large", LARGE)
    assert get(direct, "large") == b"old" and set(walked(direct)) == {"large"}
    assert [target for seen, target in proxy.seen if seen == "DELETE" and "uploadId=" in target]


@pytest.mark.parametrize("fault", [Reset(0), Refuse(), Stall(0), ResetRequest(0)], ids=str)
def test_removing_is_tried_again(store: S3Store, direct: S3Store, proxy: FaultProxy, fault: Fault) -> None:
    direct.make_directory("d")
    put(direct, "d/f", b"x")
    proxy.plan("DELETE", fault, fault)
    store.delete("d/f")
    assert set(walked(direct)) == {"d"}
    proxy.plan("DELETE", fault)
    store.remove_directory("d")
    assert walked(direct) == {}


def test_a_rename_that_was_cut_off_goes_on(store: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    direct.make_directory("from")
    direct.make_directory("from/empty")
    contents = {str(number): os.urandom(100) for number in range(12)}
    for name, content in contents.items():
        put(direct, f"from/{name}", content)
    for cut in (3, 7, 1):
        proxy.plan("DELETE", *[Pass()] * cut, *[Refuse(400, "Planned")] * 30)
        with pytest.raises(PaddleFlowError):
            store.rename("from", "to")
        proxy.clear()
        seen = set(walked(direct))
        for name in contents:
            assert {f"from/{name}", f"to/{name}"} & seen
    store.rename("from", "to")
    assert set(walked(direct)) == {"to", "to/empty", *(f"to/{name}" for name in contents)}
    for name, content in contents.items():
        assert get(direct, f"to/{name}") == content


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (Refuse(403, "AccessDenied"), Denied),
        (Refuse(403, "SignatureDoesNotMatch"), Denied),
        (Refuse(507, "InsufficientStorage"), DiskFull),
        (Refuse(400, "EntityTooLarge"), PaddleFlowError),
    ],
    ids=str,
)
def test_what_will_not_get_better_is_not_tried_again(
    store: S3Store, proxy: FaultProxy, pauses: list[float], refusal: Refuse, error: type[PaddleFlowError]
) -> None:
    proxy.plan("PUT", refusal)
    with pytest.raises(error):
        put(store, "f", b"x")
    assert pauses == [] and proxy.count("PUT") == 1


def test_the_server_says_how_long_to_wait(store: S3Store, proxy: FaultProxy, pauses: list[float]) -> None:
    proxy.plan("PUT", Refuse(503, "SlowDown", "Retry-After: 7\r\n"))
    put(store, "f", b"x")
    assert pauses == [7.0]


def test_a_document_that_fails_after_all_is_a_failure(store: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    """A server may answer 200 to a long piece of work and tell the error in the document."""
    put(direct, "f", b"content")
    proxy.plan("PUT", *[Refuse(200, "InternalError")] * ATTEMPTS)
    with pytest.raises(Unavailable):
        store.copy("f", "g")
    assert store.copy("f", "g").size == 7


def test_an_idle_connection_the_server_gave_up_costs_no_attempt(
    store: S3Store, direct: S3Store, proxy: FaultProxy, pauses: list[float]
) -> None:
    put(direct, "f", b"x")
    proxy.plan("HEAD", Truncate(0))  # answers in full, and closes the connection without a word
    store.stat("f")
    assert store.read("f", 0, 1) == b"x"
    assert pauses == []


def test_no_secret_is_in_any_error(open_through: MakeS3, proxy: FaultProxy, rclone_s3: S3Server) -> None:
    store = open_through("", ONCE, sessionToken="a-session-token")

    def calls() -> Iterator[Callable[[], object]]:
        for method, call in (
            ("GET", lambda: store.read("f", 0, 10)),
            ("HEAD", lambda: store.stat("f")),
            ("PUT", lambda: put(store, "f", b"x")),
        ):
            for fault in (*ANSWER_FAULTS, Refuse(403, "AccessDenied"), Refuse(400, "Strange")):
                proxy.clear()
                proxy.plan(method, fault, fault)
                yield call

    told = [repr(store), repr(store._bucket), repr(store._bucket._signer._credentials)]
    for call in calls():
        with pytest.raises(PaddleFlowError) as failure:
            call()
        error: BaseException | None = failure.value
        while error is not None:
            told += [str(error), repr(error), repr(getattr(error, "details", ""))]
            error = error.__cause__
    for secret in (rclone_s3.secret_key, "a-session-token", "Signature=", "Credential="):
        assert all(secret not in text for text in told)


def test_a_source_that_cannot_be_read_is_not_uploaded(store: S3Store, direct: S3Store) -> None:
    with source_of(b"0123456789") as fd, pytest.raises(Unavailable, match="ended"):
        store.write("f", fd, 20 * MIB)
    assert walked(direct) == {}


def test_a_write_counts_though_it_cannot_be_looked_at(
    open_through: MakeS3, proxy: FaultProxy, direct: S3Store, root: str
) -> None:
    store = open_through(root, ONCE)
    proxy.plan("HEAD", Refuse(403, "AccessDenied"), Refuse(503), Pass())
    for content in (b"first", b"second", b"third"):
        assert put(store, "f", content).version == direct.stat("f").version
