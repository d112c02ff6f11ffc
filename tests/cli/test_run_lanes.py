"""Graphs drawn as text: small ones as they should look, and what holds for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.cli.lanes import BULLET, draw_lanes

Graph = dict[str, list[str]]

DRAWINGS: list[tuple[str, Graph, list[str]]] = [
    ("nothing", {}, []),
    ("a chain stands in one column", {"a": [], "b": ["a"], "c": ["b"]}, ["● a", "● b", "● c"]),
    (
        "what waits for nothing never stands right under another",
        {"a": [], "b": [], "c": []},
        ["●   a", "  ● b", "●   c"],
    ),
    (
        "a fork and a join",
        {"load": [], "clean": ["load"], "count": ["load"], "train": ["clean", "count"], "report": ["load"]},
        ["●     load", "├─●   clean", "├─│─● count", "│ ╰─● train", "●     report"],
    ),
    (
        "several join",
        {"a": [], "b": [], "c": [], "d": ["a", "b", "c"]},
        ["●     a", "│ ●   b", "│ │ ● c", "╰─┴─● d"],
    ),
    (
        "some of what is joined goes on",
        {"a": [], "b": [], "c": ["a", "b"], "d": ["a"]},
        ["●   a", "│ ● b", "├─● c", "●   d"],
    ),
]


def drawn(graph: Graph) -> list[str]:
    rows = draw_lanes(list(graph), graph)
    width = max((len(row) for row, _ in rows.values()), default=0)
    return [f"{row.ljust(width)} {name}" for name, (row, _) in rows.items()]


@pytest.mark.parametrize(("graph", "wanted"), [case[1:] for case in DRAWINGS], ids=[case[0] for case in DRAWINGS])
def test_drawing(graph: Graph, wanted: list[str]) -> None:
    assert drawn(graph) == wanted


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(0, 12))
    names = [f"n{index}" for index in range(count)]
    return {
        name: draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else [] for at, name in enumerate(names)
    }


@given(graphs())
def test_every_line_leads_to_what_is_waited_for(graph: Graph) -> None:
    """Read the drawing back: follow the line of a row to the lanes it touches, and each lane up to its bullet."""
    rows = draw_lanes(list(graph), graph)
    owner: dict[int, str] = {}
    for name, (row, _) in rows.items():
        cells = row[::2]
        at = cells.index(BULLET)
        assert cells.count(BULLET) == 1
        found = {owner[column] for column, cell in enumerate(cells) if cell in "├┼┤╰┴╯" and column in owner}
        if at in owner and cells[at] == BULLET:
            found.add(owner[at])
        assert found == set(graph[name])
        for column, cell in enumerate(cells):
            if cell in "╰┴╯":
                del owner[column]
        owner.pop(at, None)
        if any(name in before for before in list(graph.values())[list(graph).index(name) + 1 :]):
            owner[at] = name


@given(graphs())
def test_open_lanes_are_drawn_until_they_end(graph: Graph) -> None:
    names = list(graph)
    for at, (name, (_, below)) in enumerate(draw_lanes(names, graph).items()):
        earlier = set(names[: at + 1])
        still_waited_for = {before for later in names[at + 1 :] for before in graph[later] if before in earlier}
        assert below.count("│") == len(still_waited_for), name
