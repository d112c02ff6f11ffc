"""How a value becomes a column and a column a value: times, JSON, resources.

Times are whole microseconds since 1970 in UTC. A time without a timezone is refused: guessing one would shift it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import Resources

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# Escaping everything beyond ASCII lets both engines hold any string, even one that is not legal UTF-8.
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False).encode


def to_json(value: object) -> str:
    try:
        return _encode(value)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            f"a value cannot be stored, it has a number that is not finite or is nested too deep: {error}"
        ) from error


def mapping_to_json(mapping: Mapping[str, object]) -> str:
    return to_json(dict(mapping)) if mapping else "{}"


def mapping_from_json(text: str) -> dict[str, Any]:
    if text == "{}":
        return {}
    decoded: dict[str, Any] = json.loads(text)
    return decoded


def strings_to_json(strings: tuple[str, ...]) -> str:
    return to_json(strings) if strings else "[]"


def strings_from_json(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def resources_to_json(resources: Resources) -> str:
    return mapping_to_json(resources.amounts)


def resources_from_json(text: str) -> Resources:
    return Resources(mapping_from_json(text))


def to_micros(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise Invalid(f"the time [{moment.isoformat()}] has no timezone; give it in UTC")
    return (moment - _EPOCH) // _MICROSECOND


def to_micros_or_null(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_null(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)
