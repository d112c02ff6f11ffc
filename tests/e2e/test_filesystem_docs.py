"""What the page about filesystems tells a reader to type is typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.reader import Reader, serving

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "filesystems.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MOUNTPOINT = "mnt"

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Reader, Path]]:
    folder = tmp_path / "work"
    for name in ("storage", "more", "images/cats"):
        (folder / name).mkdir(parents=True)
    (folder / "notes.txt").write_text("remember\n")
    (folder / "more" / "x").write_text("x")
    (folder / "list.txt").write_text("data:/images/cats\n")
    for index in range(10):
        (folder / "images" / "cats" / f"{index}.png").write_bytes(os.urandom(1000))
    monkeypatch.setenv("SKIP_DROP_CACHES", "true")
    with TemporaryDirectory(prefix="pf-") as state, serving(tmp_path / "state") as server:
        monkeypatch.setenv("XDG_STATE_HOME", state)
        yield Reader(tmp_path / "home", server), folder
        subprocess.run(["umount", "-l", folder / MOUNTPOINT], check=False, capture_output=True)


def test_howto(reader: tuple[Reader, Path]) -> None:
    person, folder = reader
    has_fuse = os.access("/dev/fuse", os.R_OK | os.W_OK)
    typed = 0
    for language, text in FENCE.findall(PAGE.read_text()):
        if language == "python":
            (folder / "program.py").write_text(text)
            done = person.start([sys.executable, "program.py"], folder)
            assert done.returncode == 0, f"{text}\n{done.stdout}"
            typed += 1
        elif language == "sh" and (has_fuse or f" {MOUNTPOINT}" not in text):
            for line in text.splitlines():
                done = person.start(["sh", "-c", line], folder)
                assert (done.returncode != 0) == line.endswith("# it fails"), f"{line}\n{done.stdout}"
                typed += 1
    assert typed > 30
    assert {path.name for path in (folder / "copy" / "cats").iterdir()} == {f"{index}.png" for index in range(10)}
    assert (folder / "a.csv").read_text() == "x,y\n1,2\n"
