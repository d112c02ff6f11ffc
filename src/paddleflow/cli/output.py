"""How answers are shown: as a table, as JSON or as text.

In a pipe or a file tables look as scripts know them, and nothing in them is shortened: ``grid`` with lines around every
cell, ``simple`` with one line under the header. On a terminal they are made to fit its width: the widest columns are
shortened, identifiers, states, times and numbers never. Columns of numbers are set to the right; a missing value is an
empty cell. With ``--output json`` standard output is exactly one JSON document, so what is not part of it (the marker
of the next page) goes to standard error.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence

import click

Row = Sequence[object]
Table = tuple[Sequence[str], Sequence[Row]]
"""Headers and rows."""

FORMATS = ("table", "json", "text")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
_HEADER_ROOM = 2
"""In a pipe a column is at least this much wider than its header."""
_GAP = "  "
_CUT = "…"
_LEAST = 6
"""A column of text is not shortened below this."""
_WHOLE_HEADER = re.compile(r"(.* )?(id|status|made by|crontab)")
_PATH = re.compile(r"(.* )?path")
"""The end of a path says more than its beginning."""
_WHOLE_VALUE = re.compile(r"(since )?[<+-]?\d[\d.:TZhms+ -]{0,30}")
"""Numbers, times and durations: half of one is wrong."""


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None: it is a pipe or a file, where nothing is shortened."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show(output: str, headers: Sequence[str], rows: Sequence[Row], *, style: str = "grid") -> None:
    """Print rows in the format the user asked for."""
    width = terminal_width()
    if output == "json":
        click.echo(to_json([dict(zip(headers, row, strict=True)) for row in rows]))
    elif output == "text":
        for row in rows:
            click.echo(" \t".join(map(_cell, row)))
    elif width is not None:
        click.echo(draw_fitted(headers, rows, width))
    else:
        draw = draw_grid if style == "grid" else draw_simple
        click.echo(draw(headers, rows))


def show_one(output: str, headers: Sequence[str], row: Row) -> None:
    """One thing: on a terminal that is too narrow for its table, one line for each value, and all of the value."""
    width = terminal_width()
    if output == "table" and width is not None and not _fits(headers, row, width):
        click.echo(draw_record(headers, row))
    else:
        show(output, headers, [row])


def show_facts(headers: Sequence[str], rows: Sequence[Row]) -> None:
    """A small table beside a sentence. Nothing in it is shortened: on a terminal long values go on in the next line."""
    width = terminal_width()
    click.echo(draw_simple(headers, rows) if width is None else draw_fitted(headers, rows, width, wraps=True))


def show_with_details(output: str, headers: Sequence[str], row: Row, title: str, details: dict[str, object]) -> None:
    """One thing as a table, then ``title`` and the rest of it as JSON; with ``--output json`` all in one object."""
    if output == "json":
        click.echo(to_json([{**dict(zip(headers, row, strict=True)), **details}]))
        return
    show_one(output, headers, row)
    click.echo(title)
    click.echo(to_json([details]))


def show_page(
    output: str,
    headers: Sequence[str],
    rows: Sequence[Row],
    *,
    marker: str | None,
    nothing: str,
    terminal: Table | None = None,
) -> None:
    """One page of a list and the marker of the next; ``nothing`` is what an empty list says."""
    is_said = marker or output != "table" or terminal_width() is None
    if show_list(output, headers, rows, nothing=nothing, terminal=terminal) and is_said:
        click.echo(f"marker: {marker}", err=output == "json")


def show_list(
    output: str, headers: Sequence[str], rows: Sequence[Row], *, nothing: str, terminal: Table | None = None
) -> bool:
    """A list, or ``nothing``; whether there was anything. ``terminal`` is what a terminal shows instead."""
    if not rows and output != "json":
        click.echo(nothing)
    elif output == "table" and terminal_width() is not None:
        headers, rows = terminal or (headers, rows)
        # One row for each item: a line break in a name or a command is shown as what it is.
        show(output, headers, [[visible(one) if isinstance(one, str) else one for one in row] for row in rows])
    else:
        show(output, headers, rows)
    return bool(rows)


def on_terminal(name: str) -> str:
    """A name that somebody else chose: what is no visible character would play tricks with a terminal."""
    return visible(name) if sys.stdout.isatty() else name


def visible(text: str) -> str:
    """Characters that are not printable as escapes: ``\\n``, ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def to_json(value: object) -> str:
    return json.dumps(value, indent=4, ensure_ascii=False, default=str)


def draw_grid(headers: Sequence[str], rows: Sequence[Row]) -> str:
    """Lines around every cell, a double one under the header; a cell may have several lines."""
    columns = _columns(headers, rows)

    def rule(mark: str) -> str:
        return "+" + "+".join(mark * (column.width + 2) for column in columns) + "+"

    def band(cells: Sequence[list[str]]) -> list[str]:
        height = max((len(cell) for cell in cells), default=1)
        padded = [
            [column.pad(line) for line in [*cell, *[""] * (height - len(cell))]]
            for column, cell in zip(columns, cells, strict=True)
        ]
        return ["| " + " | ".join(line) + " |" for line in zip(*padded, strict=True)]

    lines = [rule("-"), *band([column.header for column in columns]), rule("=")]
    for index in range(len(rows)):
        lines += [*band([column.cells[index] for column in columns]), rule("-")]
    return "\n".join(lines)


def draw_simple(headers: Sequence[str], rows: Sequence[Row]) -> str:
    """Columns two blanks apart, one line under the header."""
    columns = _columns(headers, rows)
    lines = ["  ".join(column.pad(" ".join(column.header)) for column in columns).rstrip()]
    lines.append("  ".join("-" * column.width for column in columns))
    lines.extend(
        "  ".join(column.pad(" ".join(column.cells[index])) for column in columns).rstrip()
        for index in range(len(rows))
    )
    return "\n".join(lines)


def draw_fitted(headers: Sequence[str], rows: Sequence[Row], width: int, *, wraps: bool = False) -> str:
    """Lines of at most ``width``, for a terminal: columns two blanks apart, one line under the header.

    The widest columns of text are shortened or, with ``wraps``, go on in the next line. If that is not enough, the
    columns that are empty and then the last ones are left out, and a line below the table names them.
    """
    columns = _columns([*map(visible, headers)], [[*map(_visible_lines, row)] for row in rows], header_room=0)
    shown = _with_room(columns, width, wraps=wraps)
    _narrow(shown, width - len(_GAP) * (len(shown) - 1), wraps=wraps)
    lines = [_GAP.join(column.pad(*column.header) for column in shown).rstrip()]
    lines.append(_GAP.join("-" * column.width for column in shown))
    for index in range(len(rows)):
        cells = [column.laid_out(index, wraps=wraps) for column in shown]
        height = max(map(len, cells))
        padded = [
            [column.pad(line) for line in [*cell, *[""] * (height - len(cell))]]
            for column, cell in zip(shown, cells, strict=True)
        ]
        lines += [_GAP.join(line).rstrip() for line in zip(*padded, strict=True)]
    if left_out := [" ".join(column.header) for column in columns if column not in shown]:
        lines += wrapped(f"no room for: {', '.join(left_out)}; a wider terminal shows more", width)
    return "\n".join(lines)


def draw_record(headers: Sequence[str], row: Row) -> str:
    """One line for each value; a text of several lines stands below its name."""
    width = max(map(display_width, headers))
    lines = []
    for header, value in zip(headers, row, strict=True):
        text = _visible_lines(value)
        room = " " * (width - display_width(header))
        lines.append(f"{header}:\n{text}" if text and "\n" in text else f"{header}{room}  {text or ''}".rstrip())
    return "\n".join(lines)


def shortened(text: str, width: int) -> str:
    """As much of the text as there is room for, and ``…`` where something is missing."""
    if display_width(text) <= width:
        return text
    return _head(text, width - display_width(_CUT)) + _CUT


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width``, broken at blanks where there are any."""
    lines = []
    while display_width(text) > width:
        # A character that is wider than the line is put there nevertheless, or this would not end.
        head = _head(text, width) or text[0]
        at = len(head) if text[len(head) :].startswith(" ") else head.rfind(" ")
        if head[: max(at, 0)].strip():
            lines.append(head[:at].rstrip())
            text = text[at + 1 :]
        else:
            lines.append(head)
            text = text[len(head) :]
    return [*lines, text]


class _Column:
    """One column, laid out: its cells split into lines, its width and its side."""

    def __init__(self, header: str, values: Sequence[object], header_room: int) -> None:
        texts = [_cell(value) for value in values]
        self._right = _is_numeric(values, texts)
        if self._right:
            texts = _aligned_at_point(texts)
        self.header = header.split("\n")
        self.cells = [text.split("\n") for text in texts]
        widest = max((display_width(line) for cell in self.cells for line in cell), default=0)
        self.width = max(widest, max(map(display_width, self.header)) + header_room)

    def least(self, *, wraps: bool) -> int:
        """What it cannot be narrower than. A number that is wrapped is still all there, so wrapping may break it."""
        header = " ".join(self.header)
        lines = [line.strip() for cell in self.cells for line in cell if line]
        is_whole = _WHOLE_HEADER.fullmatch(header) or (not wraps and all(map(_WHOLE_VALUE.fullmatch, lines)))
        return self.width if is_whole else max(display_width(header), min(self.width, _LEAST))

    @property
    def is_empty(self) -> bool:
        return not any(map(any, self.cells))

    def laid_out(self, index: int, *, wraps: bool) -> list[str]:
        """The lines of a cell, none wider than the column."""
        if wraps:
            return [part for line in self.cells[index] for part in wrapped(line, self.width)]
        if _PATH.fullmatch(" ".join(self.header)):
            return [shortened(line[::-1], self.width)[::-1] for line in self.cells[index]]
        return [shortened(line, self.width) for line in self.cells[index]]

    def pad(self, text: str) -> str:
        room = " " * (self.width - display_width(text))
        return room + text if self._right else text + room


def _columns(headers: Sequence[str], rows: Sequence[Row], header_room: int = _HEADER_ROOM) -> list[_Column]:
    return [_Column(header, [row[index] for row in rows], header_room) for index, header in enumerate(headers)]


def _fits(headers: Sequence[str], row: Row, width: int) -> bool:
    columns = _columns(headers, [row], header_room=0)
    return all(len(column.cells[0]) == 1 for column in columns) and (
        sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1) <= width
    )


def _with_room(columns: Sequence[_Column], width: int, *, wraps: bool) -> list[_Column]:
    """The columns that fit when each is as narrow as it may be; the first always."""
    shown = list(columns)
    while len(shown) > 1 and sum(column.least(wraps=wraps) for column in shown) + len(_GAP) * (len(shown) - 1) > width:
        shown.remove(next((column for column in shown[:0:-1] if column.is_empty), shown[-1]))
    return shown


def _narrow(columns: Sequence[_Column], room: int, *, wraps: bool) -> None:
    """Shorten the widest columns to one common width, the largest with which all fit into the room."""
    least = [column.least(wraps=wraps) for column in columns]
    level = max(column.width for column in columns)

    def widths() -> list[int]:
        return [max(low, min(column.width, level)) for column, low in zip(columns, least, strict=True)]

    level = min(level, max(room, 0))
    while level and sum(widths()) > room:
        level -= 1
    for column, narrowed in zip(columns, widths(), strict=True):
        column.width = narrowed


def _visible_lines(value: object) -> str | None:
    return None if value is None else "\n".join(map(visible, _cell(value).split("\n")))


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value.replace("\r", "").expandtabs()
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def _is_numeric(values: Sequence[object], texts: Sequence[str]) -> bool:
    given = [text for value, text in zip(values, texts, strict=True) if value is not None]
    return bool(given) and all(_NUMBER.fullmatch(text) for text in given)


def _aligned_at_point(texts: Sequence[str]) -> list[str]:
    """Blanks after the shorter fractions, so that the points stand in one line."""
    tails = [len(text) - text.index(".") if "." in text else 0 for text in texts]
    longest = max(tails, default=0)
    return [text + " " * (longest - tail) for text, tail in zip(texts, tails, strict=True)]


def display_width(text: str) -> int:
    """Columns a terminal gives the text: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _head(text: str, width: int) -> str:
    """The characters that fit into the width."""
    taken = 0
    for at, char in enumerate(text):
        taken += _char_width(char)
        if taken > width:
            return text[:at]
    return text
