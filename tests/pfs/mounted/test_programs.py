"""Programs that people run on a mount, as they are: what they make there is what they make on a disk."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.pfs.mounted.places import Place
from tests.pfs.programs import await_more, finish, start

pytestmark = pytest.mark.timeout(300)

GIT = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "someone@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Something to copy: nested, with modes and times, an empty directory and an empty file."""
    chance, root = random.Random(3), tmp_path / "tree"
    for folder in ("", "one", "one/two", "empty"):
        (root / folder).mkdir()
    for number in range(12):
        path = root / ("", "one", "one/two")[number % 3] / f"file {number}"
        path.write_bytes(chance.randbytes(number * 3000))
        path.chmod(0o755 if number % 2 else 0o640)
        os.utime(path, (10**9 + number, 10**9 + number))
    return root


def looks(root: Path, *, with_times: bool) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        times = (int(status.st_mtime),) if with_times and path.is_file() else ()
        content = hashlib.blake2b(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_mode, content, *times)
    return found


def run(*argv: object, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, argv)], cwd=cwd, env=GIT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def test_copies_are_true(place: Place, tree: Path, tmp_path: Path) -> None:
    at = place.fresh()
    run("cp", "-r", tree, at / "plainly")
    assert looks(at / "plainly", with_times=False) == looks(tree, with_times=False)
    run("cp", "-a", tree, at / "with everything")
    shutil.copytree(tree, at / "by python")
    run("tar", "-C", tree, "-cf", at / "packed.tar", ".")
    (at / "unpacked").mkdir()
    run("tar", "-C", at / "unpacked", "-xpf", at / "packed.tar")
    if shutil.which("rsync"):
        run("rsync", "-a", f"{tree}/", at / "synced")
        assert run("rsync", "-ai", f"{tree}/", at / "synced") == "", "it takes what is the same for changed"
    for copy in ("with everything", "by python", "unpacked", "synced"):
        if copy != "synced" or shutil.which("rsync"):
            assert looks(at / copy, with_times=True) == looks(tree, with_times=True), copy
    run("cp", "-a", at / "unpacked", tmp_path / "back")
    assert looks(tmp_path / "back", with_times=True) == looks(tree, with_times=True)
    run("tar", "-C", at / "unpacked", "-df", at / "packed.tar")
    run("rm", "-r", at / "plainly", at / "by python")
    assert "plainly" not in os.listdir(at)


def test_a_repository_lives_on_it(on_local: Place, tree: Path) -> None:
    at = on_local.fresh() / "repository"
    run("git", "init", "-q", at)
    shutil.copytree(tree, at, dirs_exist_ok=True)
    run("git", "add", "-A", cwd=at)
    run("git", "commit", "-qm", "first", cwd=at)
    (at / "one" / "file 1").write_text("changed")
    assert run("git", "status", "--short", cwd=at) == ' M "one/file 1"\n'
    run("git", "commit", "-qam", "second", cwd=at)
    run("git", "clone", "-q", "--no-hardlinks", at, at.with_name("clone"))
    run("git", "fsck", "--strict", cwd=at.with_name("clone"))
    assert run("git", "status", "--short", cwd=at.with_name("clone")) == ""
    assert run("git", "log", "--format=%s", cwd=at.with_name("clone")) == "second\nfirst\n"


def test_a_repository_lives_on_object_storage(on_s3: Place) -> None:
    at = on_s3.fresh() / "repository"
    run("git", "init", "-q", at)
    (at / "file").write_text("content")
    run("git", "add", "-A", cwd=at)
    run("git", "commit", "-qm", "first", cwd=at)
    run("git", "fsck", "--strict", cwd=at)
    assert run("git", "status", "--short", cwd=at) == ""


def test_a_database_lives_on_it(place: Place) -> None:
    at = place.fresh() / "data.db"
    for turn in range(3):
        database = sqlite3.connect(at)
        database.execute("pragma journal_mode = delete")
        database.execute("create table if not exists lines (turn, number)")
        with database:
            database.executemany("insert into lines values (?, ?)", [(turn, number) for number in range(200)])
        with pytest.raises(sqlite3.IntegrityError), database:
            database.execute("insert into lines values (99, 99)")
            database.execute("create unique index one on lines (turn)")
        if turn == 1:
            place.mount.kill_front()
        assert database.execute("select count(*) from lines").fetchone() == ((turn + 1) * 200,)
        database.close()
    database = sqlite3.connect(at)
    assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    assert database.execute("select count(*), max(turn) from lines").fetchone() == (600, 2)
    database.close()
    assert os.listdir(at.parent) == ["data.db"]


LOADER = """
import hashlib, itertools, mmap, os, sys
steps, stop = open(sys.argv[3], "ab", buffering=0), sys.argv[4]
mnt, sums = sys.argv[1], dict(line.rsplit(" ", 1) for line in open(sys.argv[2]).read().splitlines())
names = sorted(sums)
files = {name: open(f"{mnt}/{name}", "rb", buffering=0) for name in names}

def epoch(worker, number):
    for name in names[worker::4]:
        size = os.fstat(files[name].fileno()).st_size
        if number % 2 and size:
            with mmap.mmap(files[name].fileno(), size, prot=mmap.PROT_READ) as mapped:
                content = bytes(mapped)
        else:
            content = os.pread(files[name].fileno(), size, 0)
        with open(f"{mnt}/{name}", "rb") as again:
            if again.read() != content:
                os._exit(3)
        if hashlib.blake2b(content).hexdigest() != sums[name]:
            os._exit(2)
        steps.write(b".")

for number in itertools.count():
    if number >= 2 and os.path.exists(stop):
        break
    children = []
    for worker in range(4):
        pid = os.fork()
        if not pid:
            epoch(worker, number)
            os._exit(0)
        children.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in children):
        sys.exit(f"a worker of epoch {number} read other bytes")
"""


def test_workers_that_are_forked_with_open_files(place: Place, tree: Path, tmp_path: Path) -> None:
    at = place.fresh()
    files = [path for path in sorted(tree.rglob("*")) if path.is_file()]
    with open(at / "large", "wb") as file:
        file.write(random.Random(4).randbytes(5 << 20))
    (tree / "large").write_bytes((at / "large").read_bytes())
    for path in files:
        shutil.copy(path, at)
    sums = [f"{path.name} {hashlib.blake2b(path.read_bytes()).hexdigest()}" for path in [*files, tree / "large"]]
    (tmp_path / "sums").write_text("\n".join(sums))
    stop, logs = tmp_path / "stop", [tmp_path / "log0", tmp_path / "log1"]
    with ExitStack() as started:
        loaders = [start(started, LOADER, at, tmp_path / "sums", log, stop) for log in logs]
        await_more(loaders, *logs)
        place.mount.kill_front()
        await_more(loaders, *logs)
        stop.touch()
        finish(loaders)
