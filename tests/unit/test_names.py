from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain import names
from paddleflow.domain.errors import Invalid

HOSTILE = ["", "..", "../x", "a/b", "a b", "a;rm -rf", "$(id)", "`id`", "a\nb", "a\x00b", "é" * 3, "x" * 10_000, "-a"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "check", [names.check_queue_name, names.check_namespace, names.check_job_id, names.check_user_name]
)
def test_hostile_names_are_refused_and_not_echoed_whole(check: Callable[[str], str], name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check(name)
    assert refused.value.code == "InvalidNamePattern"
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("name", ["../x", "a/b", "a\n", "$(id)", "x" * 64, ""])
def test_hostile_filesystem_and_flavour_names(name: str) -> None:
    with pytest.raises(Invalid):
        names.check_filesystem_name(name)
    with pytest.raises(Invalid):
        names.check_flavour_name(name)


def test_a_trailing_newline_is_not_a_legal_end() -> None:
    with pytest.raises(Invalid):
        names.check_user_name("alice\n")


@pytest.mark.parametrize(
    ("password", "strong"), [("abc123", True), ("abcdef", False), ("123456", False), ("ab1", False)]
)
def test_passwords(password: str, strong: bool) -> None:
    if strong:
        assert names.check_password(password) == password
    else:
        with pytest.raises(Invalid) as refused:
            names.check_password(password)
        assert refused.value.code == "UserPasswordWeak"
        assert password not in refused.value.message


@pytest.mark.parametrize("path", ["/", "//", "/.", "/..", "/a/../..", "relative", "", "/a\x00b", "/" + "x" * 5000])
def test_mount_paths_that_escape_are_refused(path: str) -> None:
    with pytest.raises(Invalid):
        names.check_mount_path("mountPath", path, code="X")


@pytest.mark.parametrize(("path", "normal"), [("/a//b/", "/a/b"), ("//a", "/a"), ("/a/./b", "/a/b")])
def test_mount_paths_are_normalised(path: str, normal: str) -> None:
    assert names.check_mount_path("mountPath", path, code="X") == normal


@given(st.text(max_size=40))
def test_a_sub_path_never_leaves_its_filesystem(path: str) -> None:
    try:
        normal = names.check_sub_path("subPath", path, code="X")
    except Invalid:
        return
    assert not normal.startswith("/") and ".." not in normal.split("/") and "\x00" not in normal


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A B", "A\x00"])
def test_environment_names(name: str) -> None:
    with pytest.raises(Invalid):
        names.check_environment("env", {name: "x"}, code="X")


def test_labels_have_limits() -> None:
    with pytest.raises(Invalid, match="256"):
        names.check_labels("labels", {f"k{n}": "" for n in range(257)}, value_limit=10, code="X")
    with pytest.raises(Invalid, match="limit is 10"):
        names.check_labels("labels", {"k": "x" * 11}, value_limit=10, code="X")
