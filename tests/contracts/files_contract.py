"""What every implementation of Files must do. Subclasses say how files come to be there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from paddleflow.domain.errors import Invalid, NotFound, TooLarge
from paddleflow.domain.filesystems import Filesystem
from paddleflow.ports.files import Files
from tests.contracts import samples

Write = Callable[[str, bytes], None]
MakeDirectory = Callable[[str], None]

OUTSIDE = ["..", "../x", "a/../../x", "a/..", "/etc/passwd", "/", "a\0b", "a/../a"]


class FilesContract:
    @pytest.fixture
    def files(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def fs(self) -> Filesystem:
        raise NotImplementedError

    @pytest.fixture
    def write(self) -> Write:
        raise NotImplementedError

    @pytest.fixture
    def make_directory(self) -> MakeDirectory:
        raise NotImplementedError

    # Reading

    def test_a_file_is_read_whole_or_not_at_all(self, files: Files, fs: Filesystem, write: Write) -> None:
        write("a/b.txt", b"12345")
        write("empty", b"")
        assert files.read(fs, "a/b.txt", 5) == b"12345"
        assert files.read(fs, "./a//b.txt", 5000) == b"12345"
        assert files.read(fs, "empty", 0) == b""
        with pytest.raises(TooLarge, match=r"\[a/b\.txt\]"):
            files.read(fs, "a/b.txt", 4)

    def test_a_part_of_a_file_is_read(self, files: Files, fs: Filesystem, write: Write) -> None:
        content = bytes(range(256)) * 10_000
        write("big", content)
        assert files.read_range(fs, "big", 0, 10) == content[:10]
        assert files.read_range(fs, "big", 300, 2_000_000) == content[300:2_000_300]
        assert files.read_range(fs, "big", len(content) - 3, 10) == content[-3:]
        assert files.read_range(fs, "big", len(content), 10) == b""
        assert files.read_range(fs, "big", 2**70, 10) == b""
        assert files.read_range(fs, "big", 5, 0) == b""
        for start, limit in ((-1, 5), (0, -1)):
            with pytest.raises(Invalid):
                files.read_range(fs, "big", start, limit)

    def test_what_is_not_there_or_not_a_file_cannot_be_read(
        self, files: Files, fs: Filesystem, write: Write, make_directory: MakeDirectory
    ) -> None:
        write("file", b"x")
        make_directory("dir")
        for path in ("none", "dir/none", "none/none"):
            with pytest.raises(NotFound):
                files.read(fs, path, 10)
            with pytest.raises(NotFound):
                files.read_range(fs, path, 0, 10)
        for path in ("dir", "", ".", "file/below"):
            with pytest.raises(Invalid):
                files.read(fs, path, 10)

    # Looking

    def test_entries(self, files: Files, fs: Filesystem, write: Write) -> None:
        write("a/b.txt", b"12345")
        file, directory, root = files.entry(fs, "a/b.txt"), files.entry(fs, "a/"), files.entry(fs, "")
        assert (file.path, file.is_directory, file.is_link, file.size) == ("a/b.txt", False, False, 5)
        assert (directory.path, directory.is_directory, directory.size) == ("a", True, 0)
        assert (root.path, root.is_directory) == ("", True)
        assert file.modified_at.utcoffset() is not None
        with pytest.raises(NotFound):
            files.entry(fs, "b")
        with pytest.raises(Invalid):
            files.entry(fs, "a/b.txt/c")

    def test_a_walk_meets_parents_first_and_names_in_order(
        self, files: Files, fs: Filesystem, write: Write, make_directory: MakeDirectory
    ) -> None:
        for path in ("z", "a/10", "a/9", "a/b/c", "a.txt", "other/x"):
            write(path, b"1")
        make_directory("a/empty")
        assert [entry.path for entry in files.walk(fs, "")] == [
            "",
            "a",
            "a/10",
            "a/9",
            "a/b",
            "a/b/c",
            "a/empty",
            "a.txt",
            "other",
            "other/x",
            "z",
        ]
        assert [(entry.path, entry.is_directory) for entry in files.walk(fs, "a/b")] == [
            ("a/b", True),
            ("a/b/c", False),
        ]
        assert [entry.path for entry in files.walk(fs, "z")] == ["z"]
        with pytest.raises(NotFound):
            list(files.walk(fs, "none"))

    # Digests

    def test_equal_contents_have_equal_digests(self, files: Files, fs: Filesystem, write: Write) -> None:
        for top in ("one", "two"):
            write(f"{top}/a", b"same")
            write(f"{top}/sub/b", b"")
        assert files.digest(fs, "one/a") == files.digest(fs, "two/a") == hashlib.sha256(b"same").hexdigest()
        assert files.digest(fs, "one") == files.digest(fs, "two")
        assert files.digest(fs, "one") != files.digest(fs, "one/sub")
        with pytest.raises(NotFound):
            files.digest(fs, "three")

    @pytest.mark.parametrize(
        "change",
        [
            {"a": b"other"},
            {"A": b"1", "a": None},
            {"sub/b": b"1", "sub/c": None},
            {"new": b""},
            {"sub/d/e": b""},
            {"a": b"", "sub/c": b"1"},
            {"sub/c": None},
            {"ab": b"1", "a": None},
        ],
    )
    def test_a_directory_that_differs_has_another_digest(
        self, files: Files, fs: Filesystem, write: Write, change: dict[str, bytes | None]
    ) -> None:
        for path, content in (("a", b"1"), ("sub/c", b"")):
            write(path, content)
        before = files.digest(fs, "")
        for path, changed in change.items():
            if changed is None:
                files.remove(fs, path)
            else:
                write(path, changed)
        assert files.digest(fs, "") != before

    def test_an_empty_directory_counts(self, files: Files, fs: Filesystem, make_directory: MakeDirectory) -> None:
        make_directory("a/b")
        one = files.digest(fs, "a")
        make_directory("a/c")
        assert files.digest(fs, "a") != one
        assert files.digest(fs, "a/b") == files.digest(fs, "a/c")

    def test_a_changed_file_has_another_digest_at_once(self, files: Files, fs: Filesystem, write: Write) -> None:
        """Changes faster than the clock of any filesystem ticks, of equal length."""
        for n in range(300):
            content = f"{n:04}".encode()
            write("d/file", content)
            assert files.digest(fs, "d/file") == hashlib.sha256(content).hexdigest()

    # Changing

    def test_a_way_is_made(self, files: Files, fs: Filesystem, write: Write) -> None:
        files.make_way(fs, "a/b/out")
        assert files.entry(fs, "a/b").is_directory
        with pytest.raises(NotFound):
            files.entry(fs, "a/b/out")
        write("a/b/out", b"old")
        write("a/b/beside", b"kept")
        files.make_way(fs, "a/b/out")
        assert [entry.path for entry in files.walk(fs, "a")] == ["a", "a/b", "a/b/beside"]
        write("a/b/out/deep/er", b"old")
        files.make_way(fs, "a/b/out")
        assert [entry.path for entry in files.walk(fs, "a")] == ["a", "a/b", "a/b/beside"]
        files.make_way(fs, "top")
        with pytest.raises(Invalid):
            files.make_way(fs, "a/b/beside/below")
        assert files.read(fs, "a/b/beside", 10) == b"kept"

    def test_removing(self, files: Files, fs: Filesystem, write: Write) -> None:
        for path in ("a/b/c", "a/b/d/e", "a/x", "ab"):
            write(path, b"1")
        files.remove(fs, "a/b")
        files.remove(fs, "a/b")
        files.remove(fs, "none/none/none")
        assert [entry.path for entry in files.walk(fs, "")] == ["", "a", "a/x", "ab"]
        files.remove(fs, "ab")
        assert [entry.path for entry in files.walk(fs, "")] == ["", "a", "a/x"]

    # What is refused

    @pytest.mark.parametrize("path", OUTSIDE)
    def test_no_path_leads_out(self, files: Files, fs: Filesystem, write: Write, path: str) -> None:
        write("a/x", b"1")
        for refused in (
            lambda: files.read(fs, path, 10),
            lambda: files.read_range(fs, path, 0, 10),
            lambda: files.entry(fs, path),
            lambda: list(files.walk(fs, path)),
            lambda: files.digest(fs, path),
            lambda: files.make_way(fs, path),
            lambda: files.remove(fs, path),
        ):
            with pytest.raises(Invalid) as caught:
                refused()
            assert caught.value.details == {"field": "path"}
        assert files.read(fs, "a/x", 10) == b"1"

    @pytest.mark.parametrize("path", ["", ".", "./", "././"])
    def test_the_root_stays(self, files: Files, fs: Filesystem, write: Write, path: str) -> None:
        write("x", b"1")
        with pytest.raises(Invalid):
            files.make_way(fs, path)
        with pytest.raises(Invalid):
            files.remove(fs, path)
        assert files.read(fs, "x", 10) == b"1"

    def test_a_filesystem_of_another_type_is_refused(self, files: Files) -> None:
        bucket = samples.filesystem(type="s3", sub_path="bucket")
        for refused in (
            lambda: files.read(bucket, "x", 10),
            lambda: files.digest(bucket, "x"),
            lambda: list(files.walk(bucket, "")),
            lambda: files.make_way(bucket, "x"),
            lambda: files.remove(bucket, "x"),
        ):
            with pytest.raises(Invalid, match="s3"):
                refused()
