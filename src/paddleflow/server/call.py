"""One call of one endpoint: who asks, what with, and how to read it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from paddleflow.api.wire import Listed
from paddleflow.domain.commands import Command
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import UserName
from paddleflow.domain.queries import Page, PageRequest
from paddleflow.domain.users import Actor
from paddleflow.engine.context import Answer
from paddleflow.server.deps import Services
from paddleflow.server.markers import make_marker, read_marker

Row = TypeVar("Row")
Choice = TypeVar("Choice", bound=StrEnum)

PREFIX = "/api/paddleflow/v1"
_LARGEST = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def uri_problem(name: str, value: str, hint: str = "") -> Invalid:
    """A bad query parameter, in the words clients match on."""
    text = f"{name}[{value[:80]}] is invalid" + (f", {hint}" if hint else "")
    return Invalid(text, code="InvalidURI", details={"field": name})


class Call:
    """Everything a handler needs; made once the caller is known."""

    __slots__ = ("actor", "request", "request_id", "services", "token")

    def __init__(self, request: Request, services: Services, actor: Actor, request_id: str, token: str) -> None:
        self.request = request
        self.services = services
        self.actor = actor
        self.request_id = request_id
        self.token = token

    def path(self, name: str) -> str:
        """A path parameter, decoded once by the server."""
        value: str = self.request.path_params[name]
        return value

    def text(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def integer(self, name: str, default: int | None = None, *, low: int = -_LARGEST, high: int = _LARGEST) -> int:
        """A whole number within bounds; an empty value is the default, and without one it is required."""
        text = self.text(name)
        if not text and default is not None:
            return default
        number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
        if number is None or not low <= number <= high:
            raise uri_problem(name, text)
        return number

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if not text:
            return default
        value = _FLAGS.get(text.lower())
        if value is None:
            raise uri_problem(name, text, "write true or false")
        return value

    def unix_time(self, name: str) -> datetime | None:
        """Seconds since 1970, or None when absent."""
        if not self.text(name):
            return None
        # The bounds keep every zone within the years that datetime knows.
        return datetime.fromtimestamp(self.integer(name, low=0, high=253_000_000_000), UTC)

    def page(self, kind: str, *, newest_first: bool = False) -> PageRequest:
        marker = self.text("marker")
        after = read_marker(self.services.marker_key, kind, marker) if marker else 0
        return PageRequest(limit=self.integer("maxKeys", 50, low=1, high=1000), after=after, newest_first=newest_first)

    def next_marker(self, kind: str, page: Page[Row]) -> str:
        return "" if page.next_after is None else make_marker(self.services.marker_key, kind, page.next_after)

    def words(self, name: str) -> frozenset[str]:
        """A filter: words separated by commas, any of which may match."""
        return frozenset(word.strip() for word in self.text(name).split(",") if word.strip())

    def choices(self, name: str, among: type[Choice]) -> frozenset[Choice]:
        """The same, of words that must be known."""
        words = self.words(name)
        unknown = words - set(among)
        if unknown:
            raise uri_problem(name, min(unknown), f"choose from {', '.join(among)}")
        return frozenset(among(word) for word in words)

    def owners(self, name: str = "userFilter") -> frozenset[UserName]:
        return frozenset(UserName(word) for word in self.words(name))

    def needed(self, name: str) -> str:
        """A query parameter that must be given."""
        text = self.text(name)
        if not text:
            raise uri_problem(name, "", "it must be given")
        return text

    def listing(self, kind: str, request: PageRequest, page: Page[Row], listed: Listed[Row]) -> Response:
        return reply(self.listed(kind, request, page, listed))

    def listed(self, kind: str, request: PageRequest, page: Page[Row], listed: Listed[Row]) -> dict[str, Any]:
        """A page in the shape all lists but that of filesystems have."""
        marker = self.next_marker(kind, page)
        answer: dict[str, Any] = {"maxKeys": request.limit, "isTruncated": bool(marker)}
        if marker:
            answer["nextMarker"] = marker
        answer[listed.key] = [listed.show(row) for row in page.rows]
        return answer

    @property
    def idempotency_key(self) -> str:
        return self.request.headers.get("idempotency-key", "")

    def submit(self, command: Command, *, create: bool = False) -> Answer:
        """Give a command to the intake; one that creates may carry a key that makes sending it twice one request."""
        key = self.idempotency_key if create else ""
        return self.services.intake.submit(command, self.actor, request_id=self.request_id, idempotency_key=key)


def reply(answer: Mapping[str, Any], status: int = 200) -> Response:
    body = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status_code=status, media_type="application/json")


def empty() -> Response:
    """Success that has nothing to say is a bare 200."""
    return Response(status_code=200)
