"""What is noted beside staged content: the last whole line holds, whatever came after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.staging import Staged, Staging


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(str(tmp_path))


def taken(staging: Staging, content: bytes = b"content") -> Staged:
    data = staging.room()
    Path(data).write_bytes(content)
    return Staged(data=data, node=7, path="d/ä\udcff", mode=0o640, uid=1)


def note_of(staged: Staged) -> Path:
    return Path(staged.data).with_suffix(".json")


@pytest.mark.parametrize("is_lasting", [False, True])
def test_the_last_of_many_notes_holds_and_they_do_not_pile_up(staging: Staging, is_lasting: bool) -> None:
    staged = taken(staging)
    for number in range(400 if not is_lasting else 300):
        staged.base, staged.uploaded = ObjectVersion("s", "d/f", f"v{number}", 7), (number, 7)
        staging.save(staged, is_lasting=is_lasting)
    assert note_of(staged).stat().st_size < 70_000
    assert list(staging.load()) == [staged]
    assert sorted(os.listdir(Path(staged.data).parent)) == sorted([note_of(staged).name, Path(staged.data).name])


def test_a_note_cut_off_leaves_the_one_before_it(staging: Staging) -> None:
    staged = taken(staging)
    staging.save(staged)
    whole = note_of(staged).stat().st_size
    (before,) = staging.load()
    staged.is_orphan = True
    staging.save(staged)
    for length in range(whole, note_of(staged).stat().st_size):
        os.truncate(note_of(staged), length)
        assert list(staging.load()) == [before]
        staging.save(staged)
        (after,) = staging.load()
        assert after.is_orphan, "what is noted after a torn line holds"


def test_content_whose_name_a_machine_lost_is_set_aside(staging: Staging) -> None:
    staged, empty = taken(staging, b"all there is"), taken(staging, b"")
    note_of(staged).write_bytes(b"")
    note_of(empty).write_bytes(b"\0" * 100)
    assert list(staging.load()) == []
    (kept,) = Path(staging.conflicts).iterdir()
    assert kept.read_bytes() == b"all there is"
    assert os.listdir(Path(staged.data).parent) == []
