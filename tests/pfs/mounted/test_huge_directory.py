"""A directory with more entries than anybody wants in memory: its first ones come at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pfs.mounted.places import local_store
from tests.pfs.mounts import mounted

pytestmark = pytest.mark.timeout(300)

ENTRIES = int(os.environ.get("PADDLEFLOW_HUGE_DIRECTORY", "20000"))


def resident_mib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024


def test_all_entries_come_and_the_front_stays_small(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    huge = tmp_path / "store" / "huge"
    huge.mkdir()
    for number in range(ENTRIES):
        os.close(os.open(huge / f"entry-{number:08}", os.O_CREAT | os.O_WRONLY))
    with mounted(tmp_path, store) as mount:
        before = resident_mib(mount.figures()["front"])
        with os.scandir(mount.path / "huge") as entries:
            first = next(entries).name
            assert mount.figures()["requests"]["readdirplus"] <= 2, "the first come before all are listed"
            names = {first, *(entry.name for entry in entries)}
        assert len(names) == ENTRIES
        assert resident_mib(mount.figures()["front"]) - before < 64 + ENTRIES // 300
        mount.kill_front()
        assert len(os.listdir(mount.path / "huge")) == ENTRIES
