"""What every request and answer shares: keys in any case, quantities, times.

Clients of the product have always been free in the case of body keys and have sent unknown keys and nulls, so all
three are accepted. Types are strict: a text that looks like a boolean or a number is not one.
"""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Generic, NotRequired, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from typing_extensions import TypedDict

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import CPU, MEMORY, STORAGE, Resources, format_units

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"

Row = TypeVar("Row")


class WireRequest(BaseModel):
    """A request body."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    refusal_code: ClassVar[str] = "MalformedJSON"
    """The code of the answer to a body whose fields have the wrong type."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        """Keys are matched whatever their case; an exact match wins; null means absent."""
        if not isinstance(given, dict):
            return given
        spelt = [field.alias or name for name, field in cls.model_fields.items()]
        fields = {name.lower(): name for name in spelt}
        found: dict[str, Any] = {}
        for key, value in given.items():
            name = fields.get(key.lower()) if isinstance(key, str) else None
            if name is not None and value is not None and (name not in found or key == name):
                found[name] = value
        return found


def _spelt(value: object) -> object:
    """Numbers are accepted where a quantity is text: ``"cpu": 2`` means what it says."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return repr(value)
    return value


Quantity = Annotated[
    str,
    BeforeValidator(_spelt),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}], "examples": ["2", "500m", "8Gi"]}),
]


class ResourcesRequest(WireRequest):
    """Amounts as they are sent: ``mem`` here is ``memory`` in answers."""

    cpu: Quantity = ""
    mem: Quantity = ""
    scalarResources: dict[str, Quantity] = Field(default_factory=dict)

    def amounts(self) -> dict[str, str]:
        """What was given; an empty text is not."""
        given = {CPU: self.cpu, MEMORY: self.mem, **self.scalarResources}
        return {name: text for name, text in given.items() if text.strip()}

    def dropped(self) -> frozenset[str]:
        """The scalar resources set to nothing, which in an update removes them."""
        return frozenset(name for name, text in self.scalarResources.items() if not text.strip())

    def parse(self, field: str, code: str) -> Resources:
        try:
            return Resources.parse(self.amounts())
        except Invalid as error:
            raise Invalid(f"Field[{field}] is invalid, {error.message}", code=code, details={"field": field}) from error


class ResourcesAnswer(TypedDict):
    cpu: str
    memory: str
    storage: NotRequired[str]
    scalarResources: NotRequired[dict[str, str]]


def resources_answer(resources: Resources) -> ResourcesAnswer:
    answer = ResourcesAnswer(
        cpu=format_units(CPU, resources.cpu_milli), memory=format_units(MEMORY, resources.memory_bytes)
    )
    if resources.get(STORAGE):
        answer["storage"] = format_units(STORAGE, resources.get(STORAGE))
    scalars = {name: format_units(name, units) for name, units in resources.scalars.items()}
    if scalars:
        answer["scalarResources"] = scalars
    return answer


class PageAnswer(TypedDict):
    """What every list has besides its rows."""

    maxKeys: int
    isTruncated: bool
    nextMarker: NotRequired[str]


class Listed(Generic[Row]):
    """How the rows of one kind of list are named and shown."""

    def __init__(self, key: str, show: Callable[[Row], Mapping[str, Any]]) -> None:
        self.key = key
        self.show = show


@lru_cache(maxsize=8192)
def local_time(at: datetime | None) -> str:
    """As people read it, in the server's own zone; empty when it has not happened."""
    return "" if at is None else at.astimezone().replace(tzinfo=None).isoformat(" ", "seconds")


def rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_local_time(field: str, text: str, *, code: str = "InvalidURI") -> datetime:
    try:
        return datetime.strptime(text, TIME_FORMAT).astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise Invalid(
            f"{field}[{text[:80]}] is invalid, write YYYY-MM-DD HH:MM:SS", code=code, details={"field": field}
        ) from error
