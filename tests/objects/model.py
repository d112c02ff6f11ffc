"""An object store as a dictionary, and random calls that must give the same answers from both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, PaddleFlowError
from paddleflow.ports.objects import ObjectEntry, ObjectStore

Put = Callable[[ObjectStore, str, bytes], ObjectEntry]

NAMES = st.sampled_from(["a", "b", "a b", "é"])
KEYS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.binary(max_size=40)
CALLS = st.one_of(
    st.tuples(st.just("write"), KEYS, CONTENTS),
    st.tuples(st.just("make_directory"), KEYS),
    st.tuples(st.just("make_directory"), NAMES),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("remove_directory"), KEYS),
    st.tuples(st.just("rename"), KEYS, KEYS),
    st.tuples(st.just("copy"), KEYS, KEYS),
    st.tuples(st.just("read"), KEYS, st.integers(0, 45), st.integers(0, 45)),
    st.tuples(st.just("stat"), KEYS),
    st.tuples(st.just("list"), KEYS),
    st.tuples(st.just("walk"), KEYS),
)


@dataclass
class Model:
    """None is a directory."""

    kept: dict[str, bytes | None] = field(default_factory=lambda: {"": None})

    def get(self, key: str) -> bytes | None:
        if key not in self.kept:
            raise NotFound(key)
        return self.kept[key]

    def get_file(self, key: str) -> bytes:
        content = self.get(key)
        if content is None:
            raise Invalid(key)
        return content

    def get_directory(self, key: str) -> None:
        if self.get(key) is not None:
            raise Invalid(key)

    def below(self, key: str) -> list[str]:
        return [other for other in self.kept if other and (not key or other.startswith(key + "/"))]

    def write(self, key: str, content: bytes) -> None:
        self.kept[key] = content

    def make_directory(self, key: str) -> None:
        if key in self.kept:
            raise Duplicate(key)
        self.kept[key] = None

    def delete(self, key: str) -> None:
        self.get_file(key)
        del self.kept[key]

    def remove_directory(self, key: str) -> None:
        self.get_directory(key)
        if self.below(key):
            raise InUse(key)
        del self.kept[key]

    def rename(self, source: str, target: str) -> None:
        moved = self.get(source)
        if source == target:
            return
        if target.startswith(source + "/"):
            raise Invalid(target)
        if target in self.kept:
            if (self.kept[target] is None) != (moved is None):
                raise Invalid(target)
            if self.below(target):
                raise InUse(target)
        for key in [source, *self.below(source)]:
            self.kept[target + key[len(source) :]] = self.kept.pop(key)

    def copy(self, source: str, target: str) -> None:
        self.kept[target] = self.get_file(source)

    def read(self, key: str, start: int, size: int) -> bytes:
        return self.get_file(key)[start : start + size]

    def stat(self, key: str) -> tuple[bool, int]:
        content = self.get(key)
        return content is None, len(content or b"")

    def list(self, key: str) -> dict[str, tuple[bool, int]]:
        self.get_directory(key)
        return {other: self.stat(other) for other in self.below(key) if other.rpartition("/")[0] == key}

    def walk(self, key: str) -> dict[str, tuple[bool, int]]:
        self.get_directory(key)
        return {other: self.stat(other) for other in self.below(key)}

    def is_fair(self, call: tuple[Any, ...]) -> bool:
        """Stores differ in what they make of a parent that is missing, and in a file written over a directory: whoever
        calls them has looked."""
        if call[0] in {"write", "make_directory"}:
            made = call[1]
        elif call[0] in {"rename", "copy"}:
            made = call[2]
        else:
            return True
        if self.kept.get(made.rpartition("/")[0], b"") is not None:
            return False
        return call[0] in {"make_directory", "rename"} or self.kept.get(made, b"") is not None


def ask_store(store: ObjectStore, put: Put, call: tuple[Any, ...]) -> object:
    match call:
        case ("write", key, content):
            put(store, key, content)
            return None
        case ("copy", source, target):
            store.copy(source, target)
            return None
        case ("stat", key):
            entry = store.stat(key)
            return entry.is_directory, entry.size
        case ("list" | "walk" as name, key):
            pages = getattr(store, name)(key)
            return {entry.key: (entry.is_directory, entry.size) for page in pages for entry in page}
        case (name, *arguments):
            return getattr(store, name)(*arguments)
    raise AssertionError(call)


def outcome(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except PaddleFlowError as error:
        return type(error).__name__


def directory_sizes_aside(answer: object) -> object:
    """What a directory's size is, is nobody's business."""
    match answer:
        case (True, _):
            return True, 0
        case dict():
            return {key: directory_sizes_aside(value) for key, value in answer.items()}
    return answer


def compare_with_model(make_store: Callable[[], ObjectStore], put: Put, examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.lists(CALLS, min_size=5, max_size=25))
    def compare(calls: list[tuple[Any, ...]]) -> None:
        store, model = make_store(), Model()
        try:
            for call in calls:
                if not model.is_fair(call):
                    continue
                expected = outcome(lambda call=call: getattr(model, call[0])(*call[1:]))
                got = directory_sizes_aside(outcome(lambda call=call: ask_store(store, put, call)))
                assert got == expected, call
            assert directory_sizes_aside(ask_store(store, put, ("walk", ""))) == model.walk("")
            for key, content in model.kept.items():
                if content is not None:
                    assert store.read(key, 0, len(content) + 1) == content
        finally:
            store.close()

    compare()
