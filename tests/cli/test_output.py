"""The drawing of tables, pinned to the look users know."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.cli.output import display_width, draw_grid, draw_simple, show, show_page


def test_grid() -> None:
    drawn = draw_grid(["name", "cpu", "mem"], [["flavour1", "1", "1Gi"], ["flavour2", "16", None]])
    assert drawn.splitlines() == [
        "+----------+-------+-------+",
        "| name     |   cpu | mem   |",
        "+==========+=======+=======+",
        "| flavour1 |     1 | 1Gi   |",
        "+----------+-------+-------+",
        "| flavour2 |    16 |       |",
        "+----------+-------+-------+",
    ]


def test_grid_with_lines_in_a_cell_and_wide_characters() -> None:
    drawn = draw_grid(["a", "b"], [["one\ntwo", "数据"]])
    assert drawn.splitlines() == [
        "+-----+------+",
        "| a   | b    |",
        "+=====+======+",
        "| one | 数据 |",
        "| two |      |",
        "+-----+------+",
    ]


def test_simple() -> None:
    drawn = draw_simple(["name", "age"], [["x", 1.5], ["long name", 10]])
    assert drawn.splitlines() == [
        "name         age",
        "---------  -----",
        "x            1.5",
        "long name   10",
    ]


def test_nothing_but_a_header() -> None:
    assert draw_grid(["a"], []).splitlines() == ["+-----+", "| a   |", "+=====+"]


def test_cells_of_any_kind(capsys: pytest.CaptureFixture[str]) -> None:
    show("text", ["a", "b", "c", "d"], [["x", 1, None, {"k": ["v"]}]])
    assert capsys.readouterr().out == 'x \t1 \t \t{"k": ["v"]}\n'


def test_json_is_a_list_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    show("json", ["a", "b"], [["x", {"k": 1}]])
    out = capsys.readouterr().out
    assert json.loads(out) == [{"a": "x", "b": {"k": 1}}]
    assert out.startswith('[\n    {\n        "a"')


def test_marker_does_not_spoil_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_page("json", ["a"], [["x"]], marker="m", nothing="no")
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"a": "x"}]
    assert err == "marker: m\n"
    show_page("json", ["a"], [], marker=None, nothing="no")
    assert json.loads(capsys.readouterr().out) == []
    show_page("table", ["a"], [], marker=None, nothing="no")
    assert capsys.readouterr().out == "no\n"


CELLS = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=12), st.booleans())


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5))
def test_every_line_of_a_grid_is_equally_wide(rows: list[list[object]]) -> None:
    lines = draw_grid(["first", "second"], rows).split("\n")
    assert len({display_width(line) for line in lines}) == 1
