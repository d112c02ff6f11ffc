"""Numbers, names and the log between two processes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.nodes import Nodes


def log(tmp_path: Path) -> str:
    return str(tmp_path / "nodes")


def test_a_successor_knows_every_number(tmp_path: Path) -> None:
    first = Nodes(log(tmp_path), is_successor=False)
    folder = first.add(first.root, "data")
    file = first.add(folder, "odd\nname \udcff")
    other = first.add(folder, "other")
    first.move(other, first.root, "moved here")
    for node in (folder, file, other):
        node.lookups = 1
    first.detach(file, '{"a": 1}')
    second = Nodes(log(tmp_path), is_successor=True)
    assert second.path(second.get(file.id)) == "data/odd\nname \udcff"
    assert second.get(file.id).keepsake == '{"a": 1}'
    assert not second.get(file.id).is_linked
    assert second.path(second.get(other.id)) == "moved here"
    assert second.get(other.id).ino == other.ino
    assert second.root.children["moved here"].id == other.id
    assert "odd\nname \udcff" not in second.get(folder.id).children


def test_numbers_are_never_given_twice(tmp_path: Path) -> None:
    nodes = Nodes(log(tmp_path), is_successor=False)
    last = nodes.add(nodes.root, "x")
    nodes.drop_if_unused(last)
    nodes.close()
    for _ in range(3):
        nodes = Nodes(log(tmp_path), is_successor=True)
        fresh = nodes.add(nodes.root, "y")
        assert fresh.id > last.id
        last = fresh
        nodes.drop_if_unused(fresh)
        nodes.close()


def test_a_fresh_mount_knows_nothing(tmp_path: Path) -> None:
    first = Nodes(log(tmp_path), is_successor=False)
    node = first.add(first.root, "x")
    second = Nodes(log(tmp_path), is_successor=False)
    with pytest.raises(FsError) as refused:
        second.get(node.id)
    assert refused.value.errno == errno.ESTALE


def test_a_record_cut_off_by_death_is_left_out(tmp_path: Path) -> None:
    first = Nodes(log(tmp_path), is_successor=False)
    node = first.add(first.root, "whole")
    first.add(first.root, "cut off")
    content = Path(log(tmp_path)).read_bytes()
    Path(log(tmp_path)).write_bytes(content[:-3])
    second = Nodes(log(tmp_path), is_successor=True)
    assert second.root.children.keys() == {"whole"}
    assert second.root.children["whole"].id == node.id


def test_forgetting(tmp_path: Path) -> None:
    nodes = Nodes(log(tmp_path), is_successor=False)
    gone: list[int] = []
    nodes.on_drop = lambda node: gone.append(node.id)
    folder = nodes.add(nodes.root, "d")
    file = nodes.add(folder, "f")
    folder.lookups, file.lookups = 1, 3
    nodes.forget(file.id, 2)
    assert nodes.find(file.id) is file
    nodes.forget(folder.id, 1)
    assert nodes.find(folder.id) is folder, "the way to a file that is still held"
    nodes.forget(file.id, 1)
    assert gone == [file.id, folder.id]
    assert len(nodes) == 1


def test_a_pinned_node_stays(tmp_path: Path) -> None:
    nodes = Nodes(log(tmp_path), is_successor=False)
    node = nodes.add(nodes.root, "f")
    node.lookups = node.pins = 1
    nodes.forget(node.id, 1)
    assert nodes.find(node.id) is node


@pytest.mark.parametrize(("since", "count", "stays"), [(0, 5, False), (2, 7, True), (3, 1, True)])
def test_forgetting_what_was_inherited(tmp_path: Path, since: int, count: int, stays: bool) -> None:
    first = Nodes(log(tmp_path), is_successor=False)
    node = first.add(first.root, "f")
    second = Nodes(log(tmp_path), is_successor=True)
    inherited = second.get(node.id)
    inherited.lookups = since
    second.forget(node.id, count)
    assert (second.find(node.id) is not None) == stays
    if stays:
        assert inherited.lookups == max(since - count, 0)
        inherited.lookups = 0
        second.forget(node.id, 1)
        assert second.find(node.id) is None


def test_inode_numbers_are_of_the_path_and_unique(tmp_path: Path) -> None:
    one = Nodes(log(tmp_path), is_successor=False)
    other = Nodes(str(tmp_path / "elsewhere"), is_successor=False)
    shown = one.ino_for(one.root, "a")
    node = one.add(one.root, "a")
    assert node.ino == shown == other.add(other.root, "a").ino
    one.move(node, one.root, "b")
    again = one.add(one.root, "a")
    assert again.ino != node.ino, "two files that both exist must not look like one"
    assert node.ino < 1 << 63


def test_a_replaced_node_is_the_same_file(tmp_path: Path) -> None:
    nodes = Nodes(log(tmp_path), is_successor=False)
    old = nodes.add(nodes.root, "a")
    old.lookups = 1
    new = nodes.replace(old)
    assert (new.ino, new.name) == (old.ino, old.name)
    assert nodes.root.children["a"] is new
    assert not old.is_linked
    assert Nodes(log(tmp_path), is_successor=True).root.children["a"].id == new.id


def test_noted_handles(tmp_path: Path) -> None:
    first = Nodes(log(tmp_path), is_successor=False)
    node = first.add(first.root, "a")
    first.opened(node, 7, 100, "Pw")
    first.opened(node, 8, 102, "Pr")
    first.closed(node, 7)
    first.add(first.root, "b")  # closing is written with whatever comes next
    second = Nodes(log(tmp_path), is_successor=True)
    assert second.opens == {node.id: {8: (102, "Pr")}}


def test_the_log_does_not_grow_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddleflow.pfs.nodes._COMPACT_AFTER", 100)
    nodes = Nodes(log(tmp_path), is_successor=False)
    kept = nodes.add(nodes.root, "kept")
    kept.lookups = 1
    for number in range(2000):
        nodes.drop_if_unused(nodes.add(nodes.root, f"n{number}"))
    assert os.path.getsize(log(tmp_path)) < 10_000
    assert Nodes(log(tmp_path), is_successor=True).root.children["kept"].id == kept.id


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "move", "detach", "replace", "forget"]), st.integers(0, 9), st.integers(0, 9))
    )
)
def test_any_history_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, int]]
) -> None:
    place = str(tmp_path_factory.mktemp("log") / "nodes")
    nodes = Nodes(place, is_successor=False)
    for what, which, where in history:
        living = [node for node in nodes.below(nodes.root) if node.is_linked]
        node = living[which % len(living)]
        above = living[where % len(living)]
        if what == "add":
            if str(where) not in node.children:
                nodes.add(node, str(where)).lookups = 1
        elif node is nodes.root:
            continue
        elif what == "move":
            if above not in set(nodes.below(node)) and str(which) not in above.children:
                nodes.move(node, above, str(which))
        elif what == "detach" and not node.children:
            nodes.detach(node, "kept")
        elif what == "replace" and not node.children:
            nodes.replace(node).lookups = 1
        elif what == "forget":
            nodes.forget(node.id, 1)
    nodes.close()
    again = Nodes(place, is_successor=True)
    assert {node.id: nodes.path(node) for node in nodes.below(nodes.root)} == {
        node.id: again.path(node) for node in again.below(again.root)
    }
    assert {node.id for node in nodes.detached()} == {node.id for node in again.detached()}
    again.close()
