"""One bucket of an S3 server: its requests and answers, without any notion of directories.

Why not a general library: a reader must see the ETag of the very answer that brought its bytes, because there are
servers that do not know If-Match, and a writer must learn the ETag of its own PUT, not of the one that came after it;
without both, a cache sooner or later keeps bytes under the wrong version. The libraries we tried hand out neither.

Every request may be repeated, and is: a PUT puts the same bytes, a DELETE deletes what is gone. Errors carry the
server's code and sentence, and nothing of the request: no key, no signature.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from paddleflow.adapters.objects.connections import Connections
from paddleflow.adapters.objects.failures import error_of
from paddleflow.adapters.objects.http1 import Answer
from paddleflow.adapters.objects.retry import Retry
from paddleflow.adapters.objects.signing import UNSIGNED, Query, Signer, digest_of, encode_path, encode_query
from paddleflow.domain.errors import Invalid, NotFound, PaddleFlowError, Stale, Unavailable

T = TypeVar("T")

_DOCUMENT_LIMIT = 16 << 20
"""Bytes of a listing or an error; the largest page is well below."""
_MISSING = 404
_BAD_RANGE = 416
_NO_CONTENT = 204
_ETAG_LIMIT = 256
_SIZE_DIGITS = 18
"""More than any object has, and less than a file's size may."""
_WRITE = "x-amz-meta-pf-write"
"""A name that a write gives to what it makes, to know it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a server says of an object."""

    size: int
    version: str
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    key: str
    head: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    objects: Sequence[ListedObject]
    prefixes: Sequence[str]
    """Each ends in the delimiter."""
    next_token: str
    """Empty at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How a bucket is addressed."""

    host: str
    """For the Host header, with the port where it is not the usual one."""
    path: str
    """Before every key: ``/bucket`` or nothing."""
    bucket: str
    is_encrypted: bool


class Bucket:
    def __init__(
        self,
        place: Place,
        connections: Connections,
        signer: Signer,
        retry: Retry,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._place, self._connections, self._signer, self._retry, self._now = place, connections, signer, retry, now
        self._tells_version = {"put": False, "upload": False}

    def find(self, key: str) -> Head | None:
        answer = self._ask("HEAD", key, accept=(200, _MISSING))
        return None if answer.status == _MISSING else _head(answer, _length(answer))

    def read(self, key: str, start: int, size: int, version: str) -> bytes:
        """These bytes of this version (any, when it is empty); none beyond the end. NotFound, Stale."""
        headers = {"range": f"bytes={start}-{start + size - 1}"}
        if version and not version.startswith(_BY_TIME):
            headers["if-match"] = f'"{version}"'

        def get() -> bytes:
            answer = self._ask_once("GET", key, headers=headers, accept=(200, 206, _BAD_RANGE), at_most=size)
            if answer.status == _BAD_RANGE:
                return b""
            total = _check_part(answer, start, size)
            if version and _head(answer, total).version != version:
                raise Stale(f"{key} is another version by now")
            return answer.body

        content = self._retry.run(get)
        if not content and version:
            # Nothing told us which version it is that ends before this range.
            head = self.find(key)
            if head is None:
                raise NotFound(f"{key} is not there")
            if head.version != version:
                raise Stale(f"{key} is another version by now")
        return content

    def put(self, key: str, body: bytes) -> Head:
        write = _write_name()
        headers = {} if self._tells_version["put"] else {_WRITE: write}
        answer = self._ask("PUT", key, headers=headers, body=body)
        return self._written("put", key, answer.header("etag"), answer, len(body), write)

    def mark(self, key: str) -> None:
        """Put an object of no bytes, of which nobody wants to know the version."""
        self._ask("PUT", key)

    def delete(self, key: str) -> None:
        """Of what is not there, too."""
        self._ask("DELETE", key, accept=(200, _NO_CONTENT, _MISSING))

    def copy(self, source: str, target: str, size: int) -> Head:
        answer, document = self._ask_document("PUT", target, "ETag", headers=self.copy_source(source))
        version = _bare(_text(document, "ETag"))
        if version:
            return Head(size=size, version=version, modified_ns=_http_time(answer.header("date")))
        head = self.find(target)
        if head is None:
            raise Unavailable(f"{target} was copied, and is gone again")
        return head

    def copy_source(self, key: str) -> dict[str, str]:
        return {"x-amz-copy-source": encode_path(f"/{self._place.bucket}/{key}")}

    def list(self, prefix: str, *, delimiter: str = "", limit: int = 1000, token: str = "") -> ListedPage:
        query = [("list-type", "2"), ("prefix", prefix), ("max-keys", str(limit)), ("encoding-type", "url")]
        if delimiter:
            query.append(("delimiter", delimiter))
        if token:
            query.append(("continuation-token", token))
        _, document = self._ask_document("GET", "", "Name", query=query)
        decode = unquote_plus if _text(document, "EncodingType") == "url" else str
        next_token = _text(document, "NextContinuationToken")
        if _text(document, "IsTruncated") == "true" and not next_token:
            raise Unavailable("the server says that a listing goes on, but not where")
        space = document.tag[: document.tag.find("}") + 1]
        prefixes = document.iterfind(f"{space}CommonPrefixes/{space}Prefix")
        objects = (_listed(found, space, decode) for found in document.iterfind(f"{space}Contents"))
        return ListedPage(
            objects=_each_once(_within(prefix, found.key, found) for found in objects),
            prefixes=[_within(prefix, name, name) for name in (decode(found.text or "") for found in prefixes)],
            next_token=next_token,
        )

    def close(self) -> None:
        self._connections.close()

    # Uploads in parts

    def begin_upload(self, key: str) -> tuple[str, str]:
        """The server's name for the upload, and ours for the object it will make."""
        write = _write_name()
        _, document = self._ask_document("POST", key, "UploadId", query=[("uploads", "")], headers={_WRITE: write})
        return _text(document, "UploadId"), write

    def put_part(self, key: str, upload: str, number: int, body: bytes) -> str:
        """The part's ETag, as the server wrote it."""
        return self._ask("PUT", key, query=_part(upload, number), body=body).header("etag")

    def copy_part(self, key: str, upload: str, number: int, source: str, start: int, size: int) -> str:
        headers = self.copy_source(source) | {"x-amz-copy-source-range": f"bytes={start}-{start + size - 1}"}
        _, document = self._ask_document("PUT", key, "ETag", query=_part(upload, number), headers=headers)
        return _text(document, "ETag")

    def finish_upload(self, key: str, upload: str, parts: Sequence[str], size: int, write: str) -> Head:
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
            for number, etag in enumerate(parts, 1)
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        try:
            answer, document = self._ask_document("POST", key, "ETag", query=[("uploadId", upload)], body=body)
        except NotFound as error:
            # The upload is unknown: an earlier attempt finished it and its answer was lost, or somebody dropped it.
            head = self._find_write(key, write)
            if head is None:
                raise Unavailable(f"{key} may have been written: the server no longer knows the upload") from error
            return head
        return self._written("upload", key, _text(document, "ETag"), answer, size, write)

    def drop_upload(self, key: str, upload: str) -> None:
        self._ask("DELETE", key, query=[("uploadId", upload)], accept=(200, _NO_CONTENT, _MISSING))

    def _written(self, way: str, key: str, etag: str, answer: Answer, size: int, write: str) -> Head:
        """The version a write made. Most servers tell it in their answer, and then that is all. Some tell another than
        they show afterwards; so the first time we look, and go on looking where they differ. What we see may be
        somebody else's write by then: the name that went with ours shows whose it is."""
        told = Head(size=size, version=_bare(etag) or write, modified_ns=_http_time(answer.header("date")))
        if self._tells_version[way]:
            return told
        try:
            shown = self._find_write(key, write, told.version)
        except PaddleFlowError:
            return told  # it is written, and what the server told is at worst a version that nobody sees again
        if shown is None:
            return told
        self._tells_version[way] = shown.version == told.version
        return shown

    def _find_write(self, key: str, write: str, version: str = "") -> Head | None:
        """What this write made, if that is what is there: known by its name, or by its very version."""
        answer = self._ask("HEAD", key, accept=(200, _MISSING))
        if answer.status == _MISSING:
            return None
        head = _head(answer, _length(answer))
        return head if answer.header(_WRITE) == write or head.version == version else None

    # One request

    def _ask_document(
        self,
        method: str,
        key: str,
        needed: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> tuple[Answer, ET.Element]:
        def ask() -> tuple[Answer, ET.Element]:
            answer = self._ask_once(method, key, query=query, headers=headers, body=body)
            document = _parse(answer.body)
            if document.tag.rpartition("}")[2] == "Error":
                # A long piece of work is answered with 200 at once, and may fail afterwards.
                raise error_of(500, answer.headers, answer.body, key, self._place.bucket)
            if document.find(f"{{*}}{needed}") is None:
                raise Unavailable(f"the answer has no {needed}: is the endpoint an S3 server?")
            return answer, document

        return self._retry.run(ask)

    def _ask(
        self,
        method: str,
        key: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        accept: Sequence[int] = (200,),
    ) -> Answer:
        return self._retry.run(
            lambda: self._ask_once(method, key, query=query, headers=headers, body=body, accept=accept)
        )

    def _ask_once(
        self,
        method: str,
        key: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        accept: Sequence[int] = (200,),
        at_most: int = 0,
    ) -> Answer:
        path = self._place.path + ("/" + encode_path(_checked(key)) if key else "/")
        encoded_query = encode_query(query)
        digest = UNSIGNED if self._place.is_encrypted and body else digest_of(body)
        moment = datetime.fromtimestamp(self._now(), UTC).strftime("%Y%m%dT%H%M%SZ")
        given = {"host": self._place.host, **(headers or {})}
        signed = self._signer.sign(method, path, encoded_query, given, digest, moment=moment)
        target = f"{path}?{encoded_query}" if encoded_query else path
        answer = self._connections.ask(method, target, signed, body, at_most=max(at_most, _DOCUMENT_LIMIT))
        if answer.status not in accept:
            raise error_of(answer.status, answer.headers, answer.body, key, self._place.bucket)
        return answer


_BY_TIME = "t"
"""How a version begins that was made of time and size, for want of an ETag that can be sent back. No ETag does: they
are hexadecimal."""


def _write_name() -> str:
    return secrets.token_hex(12)


def _checked(key: str) -> str:
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{key!r} is no UTF-8, and S3 keeps no other names") from None
    if len(encoded) > 1024:
        raise Invalid(f"a key of {len(encoded)} bytes: S3 takes at most 1024, with the path of the filesystem in front")
    return key


def _part(upload: str, number: int) -> Query:
    return [("partNumber", str(number)), ("uploadId", upload)]


def _check_part(answer: Answer, start: int, size: int) -> int:
    """The size of the whole object, once it is sure that the body is the range that was asked for."""
    length = len(answer.body)
    if answer.status == 200 and not answer.header("content-range"):
        if start or length > size:
            raise Invalid("the server does not know ranges: it answers a part with the whole")
        return length
    unit, _, said = answer.header("content-range").partition(" ")
    span, _, whole = said.partition("/")
    first, _, last = span.partition("-")
    if unit != "bytes" or not (first + last + whole).isdigit():
        raise Unavailable(f"the server does not say which part it sent: {said[:80]!r}")
    expected = min(size, int(whole) - start)
    if int(first) != start or int(last) - start + 1 != length or length != expected:
        raise Unavailable(f"asked for {expected} bytes from {start}, got {length} from {first}")
    return int(whole)


def _head(answer: Answer, size: int) -> Head:
    modified_ns = _http_time(answer.header("last-modified"))
    version = _bare(answer.header("etag")) or _by_time(modified_ns, size)
    return Head(size=size, version=version, modified_ns=modified_ns)


def _listed(found: ET.Element, space: str, decode: Callable[[str], str]) -> ListedObject:
    """``space`` is the namespace of the document, looked up once: a page has a thousand of these."""
    size = _size(found.findtext(f"{space}Size") or "0")
    said = found.findtext(f"{space}LastModified")
    modified_ns = 0
    if said:
        try:
            moment = datetime.fromisoformat(said)
            modified_ns = int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()) * 10**9
        except (ValueError, OverflowError) as error:
            raise _nonsense("time", said) from error
    version = _bare(found.findtext(f"{space}ETag") or "") or _by_time(modified_ns, size)
    key = decode(found.findtext(f"{space}Key") or "")
    return ListedObject(key=key, head=Head(size=size, version=version, modified_ns=modified_ns))


def _each_once(objects: Iterable[ListedObject]) -> Sequence[ListedObject]:
    """rclone, after writers that met at one key, lists it twice for minutes, once without an ETag. A directory has no
    two entries of one name; the one with an ETag is the one that can be read back by its version."""
    once: dict[str, ListedObject] = {}
    for found in objects:
        if found.key not in once or once[found.key].head.version.startswith(_BY_TIME):
            once[found.key] = found
    return list(once.values())


def _by_time(modified_ns: int, size: int) -> str:
    return f"{_BY_TIME}{modified_ns // 10**9}-{size}"


def _bare(etag: str) -> str:
    """As it goes into a header of ours again. One that cannot is told apart by its digest, and never sent back."""
    bare = etag.removeprefix("W/").strip('"')
    if len(bare) > _ETAG_LIMIT or not (bare.isascii() and bare.isprintable()) or '"' in bare:
        return _BY_TIME + hashlib.blake2b(bare.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return bare


def _http_time(said: str) -> int:
    """In whole seconds, as everywhere in HTTP; listings are cut to the same, so that both tell the same time."""
    try:
        return int(parsedate_to_datetime(said).timestamp()) * 10**9 if said else 0
    except (ValueError, TypeError, OverflowError) as error:
        raise _nonsense("time", said) from error


def _length(answer: Answer) -> int:
    return _size(answer.header("content-length") or "0")


def _size(said: str) -> int:
    if not (said.isascii() and said.isdigit()) or len(said) > _SIZE_DIGITS:
        raise _nonsense("size", said)
    return int(said)


def _nonsense(what: str, said: str) -> Unavailable:
    return Unavailable(f"the server says that the {what} of an object is {said[:40]!r}: is the endpoint an S3 server?")


def _within(prefix: str, key: str, listed: T) -> T:
    """What else a server lists is never taken for something of ours: parts of keys become parts of paths."""
    if not key.startswith(prefix):
        raise Unavailable("the server lists keys that were not asked for: is the endpoint an S3 server?")
    return listed


def _parse(document: bytes) -> ET.Element:
    try:
        return ET.fromstring(document)  # noqa: S314 - expat itself refuses documents that blow up
    except ET.ParseError as error:
        raise Unavailable("the answer is not the document it should be: is the endpoint an S3 server?") from error


def _text(element: ET.Element, name: str) -> str:
    return element.findtext(f"{{*}}{name}") or ""
