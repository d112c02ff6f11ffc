"""What a successor reads is whole records in their order, whatever the disk did."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.pfs.records import RecordLog, read_records
from tests.small_disk import fill, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as place:
        yield place


def begun(path: str, *records: str, is_continued: bool = False) -> RecordLog:
    return RecordLog(path, list(records), is_continued=is_continued)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    assert read_records(path) == []
    log = begun(path, "first", "with\nline and \udcff")
    log.append("second")
    log.add_to_next("later")
    assert read_records(path)[-1] == "second"
    log.append_or_wait("third")
    assert read_records(path) == ["first", "with\nline and \udcff", "second", "later", "third"]
    log.write_anew(["all"])
    log.append("more")
    log.close()
    assert read_records(path) == ["all", "more"]
    assert os.listdir(tmp_path) == ["log"]


def test_a_log_that_is_not_continued_begins_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    begun(path, "old").close()
    begun(path, "new").close()
    assert read_records(path) == ["new"]


def test_half_a_record_is_taken_back(disk: Path) -> None:
    path = str(disk / "log")
    log = begun(path, "first")
    hog = fill(disk)
    refused = 0
    for number in range(1000):  # until the last page of the log itself is full
        try:
            log.append(f"{number} {'x' * 100}")
        except OSError:
            refused += 1
    assert 0 < refused < 1000
    happened = f"happened {'x' * 100}"
    log.append_or_wait(happened)
    log.add_to_next("dropped")
    records = read_records(path)
    assert records == ["first", *(f"{number} {'x' * 100}" for number in range(1000 - refused))]
    hog.unlink()
    log.append("there is room")
    assert read_records(path) == [*records, happened, "dropped", "there is room"]


def test_a_log_that_cannot_be_written_anew_goes_on(disk: Path) -> None:
    path = str(disk / "log")
    log = begun(path, *(f"{number}" for number in range(2000)))
    hog = fill(disk)
    log.write_anew(["x" * 100_000])
    assert sorted(os.listdir(disk)) == ["log", hog.name]
    log.append("next")  # in the page that the log has
    log.close()
    successor = begun(path, "y" * 100_000, is_continued=True)
    assert sorted(os.listdir(disk)) == ["log", hog.name]
    successor.append("last")
    assert read_records(path) == [*(f"{number}" for number in range(2000)), "next", "last"]
    with pytest.raises(OSError, match="No space"):
        begun(path, "y" * 100_000)
    hog.unlink()
    successor.write_anew(["whole"])
    assert read_records(path) == ["whole"]


def test_a_successor_takes_back_what_death_cut_off(disk: Path) -> None:
    path = str(disk / "log")
    begun(path, "whole", "cut off by de").close()
    os.truncate(path, os.path.getsize(path) - 1)
    fill(disk)
    log = begun(path, "x" * 100_000, is_continued=True)
    log.append("next")
    assert read_records(path) == ["whole", "next"]
