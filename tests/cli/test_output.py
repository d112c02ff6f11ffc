"""The drawing of tables, pinned to the look users know."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.cli.output import (
    display_width,
    draw_fitted,
    draw_grid,
    draw_simple,
    shortened,
    show,
    show_one,
    show_page,
    visible,
    wrapped,
)


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


LONG = "n" * 300
JOBS: tuple[list[str], list[list[object]]] = (
    ["job id", "name", "status", "cpu", "start time", "command"],
    [
        ["job-run-000001-train-0a1b2c3d", LONG, "succeeded", 4, "2024-01-01 00:00:01", "python train.py"],
        ["job-2", "数据" * 40, "running", 16, "2024-01-01 00:00:02", "echo \x1b[2J\nrm"],
        ["job-3", "", "pending", None, "", None],
    ],
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], io.StringIO]:
    """Makes standard output a terminal of so many columns."""

    def made(width: int) -> io.StringIO:
        monkeypatch.setenv("COLUMNS", str(width))
        screen = Terminal()
        monkeypatch.setattr("sys.stdout", screen)
        return screen

    return made


@pytest.mark.parametrize("width", [20, 80, 120, 200])
def test_a_table_fits_the_terminal(width: int) -> None:
    lines = draw_fitted(*JOBS, width).split("\n")
    if width == 20:
        assert lines[:3] == ["job id", "-" * 29, "job-run-000001-train-0a1b2c3d"], "an id is never shortened"
        lines = lines[5:]
        assert " ".join(lines).startswith("no room for: name, status, cpu, start time, command;")
    assert max(map(display_width, lines)) <= width


def test_only_wide_columns_of_text_are_shortened() -> None:
    assert draw_fitted(*JOBS, 96).split("\n") == [
        "job id                         name           status     cpu  start time           command",
        "-----------------------------  -------------  ---------  ---  -------------------  -------------",
        "job-run-000001-train-0a1b2c3d  nnnnnnnnnnnn…  succeeded    4  2024-01-01 00:00:01  python train…",
        "job-2                          数据数据数据…  running     16  2024-01-01 00:00:02  echo \\x1b[2J",
        "                                                                                   rm",
        "job-3                                         pending",
    ]


def test_columns_without_room_are_named_and_empty_ones_go_first() -> None:
    headers = ["job id", "description", "message", "update time"]
    row = ["job-1", "", "it is over", "2024-01-01 00:00:01"]
    assert draw_fitted(headers, [row], 40).split("\n")[2:] == [
        "job-1   it is over  2024-01-01 00:00:01",
        "no room for: description; a wider",
        "terminal shows more",
    ]


def test_of_a_path_the_end_is_kept() -> None:
    drawn = draw_fitted(["id", "artifact path"], [["1", "a/very/long/path/to/the/model"]], 20)
    assert drawn.split("\n")[2] == " 1  …th/to/the/model"


def test_facts_are_wrapped_not_shortened() -> None:
    row = ["command", "python train.py --data=" + "x" * 40, "数据 数据数据 数据数据数据"]
    lines = draw_fitted(["changed", "before", "after"], [row], 40, wraps=True).split("\n")
    assert max(map(display_width, lines)) <= 40
    assert "…" not in "".join(lines)
    assert "".join(lines).count("x") == 40
    assert "".join(lines).count("数据") == 6


def test_a_list_on_a_terminal(terminal: Callable[[int], io.StringIO]) -> None:
    screen = terminal(80)
    show_page("table", ["job id", "name"], [["job-1", "a\nb\x1b"]], marker=None, nothing="no")
    assert screen.getvalue().splitlines() == ["job id  name", "------  --------", "job-1   a\\nb\\x1b"]
    screen = terminal(80)
    show_page("table", ["a"], [["x"]], marker="m", nothing="no", terminal=(["short"], [["y"]]))
    assert screen.getvalue().splitlines() == ["short", "-----", "y", "marker: m"]
    screen = terminal(20)
    show_page("text", ["a"], [[LONG]], marker=None, nothing="no")
    assert screen.getvalue() == f"{LONG}\nmarker: None\n"


def test_a_list_in_a_pipe_is_as_scripts_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    show_page("table", ["name"], [[LONG]], marker=None, nothing="no", terminal=(["short"], [["y"]]))
    rule = "-" * 302
    assert capsys.readouterr().out.splitlines() == [
        f"+{rule}+",
        f"| name{' ' * 297}|",
        f"+{'=' * 302}+",
        f"| {LONG} |",
        f"+{rule}+",
        "marker: None",
    ]


def test_one_thing_on_a_terminal_has_all_of_its_values(terminal: Callable[[int], io.StringIO]) -> None:
    screen = terminal(80)
    show_one("table", ["name", "status"], ["q", "open"])
    assert screen.getvalue().splitlines() == ["name  status", "----  ------", "q     open"]
    screen = terminal(80)
    show_one("table", ["name", "pipeline yaml", "desc"], [LONG, "name: a\nenv: {}", None])
    assert screen.getvalue().splitlines() == [f"name           {LONG}", "pipeline yaml:", "name: a", "env: {}", "desc"]


@given(st.text(max_size=80), st.integers(min_value=2, max_value=40))
def test_wrapped_text_fits_and_loses_nothing_but_blanks(text: str, width: int) -> None:
    text = text.expandtabs().replace("\n", " ")
    lines = wrapped(text, width)
    assert all(display_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


WORDS = st.text(alphabet="abc 数据é\u0301\x1b\u202e", max_size=60)


@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), max_size=5), st.integers(min_value=1, max_value=200))
def test_no_line_is_longer_than_the_terminal(rows: list[list[str]], width: int) -> None:
    headers = ["first", "second", "数"]
    drawn = draw_fitted(headers, rows, width)
    least = 0
    for index, header in enumerate(headers):
        natural = max((display_width(visible(row[index])) for row in rows), default=0)
        least += max(display_width(header), min(natural, 6))
    longest = max(map(display_width, drawn.split("\n")))
    if width >= least + 4:
        assert longest <= width
        assert "no room" not in drawn
        assert all(header in drawn.split("\n")[0] for header in headers)
    else:
        assert longest <= max(width, 6), "the first column is always there"
        assert "noroomfor" in "".join(drawn.split())


@given(WORDS, st.integers(min_value=1, max_value=70))
def test_shortened_text_says_so(text: str, width: int) -> None:
    short = shortened(visible(text), width)
    assert display_width(short) <= width
    assert short == visible(text) or short.endswith("…")
