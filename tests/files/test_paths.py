"""How places are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.files.errors import located
from paddleflow.files.paths import Place, key_of, place_of, shown


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("data:/a/b", Place("data", "/a/b")),
        ("data:a/b", Place("data", "/a/b")),
        ("data:/a/b/", Place("data", "/a/b", is_directory_wanted=True)),
        ("data:", Place("data", "/", is_directory_wanted=True)),
        ("data:/", Place("data", "/", is_directory_wanted=True)),
        ("data://a//./b", Place("data", "/a/b")),
        ("my-fs_1:/x:y", Place("my-fs_1", "/x:y")),
        ("/local/data:/x", Place("", "/local/data:/x")),
        ("./data:/x", Place("", "./data:/x")),
        ("../x", Place("", "../x")),
        ("x", Place("", "x")),
        ("dir/", Place("", "dir", is_directory_wanted=True)),
        ("/", Place("", "/", is_directory_wanted=True)),
        ("no dots.allowed:/x", Place("", "no dots.allowed:/x")),
    ],
)
def test_places(written: str, place: Place) -> None:
    assert place_of(written) == place


@pytest.mark.parametrize("path", ["..", "/../x", "a/../../b", "a/..", "x\0y"])
def test_what_leads_out_is_refused(path: str) -> None:
    with pytest.raises(Invalid):
        key_of(path)


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1), max_size=5))
def test_keys_have_no_odd_parts(parts: list[str]) -> None:
    if ".." in parts:
        return
    key = key_of("/".join(parts))
    assert not {"", ".", ".."} & set(key.split("/")) or key == ""
    assert key_of(key) == key == key_of(shown(key))


@given(st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True), st.text(st.characters(exclude_characters="\0")))
def test_a_place_is_read_as_it_is_shown(fsname: str, path: str) -> None:
    try:
        place = place_of(f"{fsname}:{path}")
    except Invalid:
        assert ".." in path
        return
    again = place_of(str(place))
    assert (again.fsname, again.path) == (place.fsname, place.path)


@pytest.mark.parametrize(
    ("place", "message", "told"),
    [
        ("data:/a/b", "a/b is not there", "data:/a/b is not there"),
        ("data:/a/b", "a: it is not there", "data:/a: it is not there"),
        ("data:/a/b", "anchor is not there", "data:/a/b: anchor is not there"),
        ("data:/", "127.0.0.1:1 cannot be reached", "data:/: 127.0.0.1:1 cannot be reached"),
        ("data", "a is not there", "data: a is not there"),
        ("data:/a", "", "data:/a: "),
    ],
)
def test_errors_name_the_place_once(place: str, message: str, told: str) -> None:
    assert located(place, message) == told
