"""Fingerprints as JSON: the two digests in columns or beside others, their parts as ``{name: [digest, shown]}``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from paddleflow.adapters.sql.values import to_json
from paddleflow.domain.runs import Part


def encoded_parts(parts: Mapping[str, Part]) -> dict[str, list[str]]:
    return {name: [part.digest, part.shown] for name, part in parts.items()}


def decoded_parts(encoded: Mapping[str, list[str]]) -> dict[str, Part]:
    return {name: Part(digest=digest, shown=shown) for name, (digest, shown) in encoded.items()}


def parts_to_json(parts: Mapping[str, Part]) -> str:
    return to_json(encoded_parts(parts))


def parts_from_json(text: str) -> dict[str, Part]:
    return decoded_parts(json.loads(text))
