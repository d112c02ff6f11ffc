"""``paddleflow fs`` against recorded answers: tables, properties, places, options."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from paddleflow.cli.commands.fs_bench import Load
from paddleflow.cli.commands.fs_mount import options_of
from paddleflow.cli.commands.fs_stats import flat, rising, shown, spelt_rate, with_ratio
from paddleflow.cli.output import on_terminal
from paddleflow.cli.places import is_local, split_place
from paddleflow.cli.sizes import spelt_size
from paddleflow.cli.transfers import _Lines, show_summary, summary
from paddleflow.sdk.file_access import Transferred
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import RecordedServer, ok
from tests.sdk.test_filesystems import LINK, MOUNT, SNAPSHOT


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("data", ("data", "/")),
        ("data:", ("data", "/")),
        ("data:/a/b", ("data", "/a/b")),
        ("data:a", ("data", "/a")),
    ],
)
def test_places(text: str, place: tuple[str, str]) -> None:
    assert split_place(text) == place
    assert not is_local(text)


def test_what_is_no_place_is_told_how_to_write_one() -> None:
    with pytest.raises(click.BadParameter, match="FSNAME:/path"):
        split_place("/mnt/data")
    assert all(map(is_local, ["/mnt", ".", "./data", "a/b", "~/x", "a/b:c"]))


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (100 * 1024, "100 KiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert spelt_size(size) == text


def test_summaries() -> None:
    assert summary(Transferred(files=1, bytes=10), 0.26) == "1 file, 10 B in 0.3s"
    assert summary(Transferred(files=1200, bytes=5 << 20), 75) == "1200 files, 5.0 MiB in 1m15s"


@pytest.mark.parametrize(
    ("items", "options"),
    [
        ([], {}),
        (["ro"], {"ro": ""}),
        (["ro,allow-other", "cache-size=1G"], {"ro": "", "allow-other": "", "cache-size": "1G"}),
        (["cache-dir=/a,b/c=d"], {"cache-dir": "/a,b/c=d"}),
        (["cache-dir=/a,ro"], {"cache-dir": "/a", "ro": ""}),
    ],
)
def test_options_as_mount_takes_them(items: list[str], options: dict[str, str]) -> None:
    assert options_of(items) == options


def test_tables(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/link/data", ok({"linkList": [LINK]}))
    for line in ("fs listlink data", "fs showlink data /more"):
        _, out, _ = paddleflow("--output", "json", *line.split())
        assert list(json.loads(out)[0]) == [
            "name",
            "owner",
            "type",
            "fs path",
            "server address",
            "sub path",
            "properties",
        ]
    server.on("GET", "/fsCache/data", ok({"fsName": "data", "username": "root", "cacheDir": "/c", "blockSize": 4096}))
    _, out, _ = paddleflow("fs", "getfscache", "data")
    assert out.splitlines()[1].split("|")[1:-1] == [
        " fsname   ",
        " owner   ",
        " cache dir   ",
        " meta driver   ",
        "   block size ",
    ]
    server.on("GET", "/fs/data/snapshot", ok({"snapshotList": [SNAPSHOT]}))
    assert "| snap-1" in paddleflow("fs", "snapshot", "list", "data")[1]
    server.on("GET", "/fs/data/snapshot/snap-1", ok(SNAPSHOT))
    assert "| ready" in paddleflow("fs", "snapshot", "show", "data", "snap-1")[1]
    server.on("GET", "/fsMount", ok({"mountList": [MOUNT]}))
    assert "| /mnt" in paddleflow("fs", "mounts", "data")[1]


def test_stats_of_nodes(server: RecordedServer, paddleflow: Paddleflow) -> None:
    node = {"node": "n1", "bytes": 10, "files": 1, "hits": 3, "misses": 1, "hitBytes": 30, "missBytes": 10}
    server.on("GET", "/fsCache/stats/data", ok({"nodes": [node, {**node, "hitBytes": 0, "missBytes": 0}]}))
    _, out, _ = paddleflow("--output", "json", "fs", "stats", "data")
    assert [one["hit ratio"] for one in json.loads(out)] == ["75.0%", None]


def test_a_snapshot_is_waited_for(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("POST", "/fs/data/snapshot", ok({"snapshotID": "snap-1"}))
    server.on("GET", "/fs/data/snapshot/snap-1", ok({**SNAPSHOT, "state": "creating"}), ok(SNAPSHOT))
    assert paddleflow("fs", "snapshot", "create", "data", "--wait") == (0, "snapshot[snap-1] create success\n", "")
    server.on("GET", "/fs/data/snapshot/snap-1", ok({**SNAPSHOT, "state": "failed", "message": "disk full"}))
    code, out, err = paddleflow("fs", "snapshot", "create", "data", "--wait")
    assert (code, out) == (1, "")
    assert "disk full" in err


def test_secrets_from_a_file_or_from_standard_input(
    server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("POST", "/fs", ok({"fsName": "d", "fsID": "fs-root-d"}))
    server.on("POST", "/link", ok())
    keys = tmp_path / "keys.json"
    keys.write_text('{"accessKey": "a", "secretKey": "hunter2"}')
    assert paddleflow("fs", "create", "d", "s3://b", "--properties", str(keys), "-o", "accessKey=b")[0] == 0
    assert server.asked[-1].body["properties"] == {"accessKey": "b", "secretKey": "hunter2"}
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"secretKey": "hunter3"}'))
    assert paddleflow("fs", "link", "d", "/p", "s3://b", "--properties", "-")[0] == 0
    assert server.asked[-1].body["properties"] == {"secretKey": "hunter3"}
    for wrong, said in (("secret hunter2", "is not JSON"), ('["hunter2"]', "one object of texts")):
        keys.write_text(wrong)
        code, _, err = paddleflow("fs", "create", "d", "s3://b", "--properties", str(keys))
        assert code == 2
        assert said in err
        assert "hunter2" not in err
    assert paddleflow("fs", "create", "d", "s3://b", "--properties", str(tmp_path / "none"))[0] == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fs rm data:/", "is the root of the filesystem"),
        ("fs rm data", "is the root of the filesystem"),
        ("fs mkdir data:/.", "is the root of the filesystem"),
        ("fs ls /mnt", "should be FSNAME:/path"),
        ("fs warmup", "name what to warm up"),
        ("fs warmup data -t meta", "name a path in one"),
        ("fs cp data:/a", "Missing argument 'TARGET'"),
        ("fs mount data /mnt -o =1", "should be K or K=V"),
        ("fs create d s3://b -o accessKey", "should be KEY=VALUE"),
        ("fs bench /no/such/place", "does not exist"),
        ("fs stats data --interval 1", "'data' is none; write its directory"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(paddleflow: Paddleflow, line: str, said: str) -> None:
    code, out, err = paddleflow(*line.split())
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


class RecordedFiles:
    """Stands where ``client.fs`` does; what a mount is told is all that is looked at here."""

    def __init__(self) -> None:
        self.mounted: list[Any] = []

    def of(self, username: str | None = None, snapshot: str | None = None) -> RecordedFiles:
        self.mounted.append(username)
        return self

    def mount(self, *given: Any) -> SimpleNamespace:
        self.mounted.append(given)
        return SimpleNamespace(how="by root", passthrough=False, reasons=("the kernel is too old",), pid=1)

    def close(self) -> None:
        pass


def test_mount_says_how(
    server: RecordedServer, paddleflow: Paddleflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = RecordedFiles()
    monkeypatch.setattr("paddleflow.sdk.file_access.FileCalls.fs", files)
    line = ("fs", "mount", "data", str(tmp_path), "-o", "ro,block-size=4096", "-u", "alice")
    code, out, err = paddleflow(*line)
    assert code == 0
    assert out.splitlines()[1:] == ["passthrough: no", "  the kernel is too old", "mount success"]
    assert err == "note: block-size has no effect: the cache keeps pieces of a size of its own\n"
    assert files.mounted == ["alice", ("data", tmp_path, {"ro": "", "block-size": "4096"})]
    _, out, err = paddleflow("--output", "json", "fs", "mount", "data", str(tmp_path))
    assert json.loads(out) == {
        "fs": "data",
        "mountpoint": str(tmp_path),
        "how": "by root",
        "passthrough": False,
        "reasons": ["the kernel is too old"],
        "pid": 1,
    }
    code, _, err = paddleflow("fs", "mount", "data", str(tmp_path), "-o", "nonsense")
    assert code == 1
    assert "option[nonsense] is unknown; there are ro, " in err


def test_bench_measures_a_directory(paddleflow: Paddleflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIP_DROP_CACHES", "true")
    line = f"fs bench {tmp_path} --big-file-size 2 --small-file-count 3 --small-file-size 4 -p 2"
    code, out, _ = paddleflow("--output", "json", *line.split())
    assert code == 0
    rows = json.loads(out)
    assert [row["ITEM"] for row in rows] == [
        "Write big file",
        "Read big file",
        "Read from cache",
        "Write small file",
        "Read small file",
        "Read small file from cache",
        "Stat file",
    ]
    assert all(set(row) == {"ITEM", "VALUE", "COST"} for row in rows)
    assert [path.name for path in tmp_path.iterdir() if "bench" in path.name] == []
    assert Load(1, 2, 3, 4, 5).threads == 5


def test_figures_of_a_mount() -> None:
    told = {"cache": {"hits": 3, "hit_bytes": 2048, "files": 7}, "passthrough": True, "name": "fs"}
    assert flat(told) == {"cache.hits": 3, "cache.hit_bytes": 2048, "cache.files": 7, "passthrough": True, "name": "fs"}
    counted = {
        "requests": {"open": 2, "read": 3},
        "counters": {"hits": 1, "hit_bytes": 3, "miss_bytes": 1, "unsaved": 0},
    }
    assert rising(counted) == {"requests": 5, "hits": 1, "misses": 0, "hit_bytes": 3, "miss_bytes": 1}
    assert with_ratio(counted) == {**counted, "hit_ratio": 0.75}
    assert with_ratio({"counters": {"hit_bytes": 0, "miss_bytes": 0}}).keys() == {"counters"}
    assert (shown("hit_ratio", 0.75), shown("options.file_mode", 0o644), shown("x", 5)) == ("75.0%", "0644", 5)
    assert spelt_rate("cache.hit_bytes", 2048) == "2.0 KiB/s"
    assert spelt_rate("cache.hits", 12.4) == "12/s"


def test_a_mount_goes_before_a_filesystem_of_its_name(
    server: RecordedServer, paddleflow: Paddleflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def mount_stats(mountpoint: str) -> dict[str, Any]:
        asked.append(mountpoint)
        return {"requests": {"open": len(asked)}, "counters": {"hit_bytes": 3, "miss_bytes": 1}}

    monkeypatch.setattr(
        "paddleflow.cli.commands.fs_stats.wired_mounts", lambda: SimpleNamespace(mount_stats=mount_stats)
    )
    monkeypatch.chdir("/")
    _, out, _ = paddleflow("fs", "stats", "proc")  # a mount point of every Linux
    assert asked == ["/proc"]
    assert re.search(r"^hit_ratio +75.0%$", out, re.MULTILINE)
    _, out, _ = paddleflow("--output", "json", "fs", "stats", "proc", "--interval", "0.1", "-l", "2")
    assert [json.loads(line)["requests"] > 0 for line in out.splitlines()] == [True, True]
    server.on("GET", "/fsCache/stats/usr", ok({"nodes": []}))
    assert "no node has told" in paddleflow("fs", "stats", "usr")[1]  # a directory, and no mount point


def test_every_command_has_a_place_in_the_help(paddleflow: Paddleflow) -> None:
    from paddleflow.cli.commands.fs import fs

    sections = [name for names in fs.sections.values() for name in names]
    assert sorted(sections) == sorted(fs.commands)
    _, out, _ = paddleflow("fs", "--help")
    assert [line for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")] == [
        "Options:",
        *(f"{heading}:" for heading in fs.sections),
    ]
    assert all(re.search(rf"^  {name} ", out, re.MULTILINE) for name in fs.commands)


def test_figures_of_a_copy_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_summary("json", "copy success", Transferred(files=2, bytes=10), 1.23456)
    assert json.loads(capsys.readouterr().out) == {"files": 2, "bytes": 10, "seconds": 1.235}
    show_summary("table", "copy success", Transferred(files=2, bytes=10), 1.2)
    assert capsys.readouterr().out == "copy success, 2 files, 10 B in 1.2s\n"


def test_odd_names_do_not_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    assert on_terminal("schön 1.txt") == "schön 1.txt"
    assert on_terminal("a\nb\x1b[31m") == r"a\nb\x1b[31m"
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: False))
    assert on_terminal("a\nb") == "a\nb"


def test_warming_through_a_mount(paddleflow: Paddleflow, tmp_path: Path) -> None:
    (tmp_path / "tree" / "d").mkdir(parents=True)
    for name in ("a", "d/b"):
        (tmp_path / "tree" / name).write_bytes(b"12345")
    listing = tmp_path / "list"
    listing.write_text(f"{tmp_path}/tree/d\n\n")
    code, out, _ = paddleflow("fs", "warmup", f"{tmp_path}/tree")
    assert code == 0
    assert out.startswith("warmup success, 2 files, 10 B in ")
    assert paddleflow("fs", "warmup", "-f", str(listing), "-t", "meta")[1].startswith("warmup success, 1 file, 0 B in ")
    assert paddleflow("fs", "warmup", f"{tmp_path}/none")[0] == 5


_WATCHED = """
from paddleflow.cli.transfers import shown_progress
from paddleflow.sdk.file_access import Transferred
with shown_progress("copying") as tell:
    tell(Transferred(files=1, bytes=1 << 20, total_files=2, total_bytes=2 << 20, path="x"))
print("done")
"""


def test_a_bar_on_a_terminal_and_nothing_elsewhere() -> None:
    quiet = subprocess.run([sys.executable, "-c", _WATCHED], capture_output=True, text=True, check=True)
    assert (quiet.stdout, quiet.stderr) == ("done\n", "")
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    watched = subprocess.run(
        [sys.executable, "-c", _WATCHED], stdout=subprocess.PIPE, stderr=theirs, text=True, check=True, env=env
    )
    os.close(theirs)
    assert watched.stdout == "done\n", "standard output is the command's own"
    assert b"copying 1/2 files" in os.read(ours, 1 << 16)
    os.close(ours)


def test_a_long_copy_tells_now_and_then_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _Lines("copying")
    lines.tell(Transferred(files=1, total_files=9))
    lines._next = 0.0
    lines.tell(Transferred(files=2, bytes=1 << 20, total_files=9, total_bytes=1 << 30))
    lines.tell(Transferred(files=3, total_files=9))
    assert capsys.readouterr().err == "copying 2 of 9 files, 1.0 MiB of 1.0 GiB\n"
