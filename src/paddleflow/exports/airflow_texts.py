"""Python source for an exported DAG file: literals, names, and lines. Whatever a user wrote is in it as a literal."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from paddleflow.exports.outline import refused
from paddleflow.exports.symbols import Gap, Gapped, Kind, Symbolic
from paddleflow.planning.plan import PlanNode

_SYSTEM = re.compile(r"\{\{\s*(PF_RUN_ID|PF_USER_NAME|PF_STEP_NAME|PF_LOOP_ARGUMENT)\s*\}\}")
_WIDTH = 120


class Names:
    """Names of variables: readable, legal, and none twice."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*taken, *dir(builtins), *keyword.kwlist, *keyword.softkwlist}

    def of(self, path: str) -> str:
        wanted = re.sub(r"\W", "_", path, flags=re.ASCII)
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


class Lines:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def add(self, line: str) -> None:
        self._lines.append("    " * self._depth + line if line else "")

    def call(self, head: str, arguments: dict[str, str], tail: str = "") -> None:
        """``head(name=value, …)tail``, on one line if it fits."""
        short = f"{head}({', '.join(f'{name}={text}' for name, text in arguments.items())}){tail}"
        if "\n" not in short and len(short) + 4 * self._depth <= _WIDTH:
            self.add(short)
            return
        self.add(f"{head}(")
        with self.deeper():
            for name, text in arguments.items():
                first, *others = f"{name}={text},".split("\n")
                self.add(first)
                for line in others:
                    self.add(line)
        self.add(f"){tail}")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def long_text(text: str) -> str:
    """A literal; of several lines, one literal a line."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= 1:
        return repr(text)
    return "(\n" + "\n".join(f"    {line!r}" for line in lines) + "\n)"


def expression(node: PlanNode, value: Symbolic, items: dict[str, str]) -> str:
    """A parameter as Python. ``items``: the variable that holds the loop item of a dag. The run's id and user are left
    as templates, to be filled when the step runs; nothing else may look like them."""
    if not isinstance(value, Gapped):
        if isinstance(value, str):
            _check(node, value)
        return repr(value)
    if value.only is not None and value.only.kind is Kind.ITEM:
        return items[value.only.of]
    parts: list[str] = []
    text = ""
    for part in value.parts:
        if isinstance(part, Gap) and part.kind is Kind.ITEM:
            parts += [repr(text)] if text else []
            parts.append(f"spell({items[part.of]})")
            text = ""
        elif isinstance(part, Gap):
            text += _template(part)
        else:
            _check(node, part)
            text += part
    return " + ".join([*parts, repr(text)] if text else parts)


def mapping(entries: dict[str, str]) -> str:
    """A dict of expressions; over several lines when it is long."""
    told = [f"{name!r}: {text}" for name, text in entries.items()]
    short = "{" + ", ".join(told) + "}"
    if len(short) <= _WIDTH // 2 and "\n" not in short:
        return short
    return "{\n" + "\n".join(f"    {line}," for entry in told for line in [entry.replace("\n", "\n    ")]) + "\n}"


def _template(gap: Gap) -> str:
    return "{{PF_RUN_ID}}" if gap.kind is Kind.RUN_ID else "{{PF_USER_NAME}}"


def _check(node: PlanNode, text: str) -> None:
    found = _SYSTEM.search(text)
    if found:
        raise refused(node, f"the text {found[0]} in a parameter would be taken for a template")
