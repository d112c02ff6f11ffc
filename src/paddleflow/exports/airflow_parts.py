"""What an exported DAG file needs of the pipeline language while it runs: templates, conditions, paths of artifacts.

The source below the line is copied into every exported file, because Airflow's workers do not have this package; so it
uses the standard library alone and says in a few lines what ``planning`` says in full. Tests hold the two together.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

# --- copied from here on ---

TEMPLATE = re.compile(r"\{\{\s*([a-zA-Z0-9_]+)\s*\}\}")


def fill(text: Any, known: dict[str, Any]) -> Any:
    """The text with its templates replaced, in one pass; a text that is one template becomes its value."""
    if not isinstance(text, str):
        return text
    whole = TEMPLATE.fullmatch(text)
    if whole:
        return known.get(whole[1], text)
    return TEMPLATE.sub(lambda match: spell(known[match[1]]) if match[1] in known else match[0], text)


def spell(value: Any) -> str:
    """A value as text: numbers in plain decimals, lists like ``[1 2 3]``."""
    if isinstance(value, list):
        return "[" + " ".join(spell(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return "" if value is None else str(value)


def listed(value: Any) -> list[Any]:
    """The items of a loop: a list, or a text that is a JSON list."""
    items = json.loads(value) if isinstance(value, str) else value
    if not isinstance(items, list):
        raise TypeError(f"loopArgument [{spell(value)[:80]}] is not a list")
    return items


def place(around: str, name: str, seq: int) -> str:
    """Where in the pipeline a node stands; artifacts are named by it."""
    return f"{around}.{name}-{seq}" if seq > 0 else f"{around}.{name}"


def artifact_path(root: str, step: str, seq: int, where: str, name: str) -> str:
    digest = hashlib.md5(where.encode(), usedforsecurity=False).hexdigest()
    return f"{root}/{step}-{seq}-{digest}/{name}"


def content(paths: list[str], limit: int) -> list[str]:
    """The texts of an artifact's files, each smaller than the limit."""
    texts = []
    for path in paths:
        with Path(path).open("rb") as file:
            data = file.read(limit)
        if len(data) >= limit:
            raise ValueError(f"{path} must have fewer than {limit} bytes")
        texts.append(data.decode())
    return texts


# --- for conditions ---

NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)")
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MATHS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": math.fmod,
    "**": pow,
}


def read(value: Any) -> Any:
    """What a value counts as in a condition: a text that looks like a number or a truth value is one."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = value.strip()
    if text in ("true", "false"):
        return text == "true"
    if not NUMBER.fullmatch(text):
        return text
    if "x" in text.lower():
        return int(text, 16)
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"[{spell(value)[:80]}] is not true or false")
    return value


def same(left: Any, right: Any) -> bool:
    """Only like and like are equal: 1 is neither true nor '1'."""
    return (type(left) is type(right) or (is_number(left) and is_number(right))) and bool(left == right)


def ordered(left: Any, sign: str, right: Any) -> bool:
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        raise ValueError(
            f"[{spell(left)[:80]}] {sign} [{spell(right)[:80]}] compares neither two numbers nor two texts"
        )
    return bool(ORDER[sign](left, right))


def calculated(left: Any, sign: str, right: Any) -> Any:
    if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
        return spell(left) + spell(right)
    for value in (left, right):
        if not is_number(value):
            raise TypeError(f"[{spell(value)[:80]}] beside {sign} is not a number")
    return MATHS[sign](left, right)


def negative(value: Any) -> Any:
    return calculated(0, "-", value)


def matches(value: Any, pattern: Any) -> bool:
    """Patterns end with the text, not before its last line break; so do those of the pipeline language."""
    if not isinstance(pattern, str):
        raise TypeError(f"the pattern [{spell(pattern)[:80]}] must be a text in quotes")
    parts = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$"
    ending = re.sub(parts, lambda match: r"\Z" if match[0] in (r"\z", "$") else match[0], pattern, flags=re.DOTALL)
    return re.search(ending, spell(value), flags=re.ASCII) is not None


def among(value: Any, items: Any) -> bool:
    if not isinstance(items, list):
        raise TypeError(f"[{spell(items)[:80]}] is not a list")
    return any(same(value, item) for item in items)


def otherwise(wanted: Any, instead: Any) -> Any:
    return instead() if wanted == "" else wanted
