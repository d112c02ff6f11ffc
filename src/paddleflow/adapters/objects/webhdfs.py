"""The REST protocol of HDFS (WebHDFS), spoken to name nodes and, for content, to the data nodes they name.

Owns requests, the choice of the active name node, and what refusals mean. Every request carries the user's name, so one
process may serve several users. Content is streamed: no file is held in memory as a whole.

Knows only HDFS's simple security, where a name is believed; a cluster that wants Kerberos refuses us, and we say so.
"""

from __future__ import annotations

import http.client
import json
import ssl
import string
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from paddleflow.adapters.objects.connections import Connections, Limits
from paddleflow.domain.errors import (
    Denied,
    DiskFull,
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    PaddleFlowError,
    Unavailable,
)

_ANSWER = 64 * 1024 * 1024
"""No listing of a page and no refusal is longer."""
_MEANINGS: Mapping[str, type[PaddleFlowError]] = {
    "FileNotFoundException": NotFound,
    "ParentNotDirectoryException": NotFound,
    "PathNotFoundException": NotFound,
    "AccessControlException": Denied,
    "SecurityException": Denied,
    "AuthorizationException": Denied,
    "FileAlreadyExistsException": Duplicate,
    "PathIsNotEmptyDirectoryException": InUse,
    "InvalidPathException": Invalid,
    "IllegalArgumentException": Invalid,
    "UnsupportedOperationException": Invalid,
    "MaxDirectoryItemsExceededException": DiskFull,
    "DSQuotaExceededException": DiskFull,
    "NSQuotaExceededException": DiskFull,
    "QuotaByStorageTypeExceededException": DiskFull,
    "FSLimitException": Invalid,
    "PathComponentTooLongException": Invalid,
}


class Standby(Unavailable):
    """This name node does not lead; another one does."""


class Refusal(Unavailable):
    """The server said no for a reason that has no name of its own; ``details`` has its words."""


class NameNodes:
    def __init__(self, endpoints: Sequence[str], user: str, *, limits: Limits | None = None) -> None:
        self._endpoints, self._user, self._limits = tuple(endpoints), user, limits or Limits()
        self._servers: dict[tuple[str, str, int], Connections] = {}
        self._lock = threading.Lock()
        self._leader = 0

    def ask(self, method: str, path: str, operation: str, **parameters: str | int) -> Any:
        """One operation on a path, answered by the name node that leads. The answer is JSON, or None."""
        body = self._ask(method, path, operation, parameters)
        try:
            return json.loads(body) if body else None
        except (ValueError, RecursionError) as error:
            raise Unavailable("the answer is not what HDFS answers: is the address a name node's?") from error

    def find_leader(self) -> None:
        """By a question that may be asked twice, so that what may not be is then asked of the right one."""
        if len(self._endpoints) > 1:
            self.ask_again("GET", "/", "GETFILESTATUS")

    def ask_again(self, method: str, path: str, operation: str, **parameters: str | int) -> Any:
        """Like ``ask``, for what may be asked twice: also of another name node when one does not answer."""
        for _ in self._endpoints[1:]:
            try:
                return self.ask(method, path, operation, **parameters)
            except Refusal:
                raise
            except Unavailable:
                with self._lock:
                    self._leader = (self._leader + 1) % len(self._endpoints)
        return self.ask(method, path, operation, **parameters)

    def read(self, path: str, start: int, size: int) -> bytes:
        place = _location(self.ask_again("GET", path, "OPEN", offset=start, length=size, noredirect="true"))
        server = self._server(place)
        answer = server.ask("GET", f"{place.path}?{place.query}", {"host": place.netloc}, b"", at_most=size)
        if answer.status != 200:
            raise refusal_of(answer.status, answer.body, path)
        if len(answer.body) != size:
            raise Unavailable(f"HDFS sent {len(answer.body)} of {size} bytes of {path!r}")
        return answer.body

    def create(self, path: str, size: int, pieces: Iterator[bytes], **parameters: str | int) -> None:
        """A new file with this content; Duplicate where one is. A file that breaks off stays, and is the caller's."""
        place = _location(self.ask("PUT", path, "CREATE", overwrite="false", noredirect="true", **parameters))
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        status, body = self._send(place, "PUT", f"{place.path}?{place.query}", headers, pieces)
        if status != 201:
            raise refusal_of(status, body, path)

    def close(self) -> None:
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.close()

    def _ask(self, method: str, path: str, operation: str, parameters: Mapping[str, str | int]) -> bytes:
        for _ in self._endpoints:
            endpoint = urlsplit(self._endpoints[self._leader])
            query = urlencode({"op": operation, "user.name": self._user, **parameters})
            target = f"/webhdfs/v1{quote(path)}?{query}"
            if method == "GET":
                answer = self._server(endpoint).ask("GET", target, {"host": endpoint.netloc}, b"", at_most=_ANSWER)
                status, body = answer.status, answer.body
            else:
                status, body = self._send(endpoint, method, target, {}, None)
            if status < 300:
                return body
            error = refusal_of(status, body, path)
            if not isinstance(error, Standby):
                raise error
            with self._lock:
                self._leader = (self._leader + 1) % len(self._endpoints)
        raise Unavailable("no name node of HDFS leads at the moment")

    def _server(self, place: SplitResult) -> Connections:
        name = (place.scheme, place.hostname or "", place.port or 0)
        with self._lock:
            if name not in self._servers:
                tls = ssl.create_default_context() if place.scheme == "https" else None
                self._servers[name] = Connections(name[1], name[2], tls=tls, limits=self._limits)
            return self._servers[name]

    def _send(
        self, place: SplitResult, method: str, target: str, headers: Mapping[str, str], pieces: Iterator[bytes] | None
    ) -> tuple[int, bytes]:
        """Over a connection of its own: one that was idle might have to be asked twice, and this changes something."""
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=self._limits.stall_s)
        try:
            connection.request(method, target, body=pieces, headers=headers)
            response = connection.getresponse()
            return response.status, response.read(_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            told = (isinstance(error, OSError) and error.strerror) or type(error).__name__
            raise Unavailable(f"the connection to {place.netloc} broke: {told}") from error
        finally:
            connection.close()


def _location(place: Mapping[str, str]) -> SplitResult:
    """Where a data node serves it. The name node escapes everything but letters that are not ASCII."""
    try:
        return urlsplit(quote(place["Location"], safe=string.punctuation))
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable("HDFS does not say which data node has the file") from error


def refusal_of(status: int, body: bytes, path: str) -> PaddleFlowError:
    name, told = _exception(body)
    details = {"status": status, "store_code": name, "told": told}
    sentence = f"HDFS on {path!r}: {told or name or f'HTTP status {status}'}"
    if status == 401:
        return Denied("this HDFS wants Kerberos, which is not supported here", details=details)
    if name == "StandbyException":
        return Standby(sentence, details=details)
    if "could only be written to 0 of the" in told or "could only be replicated to 0 nodes" in told:
        return DiskFull(f"no data node of HDFS has room for {path!r}", details=details)
    kind = _MEANINGS.get(name, Refusal)
    if kind is NotFound:
        return NotFound(f"{path!r} is not there", details=details)
    return kind(sentence, details=details)


def _exception(body: bytes) -> tuple[str, str]:
    """The name of the exception, and the first line of what it says: the rest is a stack of Java."""
    try:
        remote = json.loads(body)["RemoteException"]
        return str(remote["exception"]), str(remote.get("message") or "").split("\n", 1)[0][:300]
    except (ValueError, KeyError, TypeError):
        # A page of some proxy, or nothing at all: then the HTTP status has to do.
        return "", ""
