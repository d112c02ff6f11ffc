"""YAML text to plain values and the line of each key.

Built from the parser's events with a stack of its own, so that nothing in a text can exhaust ours: how large, how deep
and how often repeated (through aliases) a document may be is bounded. Refused, with their line: keys said twice, keys
that are maps or lists, tags for anything but plain values, anchors that contain themselves, a second document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

import yaml

from paddleflow.documents.scalars import Scalar, resolve
from paddleflow.domain.errors import Invalid

Path: TypeAlias = tuple[str | int, ...]

MAX_BYTES: Final = 4 * 2**20
MAX_DEPTH: Final = 64
MAX_NODES: Final = 500_000

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD: Final = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Document:
    value: object
    """Texts, numbers, booleans, None, lists, and dicts with text keys; shared where an alias repeats them."""
    lines: Mapping[Path, int]
    """Path of each key and item → its line, counted from one. What an alias repeats has no lines of its own."""


def load(text: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES) -> Document:
    """Raises Invalid (InvalidPipeline) for whatever is wrong, with the line among its details."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise _invalid(f"the document is not text: {error.reason}") from error
    if size > max_bytes:
        raise _invalid(f"the document has {size} bytes, and may have {max_bytes}")
    reader = _Reader(max_depth, max_nodes)
    try:
        reader.read(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise _invalid(f"the document is not YAML: {problem}", None if mark is None else mark.line + 1) from error
    except yaml.YAMLError as error:
        raise _invalid(f"the document is not YAML: {' '.join(str(error).split())}") from error
    return Document(reader.value, reader.lines)


def _invalid(problem: str, line: int | None = None) -> Invalid:
    if line is None:
        return Invalid(problem, code="InvalidPipeline")
    return Invalid(f"{problem} (line {line})", code="InvalidPipeline", details={"line": line})


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1


@dataclass(slots=True)
class _Node:
    """Something read to its end."""

    value: object
    size: int = 1
    """Itself and what is in it, aliases followed."""
    height: int = 1


@dataclass(slots=True)
class _Open:
    """A map or a list that is being read."""

    value: dict[str, object] | list[object]
    path: Path
    line: int
    anchor: str | None
    size: int = 1
    height: int = 1
    key: str | None = None
    """Of a map: whose value comes next; None: a key comes next."""
    is_merge: bool = False
    merged: list[object] = field(default_factory=list)
    merge_line: int = 0


class _Reader:
    def __init__(self, max_depth: int, max_nodes: int) -> None:
        self.value: object = None
        self.lines: dict[Path, int] = {}
        self._max_depth = max_depth
        self._max_nodes = max_nodes
        self._nodes = 0
        self._documents = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, _Node | None] = {}
        """None: not read to its end."""

    def read(self, events: Iterator[yaml.Event]) -> None:
        handlers: dict[type[yaml.Event], Callable[..., None]] = {
            yaml.ScalarEvent: self._on_scalar,
            yaml.MappingStartEvent: self._on_start,
            yaml.SequenceStartEvent: self._on_start,
            yaml.MappingEndEvent: self._on_end,
            yaml.SequenceEndEvent: self._on_end,
            yaml.AliasEvent: self._on_alias,
            yaml.DocumentStartEvent: self._on_document,
        }
        for event in events:
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)

    def _fail(self, problem: str, event: yaml.Event) -> NoReturn:
        raise _invalid(problem, _line(event))

    def _on_document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            self._fail("there is a second document; only one is read", event)

    def _on_scalar(self, event: yaml.ScalarEvent) -> None:
        if "\x00" in event.value:
            self._fail("a text has a NUL character in it", event)
        around = self._open[-1] if self._open else None
        if around is not None and isinstance(around.value, dict) and around.key is None:
            if event.anchor:
                self._anchors[event.anchor] = _Node(event.value)
            is_merge = event.value == "<<" and event.implicit[0]
            self._take_key(around, event.value, event, is_merge=is_merge)
            return
        if event.tag is not None:
            value = self._tagged(event, event.tag)
        else:
            value = resolve(event.value) if event.implicit[0] else event.value
        node = _Node(value)
        if event.anchor:
            self._anchors[event.anchor] = node
        self._place(node, event)

    def _on_alias(self, event: yaml.AliasEvent) -> None:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            problem = "contains itself" if event.anchor in self._anchors else "is not defined before it is used"
            self._fail(f"the anchor [{event.anchor}] {problem}", event)
        around = self._open[-1]
        if isinstance(around.value, dict) and around.key is None:
            if not isinstance(node.value, str):
                self._fail(f"the key [*{event.anchor}] is not a text", event)
            self._take_key(around, node.value, event, is_merge=False)
            return
        if len(self._open) + node.height > self._max_depth:
            self._fail(f"the document is nested more than {self._max_depth} deep", event)
        self._place(node, event)

    def _on_start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        is_map = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_STANDARD}map" if is_map else f"{_STANDARD}seq"):
            self._fail(f"the tag [{event.tag}] is not supported", event)
        if len(self._open) >= self._max_depth:
            self._fail(f"the document is nested more than {self._max_depth} deep", event)
        around = self._open[-1] if self._open else None
        if around is not None and isinstance(around.value, dict) and around.key is None:
            self._fail("a key is a map or a list; keys are texts", event)
        path: Path = ()
        if around is not None:
            path = (*around.path, around.key if around.key is not None else len(around.value))
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open({} if is_map else [], path, _line(event), event.anchor))

    def _on_end(self, event: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> None:
        ended = self._open.pop()
        if ended.merged:
            self._merge(ended, event)
        node = _Node(ended.value, ended.size, ended.height)
        if ended.anchor:
            self._anchors[ended.anchor] = node
        self._nodes -= ended.size - 1  # counted one by one when they were read; placing it counts them again
        self._place(node, event, ended.line)

    def _take_key(self, around: _Open, key: str, event: yaml.Event, *, is_merge: bool) -> None:
        line = _line(event)
        around.key = key
        around.is_merge = is_merge
        if is_merge:
            around.merge_line = line
            return
        if key in around.value:
            first = self.lines[(*around.path, key)]
            self._fail(f"the key [{key}] is there twice, on line {first} and on line {line}", event)
        self.lines[(*around.path, key)] = line

    def _place(self, node: _Node, event: yaml.Event, line: int | None = None) -> None:
        """Put what was read to its end where it belongs."""
        self._nodes += node.size
        if self._nodes > self._max_nodes:
            self._fail(f"the document has more than {self._max_nodes} values, aliases followed", event)
        if not self._open:
            self.value = node.value
            return
        around = self._open[-1]
        around.size += node.size
        around.height = max(around.height, node.height + 1)
        if isinstance(around.value, list):
            self.lines[(*around.path, len(around.value))] = line or _line(event)
            around.value.append(node.value)
            return
        assert around.key is not None
        if around.is_merge:
            around.merged.append(node.value)
        else:
            around.value[around.key] = node.value
        around.key = None

    def _merge(self, ended: _Open, event: yaml.Event) -> None:
        """``<<``: what the other maps have and this one has not; of several, the first that has it wins."""
        assert isinstance(ended.value, dict)
        for source in ended.merged:
            for other in source if isinstance(source, list) else [source]:
                if not isinstance(other, dict):
                    self._fail("[<<] needs a map or a list of maps", event)
                for key, value in other.items():
                    if key not in ended.value:
                        ended.value[key] = value
                        self.lines[(*ended.path, key)] = ended.merge_line

    def _tagged(self, event: yaml.ScalarEvent, tag: str) -> Scalar:
        kind = tag.removeprefix(_STANDARD)
        if kind in ("str", "!"):
            return str(event.value)
        value = resolve(event.value)
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        is_right = {
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, float),
            "bool": isinstance(value, bool),
            "null": value is None,
        }
        if kind not in is_right:
            self._fail(f"the tag [{tag}] is not supported", event)
        if not is_right[kind]:
            self._fail(f"[{event.value}] is not of the type [{kind}] that its tag says", event)
        return value
