"""Places in a document: read one value with the type it must have, or say what is wrong and where.

A place knows its path, the words that introduce a complaint about it (``parse step[train] failed, ``) and the lines of
the text, so that every complaint of the parser has the same shape and carries the same details.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value
from paddleflow.planning.source import Path

INVALID_PIPELINE = "InvalidPipeline"
_DEEPEST_LIST = 64


@dataclass(slots=True)
class Place:
    """Not frozen, because one is made for every value of a document and freezing is what would take the time."""

    value: object
    path: Path
    lines: Mapping[Path, int]
    introduction: str = ""

    def inner(self, key: str | int, value: object) -> Place:
        return Place(value, (*self.path, key), self.lines, self.introduction)

    def introduced(self, words: str) -> Place:
        """The same place; complaints about it and what is in it begin with these words, after those outside."""
        return Place(self.value, self.path, self.lines, self.introduction + words)

    def fail(self, problem: str) -> NoReturn:
        raise located(self.introduction + problem, self.path, self.lines)

    def text(self, name: str) -> str:
        """``name`` is how complaints call it: ``[command] in step``."""
        if not isinstance(self.value, str):
            self.fail(f"{name} should be string type")
        return self.value

    def integer(self, name: str) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.fail(f"{name} should be int type")
        return self.value

    def number(self, name: str) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"{name} should be int or float type")
        if not abs(self.value) <= 1e15:  # seconds, all of them; this also refuses what is not a number
            self.fail(f"{name} is too large")
        return float(self.value)

    def boolean(self, name: str) -> bool:
        if not isinstance(self.value, bool):
            self.fail(f"{name} should be bool type")
        return self.value

    def mapping(self, name: str, type_name: str = "map") -> dict[str, Place]:
        if not isinstance(self.value, Mapping):
            self.fail(f"{name} should be {type_name} type")
        places: dict[str, Place] = {}
        for key, value in self.value.items():
            if not isinstance(key, str):
                self.fail(f"{name} has the key [{key}], and keys should be string type")
            places[key] = Place(value, (*self.path, key), self.lines, self.introduction)
        return places

    def texts(self, name: str) -> dict[str, str]:
        places = self.mapping(name, "map[string]string")
        for place in places.values():
            if not isinstance(place.value, str):
                place.fail(f"{name} should be map[string]string type")
        return {key: str(place.value) for key, place in places.items()}

    def items(self, name: str, type_name: str = "list") -> list[Place]:
        if not isinstance(self.value, list | tuple):
            self.fail(f"{name} should be {type_name} type")
        return [self.inner(index, value) for index, value in enumerate(self.value)]

    def plain(self, problem: str, depth: int = 0) -> Value:
        """A value made of texts, numbers, booleans and lists of them; ``problem`` is said of anything else."""
        if self.value is None or isinstance(self.value, str | int | float):
            return self.value
        if not isinstance(self.value, list | tuple):
            self.fail(problem)
        if depth == _DEEPEST_LIST:
            self.fail(f"lists are nested more than {_DEEPEST_LIST} deep")
        return [self.inner(index, item).plain(problem, depth + 1) for index, item in enumerate(self.value)]

    def fields(self, name: str, known: Collection[str], owner: str, introduction: str = "") -> dict[str, Place]:
        """A map with known keys only. ``owner`` is whose keys they are: ``step``, ``[cache]``.

        What is wrong inside is introduced by ``introduction``; that it is no map at all is not.
        """
        places = self.mapping(name)
        if introduction:
            places = {key: place.introduced(introduction) for key, place in places.items()}
        for key, place in places.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f", did you mean [{near[0]}]?" if near else ""
                place.fail(f"{owner} has no attribute [{key}]{hint}")
        return places


def located(message: str, path: Path, lines: Mapping[Path, int]) -> Invalid:
    """An error of a pipeline that says where: the line of the place, or of what is around it and has a line."""
    where = ".".join(str(part) for part in path)
    line = next((lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in lines), None)
    if line is None:
        return Invalid(message, code=INVALID_PIPELINE, details={"path": where})
    place = f"line {line}, at {where}" if where else f"line {line}"
    return Invalid(f"{message} ({place})", code=INVALID_PIPELINE, details={"path": where, "line": line})
