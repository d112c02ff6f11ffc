"""How answers are shown: as a table, as JSON or as text.

Tables look as users of the product know them: ``grid`` with lines around every cell, ``simple`` with one line under
the header. Columns of numbers are set to the right; a missing value is an empty cell. With ``--output json`` standard
output is exactly one JSON document, so what is not part of it (the marker of the next page) goes to standard error.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Sequence

import click

Row = Sequence[object]

FORMATS = ("table", "json", "text")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
_HEADER_ROOM = 2
"""A column is at least this much wider than its header."""


def show(output: str, headers: Sequence[str], rows: Sequence[Row], *, style: str = "grid") -> None:
    """Print rows in the format the user asked for."""
    if output == "json":
        click.echo(to_json([dict(zip(headers, row, strict=True)) for row in rows]))
    elif output == "text":
        for row in rows:
            click.echo(" \t".join(map(_cell, row)))
    else:
        draw = draw_grid if style == "grid" else draw_simple
        click.echo(draw(headers, rows))


def show_with_details(output: str, headers: Sequence[str], row: Row, title: str, details: dict[str, object]) -> None:
    """One thing as a table, then ``title`` and the rest of it as JSON; with ``--output json`` all in one object."""
    if output == "json":
        click.echo(to_json([{**dict(zip(headers, row, strict=True)), **details}]))
        return
    show(output, headers, [row])
    click.echo(title)
    click.echo(to_json([details]))


def show_page(output: str, headers: Sequence[str], rows: Sequence[Row], *, marker: str | None, nothing: str) -> None:
    """One page of a list and the marker of the next; ``nothing`` is what an empty list says."""
    if show_list(output, headers, rows, nothing=nothing):
        click.echo(f"marker: {marker}", err=output == "json")


def show_list(output: str, headers: Sequence[str], rows: Sequence[Row], *, nothing: str) -> bool:
    """A list, or ``nothing``; whether there was anything."""
    if rows or output == "json":
        show(output, headers, rows)
    else:
        click.echo(nothing)
    return bool(rows)


def on_terminal(name: str) -> str:
    """A name that somebody else chose: what is no visible character would play tricks with a terminal."""
    if name.isprintable() or not sys.stdout.isatty():
        return name
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


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


class _Column:
    """One column, laid out: its cells split into lines, its width and its side."""

    def __init__(self, header: str, values: Sequence[object]) -> None:
        texts = [_cell(value) for value in values]
        self._right = _is_numeric(values, texts)
        if self._right:
            texts = _aligned_at_point(texts)
        self.header = header.split("\n")
        self.cells = [text.split("\n") for text in texts]
        widest = max((display_width(line) for cell in self.cells for line in cell), default=0)
        self.width = max(widest, max(map(display_width, self.header)) + _HEADER_ROOM)

    def pad(self, text: str) -> str:
        room = " " * (self.width - display_width(text))
        return room + text if self._right else text + room


def _columns(headers: Sequence[str], rows: Sequence[Row]) -> list[_Column]:
    return [_Column(header, [row[index] for row in rows]) for index, header in enumerate(headers)]


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
