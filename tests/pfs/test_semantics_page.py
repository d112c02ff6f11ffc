"""The page on semantics says nothing that is not so: its examples run on a plain disk and in a real mount."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.pfs.mounts import mounted, why_no_mounts
from tests.pfs.pages import Example, examples_in, run_example

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "filesystem-semantics.md"


def check_page(where: Path) -> None:
    for example in examples_in(PAGE.read_text()):
        if "hard" in example.command or "mkfifo" in example.command:
            continue
        assert run_example(example, where) == example.output, example.command


def test_examples_are_found_and_can_fail(tmp_path: Path) -> None:
    found = examples_in("text\n```console\n$ echo one\none\n$ true\n```\nmore\n```console\n$ false | cat\n```\n")
    assert found == [Example("echo one", "one\n"), Example("true", ""), Example("false | cat", "")]
    assert run_example(Example("echo two; cat nothing", ""), tmp_path).startswith("two\n")
    assert len(examples_in(PAGE.read_text())) > 15


def test_a_plain_disk_does_what_the_page_says(tmp_path: Path) -> None:
    """But for what the page says a mount refuses."""
    check_page(tmp_path)


@pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())
@pytest.mark.parametrize("passthrough", [True, False], ids=["passthrough", "without"])
def test_a_mount_does_what_the_page_says(tmp_path: Path, passthrough: bool) -> None:
    (tmp_path / "store").mkdir()
    with mounted(tmp_path, StorePlan(type="local", root=str(tmp_path / "store")), passthrough=passthrough) as mount:
        for example in examples_in(PAGE.read_text()):
            assert run_example(example, mount.path) == example.output, example.command
