"""The program around the suite: what it starts ends with it, and what it leaves is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONTAINED = [sys.executable, str(Path(__file__).parents[1] / "contained.py")]


def contained(script: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CONTAINED, "sh", "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_clean_suite_leaves_nothing(tmp_path: Path) -> None:
    done = contained("touch $TMPDIR/made && rm $TMPDIR/made; (sleep 0.1 &); echo ran", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -TERM $$", 143)])
def test_the_end_of_the_suite_is_its_own(tmp_path: Path, script: str, code: int) -> None:
    assert contained(script, tmp_path).returncode == code


@pytest.mark.parametrize(
    ("script", "complaint"),
    [("touch $TMPDIR/litter", "left in the temporary directory: litter"), ("sleep 1000 &", "sleep 1000")],
)
def test_what_is_left_is_named_and_fails(tmp_path: Path, script: str, complaint: str) -> None:
    done = contained(script, tmp_path, PADDLEFLOW_TEST_GRACE_S="1")  # what is left never ends by itself
    assert done.returncode == 1
    assert complaint in done.stderr


def test_a_killed_suite_ends_with_all_its_processes(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("namespaces are made by root")
    reading, writing = os.pipe()
    suite = subprocess.Popen(
        [*CONTAINED, "sh", "-c", "setsid sleep 1000 & echo started; wait"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=writing,
    )
    os.close(writing)
    with open(reading, encoding="ascii") as lines:
        assert lines.readline() == "started\n"
        suite.kill()
        suite.wait()
        assert lines.read() == "", "the pipe is closed when the last process has ended"
