"""Plain values to YAML text, for people: one key a line, in the order given, texts of several lines as they are.

Reading it back gives the same values: a text that would be read as something else is quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from paddleflow.documents.reading import MAX_DEPTH
from paddleflow.documents.scalars import resolve
from paddleflow.domain.errors import Invalid

_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ONE_LINE: Final = 2**30
"""Width: texts are not folded."""


class _Dumper(_DUMPER):  # type: ignore[misc]  # which of the two it is depends on how the library was built
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif not isinstance(resolve(text), str):
        style = "'"
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _represent_text)


def dump(value: object) -> str:
    """Raises Invalid for what is no plain value."""
    text: str = yaml.dump(
        _plain(value, ()),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        width=_ONE_LINE,
    )
    return text[:-4] if text.endswith("\n...\n") else text  # the mark after a document that is one word


def _plain(value: object, path: tuple[str | int, ...]) -> object:
    """The same in dicts and lists of our own; nesting is bounded because writing goes down into it."""
    if len(path) > MAX_DEPTH:
        raise Invalid(f"a document may be nested {MAX_DEPTH} deep, and this one is deeper")
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise Invalid(f"the key [{key}] cannot be written: keys are texts")
        return {str(key): _plain(item, (*path, key)) for key, item in value.items()}
    where = ".".join(str(part) for part in path) or "the document"
    raise Invalid(f"{where} is a {type(value).__name__}, which cannot be written as YAML")
