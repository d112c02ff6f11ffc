"""What tests ask of a compiled pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from paddleflow.documents import dump, load
from paddleflow.pipeline import Pipeline
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.plan import Plan
from paddleflow.planning.source import Limits, Overrides
from tests.planned import with_commands


def accepted(document: dict[str, Any]) -> Plan:
    """The document goes through the text and everything a server checks; this is the plan it would run."""
    read = load(dump(document))
    assert read.value == document
    return compile_plan(with_commands(parse(read.value, read.lines)), Overrides(fs_name="main"), Limits())


def compiled(build: Callable[[], object], **options: Any) -> dict[str, Any]:
    """What a function compiles to, after a server has accepted it."""
    document = Pipeline(name="p", **options)(build)().compile()
    accepted(document)
    return document


def nodes(build: Callable[[], object], **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = compiled(build, **options)["entry_points"]
    return found


def same(found: object, expected: object) -> bool:
    """Equal, the order of the keys included; shown in full where they differ."""
    written, wanted = json.dumps(found, indent=1), json.dumps(expected, indent=1)
    assert written == wanted
    return True
