"""Files in dictionaries, under the contract of Files."""

from __future__ import annotations

from functools import partial

import pytest

from paddleflow.adapters.memory.clock import VirtualClock
from paddleflow.adapters.memory.files import MemoryFiles
from paddleflow.domain.errors import Invalid
from paddleflow.domain.filesystems import Filesystem
from tests.contracts import samples
from tests.contracts.files_contract import FilesContract, MakeDirectory, Write


class TestMemoryFiles(FilesContract):
    @pytest.fixture
    def clock(self) -> VirtualClock:
        return VirtualClock(samples.NOON)

    @pytest.fixture
    def files(self, clock: VirtualClock) -> MemoryFiles:
        return MemoryFiles(clock=clock)

    @pytest.fixture
    def fs(self) -> Filesystem:
        return samples.filesystem(type="local", sub_path="/nowhere")

    @pytest.fixture
    def write(self, files: MemoryFiles, fs: Filesystem) -> Write:
        return partial(files.write, fs)

    @pytest.fixture
    def make_directory(self, files: MemoryFiles, fs: Filesystem) -> MakeDirectory:
        return partial(files.make_directory, fs)

    def test_a_file_tells_when_the_story_wrote_it(
        self, files: MemoryFiles, fs: Filesystem, clock: VirtualClock
    ) -> None:
        files.write(fs, "a", b"1")
        clock.advance(60)
        files.write(fs, "b", b"1")
        assert files.entry(fs, "a").modified_at == samples.NOON
        assert files.entry(fs, "b").modified_at == samples.at(60)

    def test_filesystems_do_not_share_files(self, files: MemoryFiles, fs: Filesystem) -> None:
        other = samples.filesystem("other", type="local")
        files.write(fs, "a", b"1")
        assert [entry.path for entry in files.walk(other, "")] == [""]

    def test_a_file_cannot_be_written_over_a_directory(self, files: MemoryFiles, fs: Filesystem) -> None:
        files.make_directory(fs, "a/b")
        with pytest.raises(Invalid):
            files.write(fs, "a", b"1")
