"""Which store holds a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.domain.errors import InUse, Invalid, NotFound
from paddleflow.pfs.routes import Routes

ROOT, TRAIN, DEEP, INNER = MemoryStore(), MemoryStore(), MemoryStore(), MemoryStore()
LINKS = {"train": (TRAIN, "t"), "a/b/deep": (DEEP, "d"), "train/x/inner": (INNER, "i")}
ROUTES = Routes(ROOT, "r", LINKS)


@pytest.mark.parametrize(
    ("path", "identity", "key", "above"),
    [
        ("", "r", "", ""),
        ("file", "r", "file", ""),
        ("training", "r", "training", ""),
        ("train", "t", "", "train"),
        ("train/x", "t", "x", "train"),
        ("train/x/inner", "i", "", "train/x/inner"),
        ("train/x/inner/y/z", "i", "y/z", "train/x/inner"),
        ("train/x/innermost", "t", "x/innermost", "train"),
        ("a", "r", "a", ""),
        ("a/b", "r", "a/b", ""),
        ("a/b/deep/c", "d", "c", "a/b/deep"),
    ],
)
def test_the_nearest_link_above_wins(path: str, identity: str, key: str, above: str) -> None:
    place = ROUTES.where(path)
    assert (place.identity, place.key, place.above) == (identity, key, above)
    assert place.store is ROUTES.store_of(identity)
    assert place.path_of(place.key) == path


def test_directories_show_their_links_and_what_leads_to_them() -> None:
    shown = {path: set(ROUTES.names_in(path)) for path in ("", "a", "a/b", "train", "train/x", "a/b/deep", "other")}
    assert shown == {
        "": {"train", "a"},
        "a": {"b"},
        "a/b": {"deep"},
        "train": {"x"},
        "train/x": {"inner"},
        "a/b/deep": set(),
        "other": set(),
    }
    assert [
        path for path in ("", "a", "a/b", "a/b/deep", "a/c", "train/x", "train/y") if ROUTES.leads_to_link(path)
    ] == [
        "",
        "a",
        "a/b",
        "a/b/deep",
        "train/x",
    ]


def test_links_are_not_changed_from_inside() -> None:
    for path in ("train", "a", "a/b", "train/x/inner"):
        with pytest.raises(InUse, match="link"):
            ROUTES.refuse_link(path)
    for path in ("b", "train/y", "a/c", "a/b/deep/below"):
        ROUTES.refuse_link(path)


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "a/../b", ".", "a/."])
def test_a_link_lies_below_the_root(path: str) -> None:
    with pytest.raises(Invalid, match=r"Field\[links\]"):
        Routes(ROOT, "r", {path: (TRAIN, "t")})


def test_stores_are_known_by_identity() -> None:
    assert ROUTES.identities == {"r", "t", "d", "i"}
    assert ROUTES.store_of("r") is ROOT
    with pytest.raises(NotFound, match="nobody"):
        ROUTES.store_of("nobody")


names = st.sampled_from(["a", "b", "c", "ab"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


@given(st.sets(paths, max_size=5), st.one_of(paths, st.just("")))
def test_the_longest_prefix_decides(links: set[str], path: str) -> None:
    routes = Routes(ROOT, "root", {link: (TRAIN, link) for link in links})
    place = routes.where(path)
    above = [link for link in links if path == link or path.startswith(f"{link}/")]
    assert place.above == max(above, key=len, default="")
    assert place.identity == (place.above or "root")
    assert place.path_of(place.key) == path
    below = {link for link in links if not path or link.startswith(f"{path}/")}
    assert routes.names_in(path) == {link[len(path) :].strip("/").split("/")[0] for link in below}
