"""What every object store must do. A subclass gives ``make_store``; what its kind cannot hold it names, and then it is
tested that it says so.

``make_store()`` gives a new, empty store each time (a new prefix, a new directory); hypothesis takes many.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, Stale
from paddleflow.ports.objects import ObjectEntry, ObjectStore
from tests.objects.model import compare_with_model

MIB = 1 << 20

ODD_NAMES = (
    "with space",
    " leading",
    "trailing ",
    "trailing.",
    ".hidden",
    "-dash",
    "~tilde",
    "ünïcödé-名前-🙂",
    "e\u0301 decomposed",
    "\u00e9 composed",
    'it\'s "quoted"',
    "hash#tag",
    "per%25cent%",
    "what?",
    "plus+plus",
    "a&b=c",
    "semi;colon:comma,",
    "back\\slash",
    "star*[x]{y}",
    "$HOME `x` |<>",
    "@at!^()",
    "x" * 255,
    "é" * 127,
)
CONTROL_NAMES = ("new\nline", "carriage\rreturn", "tab\there", "bell\x07", "escape\x1b[0m")
NOT_UTF8 = os.fsdecode(b"latin-\xe9")

BAD_KEYS = ("/a", "a/", "a//b", ".", "..", "a/..", "a/./b", "../a", "a\0b", "/")


@contextmanager
def source_of(content: bytes) -> Iterator[int]:
    fd = os.memfd_create("source")
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        yield fd
    finally:
        os.close(fd)


def put(store: ObjectStore, key: str, content: bytes, *, mode: int | None = None) -> ObjectEntry:
    with source_of(content) as fd:
        return store.write(key, fd, len(content), mode=mode)


def get(store: ObjectStore, key: str) -> bytes:
    return store.read(key, 0, store.stat(key).size)


def listed(store: ObjectStore, key: str = "") -> dict[str, ObjectEntry]:
    entries = [entry for page in store.list(key) for entry in page]
    keys = [entry.key for entry in entries]
    assert len(set(keys)) == len(keys), "an entry was listed twice"
    return {entry.key: entry for entry in entries}


def walked(store: ObjectStore, key: str = "") -> dict[str, ObjectEntry]:
    entries = [entry for page in store.walk(key) for entry in page]
    keys = [entry.key for entry in entries]
    assert len(set(keys)) == len(keys), "an entry was walked twice"
    return {entry.key: entry for entry in entries}


class ObjectStoreContract:
    refused_names: ClassVar[tuple[str, ...]] = ()
    """Names this kind of store cannot hold, and refuses with Invalid."""
    lost_names: ClassVar[tuple[str, ...]] = ()
    """Names the server we test with cannot hold, though others of its kind can: nothing is promised."""
    examples: ClassVar[int] = 40
    """How many random sequences are tried; fewer where each call goes over a wire."""
    many: ClassVar[int] = 2_500
    """Entries in a directory that is listed: more than one page."""

    @pytest.fixture
    def make_store(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def store(self, make_store: Callable[[], ObjectStore]) -> ObjectStore:
        return make_store()

    # Looking

    def test_a_new_store_answers_and_is_empty(self, store: ObjectStore) -> None:
        store.check()
        root = store.stat("")
        assert root.key == "" and root.is_directory and not root.version
        assert listed(store) == {} and walked(store) == {}

    def test_a_file_is_described_the_same_by_whoever_is_asked(self, store: ObjectStore) -> None:
        store.make_directory("d")
        second = 10**9
        before = time.time_ns()
        written = put(store, "d/f", b"12345")
        after = time.time_ns()
        assert (written.key, written.size, written.is_directory) == ("d/f", 5, False)
        assert written.version
        assert store.stat("d/f").version == written.version
        for found in (store.stat("d/f"), listed(store, "d")["d/f"], walked(store)["d/f"]):
            assert (found.key, found.size, found.version) == ("d/f", 5, written.version)
            # Some tell whole seconds, and some of a write when it was answered, not when it was made.
            for told in (written.modified_ns, found.modified_ns):
                assert before - 2 * second < told < after + 2 * second
            assert found.link_target is None

    def test_directories_are_seen_from_above_and_from_inside(self, store: ObjectStore) -> None:
        store.make_directory("a")
        store.make_directory("a/b")
        store.make_directory("a/empty")
        put(store, "a/b/c", b"x")
        put(store, "a/z", b"")
        assert {key: entry.is_directory for key, entry in listed(store).items()} == {"a": True}
        expected = {"a/b": True, "a/empty": True, "a/z": False}
        assert {key: entry.is_directory for key, entry in listed(store, "a").items()} == expected
        assert listed(store, "a/empty") == {}
        below = {"a": True, "a/b": True, "a/b/c": False, "a/empty": True, "a/z": False}
        assert {key: entry.is_directory for key, entry in walked(store).items()} == below
        assert set(walked(store, "a/b")) == {"a/b/c"}
        for key in ("a", "a/b", "a/empty"):
            assert store.stat(key).is_directory and not store.stat(key).version

    def test_a_name_is_not_confused_with_one_that_begins_alike(self, store: ObjectStore) -> None:
        store.make_directory("ab")
        put(store, "ab/x", b"1")
        put(store, "ab.txt", b"2")
        put(store, "abc", b"3")
        with pytest.raises(NotFound):
            store.stat("a")
        with pytest.raises(NotFound):
            listed(store, "a")
        assert set(listed(store, "ab")) == {"ab/x"}
        store.rename("ab", "moved")
        assert set(walked(store)) == {"moved", "moved/x", "ab.txt", "abc"}

    def test_what_is_not_there_is_not_found(self, store: ObjectStore) -> None:
        put(store, "file", b"x")
        for key in ("none", "none/none", "file/below", "file/below/that"):
            for call in (
                lambda key=key: store.stat(key),
                lambda key=key: listed(store, key),
                lambda key=key: walked(store, key),
                lambda key=key: store.read(key, 0, 1),
                lambda key=key: store.delete(key),
                lambda key=key: store.remove_directory(key),
                lambda key=key: store.rename(key, "other"),
                lambda key=key: store.copy(key, "other"),
            ):
                with pytest.raises(NotFound):
                    call()
        assert set(walked(store)) == {"file"}

    def test_a_file_is_no_directory_and_the_other_way_round(self, store: ObjectStore) -> None:
        put(store, "file", b"x")
        store.make_directory("dir")
        for call in (
            lambda: listed(store, "file"),
            lambda: walked(store, "file"),
            lambda: store.remove_directory("file"),
            lambda: store.read("dir", 0, 1),
            lambda: store.read("", 0, 1),
            lambda: store.delete("dir"),
            lambda: store.copy("dir", "other"),
        ):
            with pytest.raises(Invalid):
                call()
        assert set(walked(store)) == {"dir", "file"}

    def test_illegal_keys_are_refused_by_every_call(self, store: ObjectStore) -> None:
        put(store, "file", b"x")
        for key in BAD_KEYS:
            for call in (
                lambda key=key: store.stat(key),
                lambda key=key: listed(store, key),
                lambda key=key: walked(store, key),
                lambda key=key: store.read(key, 0, 1),
                lambda key=key: put(store, key, b""),
                lambda key=key: store.delete(key),
                lambda key=key: store.make_directory(key),
                lambda key=key: store.remove_directory(key),
                lambda key=key: store.rename(key, "x"),
                lambda key=key: store.rename("file", key),
                lambda key=key: store.copy("file", key),
                lambda key=key: store.set_modes(key, mode=0o600),
                lambda key=key: store.make_link(key, "x"),
                lambda key=key: store.set_xattr(key, "user.x", b""),
            ):
                with pytest.raises(Invalid):
                    call()
        assert set(walked(store)) == {"file"}

    def test_the_root_stays(self, store: ObjectStore) -> None:
        put(store, "file", b"x")
        for call in (
            lambda: put(store, "", b""),
            lambda: store.delete(""),
            lambda: store.remove_directory(""),
            lambda: store.rename("", "x"),
            lambda: store.rename("file", ""),
            lambda: store.copy("file", ""),
        ):
            with pytest.raises(Invalid):
                call()
        with pytest.raises(Duplicate):
            store.make_directory("")

    def test_many_entries_come_in_pages_each_once(self, store: ObjectStore) -> None:
        store.make_directory("many")
        names = {f"many/{number:05}" for number in range(self.many)}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: put(store, key, key.encode()), names))
        pages = [[entry.key for entry in page] for page in store.list("many")]
        assert len(pages) > 1 and max(map(len, pages)) <= 1_000
        assert sorted(key for page in pages for key in page) == sorted(names)
        entries = listed(store, "many")
        assert all(entry.version and entry.size == 10 for entry in entries.values())
        assert entries["many/00007"].version == store.stat("many/00007").version
        assert walked(store).keys() == names | {"many"}

    def test_a_listing_may_be_left_early(self, store: ObjectStore) -> None:
        put(store, "a", b"")
        put(store, "b", b"")
        next(store.list(""))
        assert set(listed(store)) == {"a", "b"}

    # Names

    @pytest.mark.parametrize("name", [*ODD_NAMES, *CONTROL_NAMES, NOT_UTF8], ids=ascii)
    def test_odd_names(self, store: ObjectStore, name: str) -> None:
        if name in self.lost_names:
            pytest.skip("this server, not this kind of store, cannot hold such a name")
        if name in self.refused_names:
            for call in (lambda: put(store, name, b"x"), lambda: store.make_directory(name)):
                with pytest.raises(Invalid):
                    call()
            return
        put(store, "plain", b"plain")
        store.make_directory(name)
        key = f"{name}/{name}"
        written = put(store, key, name.encode(errors="surrogateescape"))
        assert get(store, key) == name.encode(errors="surrogateescape")
        assert store.stat(key).version == written.version
        assert set(listed(store)) == {name, "plain"} and listed(store)[name].is_directory
        assert listed(store, name)[key].version == written.version
        assert set(walked(store)) == {name, key, "plain"}
        store.copy(key, f"{name}/copied")
        store.rename(key, f"{name}/moved")
        assert set(listed(store, name)) == {f"{name}/copied", f"{name}/moved"}
        store.delete(f"{name}/copied")
        store.delete(f"{name}/moved")
        assert listed(store, name) == {}
        store.remove_directory(name)
        assert set(walked(store)) == {"plain"}

    def test_composed_and_decomposed_letters_are_different_names(self, store: ObjectStore) -> None:
        put(store, "e\u0301", b"two")
        put(store, "\u00e9", b"one")
        assert get(store, "e\u0301") == b"two" and get(store, "\u00e9") == b"one"
        assert set(listed(store)) == {"e\u0301", "\u00e9"}

    def test_deep_paths(self, store: ObjectStore) -> None:
        parts = [f"level-{depth}" for depth in range(40)]
        for depth in range(1, 40):
            store.make_directory("/".join(parts[:depth]))
        key = "/".join(parts)
        put(store, key, b"deep")
        assert get(store, key) == b"deep"
        assert len(walked(store)) == 40
        store.rename(parts[0], "top")
        assert get(store, "top/" + "/".join(parts[1:])) == b"deep"

    # Reading

    def test_exactly_the_bytes_that_were_asked_for(self, store: ObjectStore) -> None:
        content = os.urandom(100_000)
        version = put(store, "f", content).version
        for start, size in ((0, 0), (0, 1), (0, 100_000), (99_999, 1), (12_345, 54_321), (99_990, 100), (0, 10**9)):
            assert store.read("f", start, size) == content[start : start + size], (start, size)
            assert store.read("f", start, size, version=version) == content[start : start + size], (start, size)
        for start in (100_000, 100_001, 2**40):
            assert store.read("f", start, 10) == b""
            assert store.read("f", start, 10, version=version) == b""
        for start, size in ((-1, 5), (0, -1)):
            with pytest.raises(Invalid):
                store.read("f", start, size)

    def test_an_empty_file(self, store: ObjectStore) -> None:
        written = put(store, "f", b"")
        assert store.stat("f").size == 0 and store.stat("f").version == written.version
        assert store.read("f", 0, 100) == b"" and store.read("f", 0, 100, version=written.version) == b""

    def test_another_version_is_refused(self, store: ObjectStore) -> None:
        old = put(store, "f", b"old content")
        new = put(store, "f", b"new content")
        assert new.version != old.version
        assert store.read("f", 4, 7, version=new.version) == b"content"
        with pytest.raises(Stale):
            store.read("f", 0, 3, version=old.version)
        put(store, "f", b"")
        with pytest.raises(Stale):
            store.read("f", 0, 3, version=new.version)
        store.delete("f")
        with pytest.raises((Stale, NotFound)):
            store.read("f", 0, 3, version=new.version)

    # Writing

    def test_each_content_has_a_version_of_its_own(self, store: ObjectStore) -> None:
        versions = [put(store, "f", b"%06d" % number).version for number in range(12)]
        assert len(set(versions)) == 12
        assert store.stat("f").version == versions[-1]

    @pytest.mark.parametrize("size", [8 * MIB, 8 * MIB + 1, 16 * MIB, 37 * MIB + 11], ids=str)
    def test_large_files_arrive_whole(self, store: ObjectStore, size: int) -> None:
        block = os.urandom(MIB + 7)
        content = (block * (size // len(block) + 1))[:size]
        written = put(store, "large", content)
        assert (written.size, store.stat("large").size) == (size, size)
        assert store.stat("large").version == written.version
        assert store.read("large", 0, size, version=written.version) == content
        assert store.read("large", size - 1000, 5000) == content[-1000:]
        assert listed(store)["large"].version == written.version

    def test_only_the_given_size_is_written_from_its_beginning(self, store: ObjectStore) -> None:
        with source_of(b"0123456789") as fd:
            os.lseek(fd, 7, os.SEEK_SET)
            store.write("f", fd, 4)
            assert os.lseek(fd, 0, os.SEEK_CUR) == 7
        assert get(store, "f") == b"0123"

    def test_a_source_that_ends_early_changes_nothing(self, store: ObjectStore) -> None:
        put(store, "f", b"as it was")
        for size in (11, 20 * MIB):
            with source_of(b"0123456789") as fd, pytest.raises(Exception, match="ended"):
                store.write("f", fd, size)
        assert get(store, "f") == b"as it was"
        assert set(walked(store)) == {"f"}

    def test_writing_where_no_directory_is(self, store: ObjectStore) -> None:
        put(store, "file", b"x")
        store.make_directory("dir")
        if store.traits.real_directories:
            with pytest.raises(NotFound):
                put(store, "none/f", b"")
            with pytest.raises((NotFound, Invalid)):
                put(store, "file/f", b"")
            with pytest.raises(Invalid):
                put(store, "dir", b"")
            assert set(walked(store)) == {"dir", "file"}
        else:
            put(store, "none/of/f", b"")
            assert set(walked(store)) == {"dir", "file", "none", "none/of", "none/of/f"}

    # Removing, moving, copying

    def test_a_directory_outlives_what_was_in_it(self, store: ObjectStore) -> None:
        store.make_directory("d")
        put(store, "d/f", b"")
        put(store, "d/g", b"")
        store.delete("d/f")
        assert set(walked(store)) == {"d", "d/g"}
        store.rename("d/g", "g")
        assert set(walked(store)) == {"d", "g"}
        assert listed(store, "d") == {} and store.stat("d").is_directory

    def test_directories_are_made_once_and_removed_when_empty(self, store: ObjectStore) -> None:
        put(store, "file", b"")
        store.make_directory("d")
        for key in ("d", "file"):
            with pytest.raises(Duplicate):
                store.make_directory(key)
        with pytest.raises(NotFound):
            store.make_directory("none/d")
        with pytest.raises((NotFound, Invalid)):
            store.make_directory("file/d")
        put(store, "d/f", b"")
        with pytest.raises(InUse):
            store.remove_directory("d")
        store.delete("d/f")
        store.remove_directory("d")
        assert set(walked(store)) == {"file"}

    def test_a_file_is_moved_over_another(self, store: ObjectStore) -> None:
        put(store, "a", b"from a")
        put(store, "b", b"from b")
        version = store.stat("b").version
        store.rename("a", "b")
        assert get(store, "b") == b"from a" and store.stat("b").version != version
        store.rename("b", "b")
        assert set(walked(store)) == {"b"}
        store.rename("b", "new")
        assert set(walked(store)) == {"new"} and get(store, "new") == b"from a"

    def test_a_directory_is_moved_with_all_below_it(self, store: ObjectStore) -> None:
        for key in ("d", "d/e", "d/e/empty", "target", "elsewhere"):
            store.make_directory(key)
        contents = {f"d/{number}": str(number).encode() for number in range(20)} | {"d/e/f": b"deep"}
        for key, content in contents.items():
            put(store, key, content)
        store.rename("d", "target")
        moved = {"target" + key[1:]: content for key, content in contents.items()}
        assert set(walked(store)) == {"elsewhere", "target", "target/e", "target/e/empty", *moved}
        store.rename("target", "elsewhere/t")
        for key, content in moved.items():
            assert get(store, f"elsewhere/t{key[6:]}") == content

    def test_what_cannot_be_moved(self, store: ObjectStore) -> None:
        for key in ("d", "full"):
            store.make_directory(key)
        put(store, "d/f", b"1")
        put(store, "full/g", b"2")
        put(store, "file", b"3")
        before = set(walked(store))
        for source, target, error in (
            ("d", "full", InUse),
            ("d", "file", Invalid),
            ("file", "full", Invalid),
            ("d", "d/below", Invalid),
            ("full/g", "full", Invalid),
            ("none", "x", NotFound),
        ):
            with pytest.raises(error):
                store.rename(source, target)
        if store.traits.real_directories:
            with pytest.raises(NotFound):
                store.rename("file", "none/x")
        assert set(walked(store)) == before and get(store, "d/f") == b"1" and get(store, "file") == b"3"

    def test_a_copy_is_an_object_of_its_own(self, store: ObjectStore) -> None:
        store.make_directory("d")
        put(store, "a", b"content")
        copied = store.copy("a", "d/b")
        assert (copied.key, copied.size, copied.version) == ("d/b", 7, store.stat("d/b").version)
        put(store, "a", b"changed")
        assert get(store, "d/b") == b"content"
        store.copy("a", "d/b")
        assert get(store, "d/b") == b"changed"

    # What some stores hold

    def test_modes_and_times(self, store: ObjectStore) -> None:
        put(store, "f", b"x", mode=0o640)
        store.make_directory("d", mode=0o750)
        if not store.traits.holds_modes:
            assert store.stat("f").mode is None and store.stat("f").uid is None
            for change in ({"mode": 0o600}, {"uid": 1}, {"modified_ns": 10**18}):
                with pytest.raises(Invalid):
                    store.set_modes("f", **change)
            return
        assert store.stat("f").mode == 0o640 and store.stat("d").mode == 0o750
        assert listed(store)["f"].mode == 0o640
        store.set_modes("f", mode=0o604, modified_ns=1_234_567_890_000_000_000)
        assert (store.stat("f").mode, store.stat("f").modified_ns) == (0o604, 1_234_567_890_000_000_000)
        put(store, "f", b"another")
        assert store.stat("f").mode == 0o604, "writing anew keeps the permissions"
        put(store, "f", b"another", mode=0o600)
        assert store.stat("f").mode == 0o600
        mine = store.stat("f")
        assert mine.uid is not None and mine.gid is not None
        store.set_modes("f", uid=mine.uid, gid=mine.gid)
        store.set_modes("d", mode=0o700)
        assert store.stat("d").mode == 0o700
        with pytest.raises(NotFound):
            store.set_modes("none", mode=0o600)

    def test_links(self, store: ObjectStore) -> None:
        put(store, "f", b"x")
        if not store.traits.holds_links:
            with pytest.raises(Invalid):
                store.make_link("l", "f")
            assert set(listed(store)) == {"f"}
            return
        for target in ("f", "../outside", "/nowhere/at/all", "no where 名"):
            store.make_link("l", target)
            for found in (store.stat("l"), listed(store)["l"], walked(store)["l"]):
                assert found.link_target == target and not found.is_directory
            with pytest.raises(Duplicate):
                store.make_link("l", "f")
            with pytest.raises(Invalid):
                store.read("l", 0, 1)
            with pytest.raises(NotFound):
                store.stat("l/below")
            store.rename("l", "m")
            assert store.stat("m").link_target == target
            store.delete("m")
        assert get(store, "f") == b"x" and set(listed(store)) == {"f"}

    def test_extended_attributes(self, store: ObjectStore) -> None:
        put(store, "f", b"x")
        store.make_directory("d")
        if not store.traits.holds_xattrs:
            with pytest.raises(Invalid):
                store.set_xattr("f", "user.a", b"1")
            with pytest.raises(Invalid):
                store.xattrs("f")
            with pytest.raises(Invalid):
                store.remove_xattr("f", "user.a")
            return
        for key in ("f", "d"):
            assert store.xattrs(key) == {}
            store.set_xattr(key, "user.a", b"1")
            store.set_xattr(key, "user.a", b"\0\xff")
            store.set_xattr(key, "user.b", b"")
            assert store.xattrs(key) == {"user.a": b"\0\xff", "user.b": b""}
            store.remove_xattr(key, "user.b")
            with pytest.raises(NotFound):
                store.remove_xattr(key, "user.b")
        put(store, "f", b"written anew")
        assert store.xattrs("f") == {"user.a": b"\0\xff"}, "writing anew keeps them"
        with pytest.raises(NotFound):
            store.xattrs("none")

    def test_usage(self, store: ObjectStore) -> None:
        usage = store.usage()
        assert usage is None or 0 <= usage.free <= usage.total

    # Several at a time

    def test_readers_see_the_old_or_the_new_content(self, store: ObjectStore) -> None:
        sizes = {b"a": 300_000, b"b": 300_000, b"c": 100_001}
        put(store, "f", b"a" * sizes[b"a"])
        done = threading.Event()

        def write_on() -> None:
            try:
                for letter in (b"b", b"c", b"a") * 5:
                    put(store, "f", letter * sizes[letter])
            finally:
                done.set()

        def read_on() -> int:
            reads = 0
            while not done.is_set() or not reads:
                content = store.read("f", 0, 10**6)
                letter = content[:1]
                assert content == letter * sizes[letter]
                found = store.stat("f")
                try:
                    part = store.read("f", 50_000, 50_000, version=found.version)
                except Stale:
                    continue
                assert len(part) == 50_000 and len(set(part)) == 1
                reads += 1
            return reads

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read_on) for _ in range(3)]
            writer = pool.submit(write_on)
            writer.result()
            assert all(reader.result() for reader in readers)

    def test_of_many_writers_one_wins_whole(self, store: ObjectStore) -> None:
        with ThreadPoolExecutor(6) as pool:
            written = list(
                pool.map(lambda letter: put(store, "f", letter * 200_000), [b"a", b"b", b"c", b"d", b"e", b"f"])
            )
        content = get(store, "f")
        assert len(content) == 200_000 and len(set(content)) == 1
        assert store.stat("f").version in {entry.version for entry in written}
        assert set(walked(store)) == {"f"}

    def test_threads_work_side_by_side(self, store: ObjectStore) -> None:
        def life(number: int) -> None:
            store.make_directory(f"d{number}")
            for step in range(5):
                put(store, f"d{number}/{step}", b"%d" % step)
            store.rename(f"d{number}/0", f"d{number}/moved")
            assert get(store, f"d{number}/moved") == b"0"
            for step in range(1, 5):
                store.delete(f"d{number}/{step}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(life, range(8)))
        assert set(walked(store)) == {f"d{number}" for number in range(8)} | {f"d{number}/moved" for number in range(8)}

    def test_only_one_makes_a_directory(self, store: ObjectStore) -> None:
        if not store.traits.real_directories:
            pytest.skip("where a directory is only a prefix, two who make it at once both succeed")

        def make(_: int) -> bool:
            try:
                store.make_directory("d")
            except Duplicate:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(make, range(8))) == 1

    # Everything

    def test_it_behaves_like_a_dictionary(self, make_store: Callable[[], ObjectStore]) -> None:
        compare_with_model(make_store, put, self.examples)
