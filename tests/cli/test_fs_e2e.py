"""``paddleflow fs`` against a real server, real storages and, where there is FUSE, real mounts."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import fsspec
import pytest

from paddleflow import Client
from paddleflow.files.spec import PaddleFlowFileSystem
from tests.e2e.servers import Server
from tests.objects.proxy import FaultProxy, First
from tests.objects.servers import S3Server, start_rclone_s3
from tests.programs import started
from tests.waiting import DEADLINE_S, wait_for

MIB = 1 << 20

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@dataclass
class Shell:
    """A user with a home of their own: configuration, cache and mounts are below it."""

    home: Path
    port: int
    state: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir()
        self.config = self.home / "paddleflow.ini"
        self.config.write_text(
            "[user]\nname = root\npassword = paddleflow\n"
            f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {self.port}\n"
        )
        self.env = {**os.environ, "HOME": str(self.home), "PADDLEFLOW_PF_CONFIG": str(self.config)}
        self.env.pop("XDG_CACHE_HOME", None)
        self.env["XDG_STATE_HOME"] = str(self.state)

    def start(self, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
        return started([sys.executable, "-m", "paddleflow", *words], cwd=self.home, env=self.env)

    def __call__(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "paddleflow", *words],
            cwd=self.home,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def ok(self, *words: str) -> str:
        code, out, err = self(*words)
        assert code == 0, out + err
        return out

    def client(self) -> Client:
        return Client.from_config(self.config)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server") / "state").wait_ready()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    directory = tmp_path_factory.mktemp("s3")
    (directory / "bucket").mkdir()
    running = start_rclone_s3(directory)
    yield running
    running.stop()


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Iterator[Shell]:
    # Sockets have short names, and the paths of tests are long.
    with TemporaryDirectory(prefix="pf-") as state:
        yield Shell(tmp_path / "home", server.port, Path(state))


@pytest.fixture
def name(tmp_path: Path) -> str:
    return "fs" + re.sub(r"\W", "", tmp_path.name)[-20:]


@pytest.fixture
def local(shell: Shell, tmp_path: Path, name: str) -> str:
    data = tmp_path / "data"
    data.mkdir()
    assert shell.ok("fs", "create", name, f"local://{data}") == f"fs[{name}] create success\n"
    return name


@pytest.fixture
def bucket(shell: Shell, s3: S3Server, tmp_path: Path, name: str) -> str:
    return on_s3(shell, s3, tmp_path, name)


def on_s3(shell: Shell, s3: S3Server, tmp_path: Path, name: str, **more: str) -> str:
    """A filesystem in the bucket, where nobody else's is."""
    keys = tmp_path / "keys.json"
    properties = s3.properties("bucket", **more)
    del properties["bucket"]
    keys.write_text(json.dumps(properties))
    shell.ok("fs", "create", f"{name}s3", f"s3://bucket/{name}", "--properties", str(keys))
    return f"{name}s3"


def a_tree(top: Path) -> dict[str, bytes]:
    content = {"a": b"hello\n", "d/b": os.urandom(100_000), "d/large": os.urandom(9 * MIB + 1)}
    for path, data in content.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(data)
    return content


def contents(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["local", "bucket"])
def test_files_without_a_mount(shell: Shell, kind: str, request: pytest.FixtureRequest) -> None:
    fs = request.getfixturevalue(kind)
    content = a_tree(shell.home / "tree")
    assert shell.ok("fs", "cp", "-r", "tree", f"{fs}:/set").startswith("copy success, 3 files, 9.1 MiB in ")
    assert shell.ok("fs", "ls", f"{fs}:/set") == "a\nd/\n"
    assert shell.ok("fs", "ls", "-R", fs).split() == ["/set/", "/set/a", "/set/d/", "/set/d/b", "/set/d/large"]
    assert shell.ok("fs", "ls", "-l", f"{fs}:/set/a").split()[1] == "6"
    listed = json.loads(shell.ok("--output", "json", "fs", "ls", f"{fs}:/set"))
    assert [(one["path"], one["kind"]) for one in listed] == [("/set/a", "file"), ("/set/d", "directory")]
    assert shell.ok("fs", "cat", f"{fs}:/set/a", f"{fs}:/set/a") == "hello\nhello\n"
    assert shell.ok("fs", "warmup", f"{fs}:/set").startswith(f"{fs} warmup success, 3 files, 9.1 MiB in ")
    shell.ok("fs", "cp", "-r", f"{fs}:/set", "down")
    assert contents(shell.home / "down") == content
    assert shell.ok("fs", "evict", f"{fs}:/set").startswith(f"{fs}:/set evict success, 9.1 MiB freed")
    assert shell.ok("fs", "mkdir", "-p", f"{fs}:/new/deep") == f"{fs}:/new/deep make success\n"
    assert shell.ok("fs", "mv", f"{fs}:/set/a", f"{fs}:/new/deep") == "move success\n"
    assert shell.ok("fs", "cat", f"{fs}:/new/deep/a") == "hello\n"
    assert shell("fs", "rm", f"{fs}:/set")[0] == 1
    assert shell.ok("fs", "rm", "-r", f"{fs}:/set", f"{fs}:/new").count("remove success") == 2
    assert shell.ok("fs", "ls", fs) == ""
    code, _, err = shell("fs", "cat", f"{fs}:/none")
    assert code == 5
    assert err.startswith("error: ")
    assert "/none" in err
    assert shell("fs", "ls", "nosuchfs")[0] == 5
    assert "no mount found" in shell.ok("fs", "mounts", fs), "what was opened was given back"
    shell.ok("fs", "delete", fs)


class OnePart(FaultProxy):
    """Of an object named ``big`` it gives one part, and keeps the others back until it is told to go on."""

    def __init__(self, upstream_port: int) -> None:
        super().__init__(upstream_port)
        self.go_on = threading.Event()
        self.plan("GET", *[First(self._keep_back)] * 1000)

    def _keep_back(self) -> None:
        if sum(method == "GET" and target.endswith("/big") for method, target in self.seen) > 1:
            self.go_on.wait()

    def close(self) -> None:
        self.go_on.set()
        super().close()


@pytest.fixture
def slow_s3(s3: S3Server) -> Iterator[OnePart]:
    proxy = OnePart(s3.port)
    yield proxy
    proxy.close()


def test_ctrl_c_in_a_copy_leaves_no_half_file(
    shell: Shell, s3: S3Server, slow_s3: OnePart, tmp_path: Path, name: str
) -> None:
    bucket = on_s3(shell, s3, tmp_path, name, endpoint=slow_s3.endpoint)
    with (shell.home / "big").open("wb") as file:
        file.truncate(150 * MIB)
    shell.ok("fs", "cp", "big", f"{bucket}:/big")
    shell.ok("fs", "evict", bucket)
    down = shell.home / "down"
    down.mkdir()
    with shell.start("fs", "cp", f"{bucket}:/big", "down/") as copy:
        wait_for(lambda: copy.poll() is not None or any(down.iterdir()), "the copy began")
        copy.send_signal(signal.SIGINT)
        slow_s3.go_on.set()
        out, err = copy.communicate(timeout=DEADLINE_S)
    assert copy.returncode == 130, out + err
    assert "Traceback" not in err
    left = [(path.name, path.stat().st_size) for path in down.iterdir()]
    assert left in ([], [("big", 150 * MIB)]), "nothing, or all of it if it was done just then"


def test_secrets_are_not_shown(shell: Shell, s3: S3Server, bucket: str, server: Server) -> None:
    shown = shell.ok("fs", "show", bucket) + shell.ok("fs", "list") + shell.ok("fs", "ls", bucket)
    assert "******" in shown
    assert s3.secret_key not in shown + server.log_text()


def test_links(shell: Shell, local: str, bucket: str, s3: S3Server, tmp_path: Path, name: str) -> None:
    shell.ok("fs", "mkdir", f"{local}:/sets")
    (shell.home / "f").write_text("from the bucket\n")
    shell.ok("fs", "cp", "f", f"{bucket}:/f")
    link = ("fs", "link", local, "/sets/more", f"s3://bucket/{name}", "--properties", str(tmp_path / "keys.json"))
    assert shell.ok(*link) == f"fs[{local}] create link success\n"
    assert shell.ok("fs", "ls", f"{local}:/sets/more") == "f\n"
    assert shell.ok("fs", "cat", f"{local}:/sets/more/f") == "from the bucket\n"
    assert "/sets/more" in shell.ok("fs", "listlink", local)
    assert "******" in shell.ok("fs", "showlink", local, "/sets/more")
    code, _, err = shell("fs", "rm", "-r", f"{local}:/sets")
    assert code == 1
    assert "unlink it first" in err
    assert shell.ok("fs", "unlink", local, "/sets/more") == f"fs[{local}] delete link success\n"
    assert shell("fs", "showlink", local, "/sets/more")[0] != 0
    assert shell.ok("fs", "ls", f"{bucket}:/") == "f\n"


def test_cache_configuration(shell: Shell, local: str, tmp_path: Path) -> None:
    place = tmp_path / "mycache"
    assert shell.ok("fs", "createfscache", local, "-o", f"cacheDir={place}") == "create fs cache success\n"
    assert str(place) in shell.ok("fs", "getfscache", local)
    (shell.home / "f").write_text("x")
    shell.ok("fs", "cp", "f", f"{local}:/f")
    shell.ok("fs", "warmup", local)
    assert any(place.rglob("*")), "the cache is where it was told to be"
    assert "cache config delete success" in shell.ok("fs", "deletefscache", local)
    assert shell("fs", "getfscache", local)[0] == 5


def test_snapshots(shell: Shell, local: str) -> None:
    (shell.home / "f").write_text("before\n")
    shell.ok("fs", "cp", "f", f"{local}:/set/f")
    made = shell.ok("fs", "snapshot", "create", local, "-n", "monday", "--copy", "--wait")
    (snapshot,) = re.findall(r"^snapshot\[(.+)\] create success$", made, re.MULTILINE)
    (shell.home / "f").write_text("after\n")
    shell.ok("fs", "cp", "f", f"{local}:/set/f")
    shell.ok("fs", "cp", "f", f"{local}:/set/g")
    assert shell.ok("fs", "ls", "--snapshot", snapshot, f"{local}:/set") == "f\n"
    assert shell.ok("fs", "cat", "--snapshot", snapshot, f"{local}:/set/f") == "before\n"
    assert shell.ok("fs", "cat", f"{local}:/set/f") == "after\n"
    code, _, _ = shell("fs", "cp", "--snapshot", snapshot, "f", f"{local}:/set/f")
    assert code != 0, "a snapshot is only read"
    assert snapshot in shell.ok("fs", "snapshot", "list", local)
    assert "ready" in shell.ok("fs", "snapshot", "show", local, snapshot)
    shell.ok("fs", "snapshot", "delete", local, snapshot)


def test_the_client_and_fsspec(shell: Shell, local: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(shell.home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    fsspec.register_implementation("paddleflow", PaddleFlowFileSystem, clobber=True)
    with shell.client() as client:
        with client.fs.open(local, "/a.csv", "w") as file:
            file.write("x,y\n1,2\n")
        assert [one.name for one in client.fs.ls(local)] == ["a.csv"]
        with pytest.raises(FileNotFoundError):
            client.fs.open("nosuchfs", "/a")
    options = {"config": str(shell.config)}
    with fsspec.open(f"paddleflow://{local}/a.csv", "r", **options) as file:
        assert file.read() == "x,y\n1,2\n"
    fs, _ = fsspec.core.url_to_fs(f"paddleflow://{local}/a.csv", **options)
    assert local in fs.ls("", detail=False)
    assert b"paddleflow\x00" not in pickle.dumps(fs)
    with get_context("spawn").Pool(2) as pool:
        assert pool.starmap(_read_there, [(fs, f"{local}/a.csv")] * 4) == [b"x,y\n1,2\n"] * 4
    with fs.open(f"{local}/b/c.csv", "wb") as file:
        file.write(b"1")
    assert fs.find(local) == [f"{local}/a.csv", f"{local}/b/c.csv"]
    fs.close()
    PaddleFlowFileSystem.clear_instance_cache()


def _read_there(fs: PaddleFlowFileSystem, path: str) -> bytes:
    data: bytes = fs.cat_file(path)
    fs.close()
    return data


@pytest.fixture
def mountpoint(tmp_path: Path) -> Iterator[Path]:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("this machine has no /dev/fuse for this user")
    place = tmp_path / "mnt"
    place.mkdir()
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


def test_a_mount(shell: Shell, bucket: str, mountpoint: Path) -> None:
    content = a_tree(shell.home / "tree")
    shell.ok("fs", "cp", "-r", "tree", f"{bucket}:/set")
    mounted = shell.ok("fs", "mount", bucket, str(mountpoint), "-o", "meta-ttl=1s")
    assert mounted.splitlines()[-1] == "mount success"
    assert re.search(r"^passthrough: (yes|no)$", mounted, re.MULTILINE)
    read = subprocess.run(["cat", mountpoint / "set" / "d" / "large"], capture_output=True, timeout=60, check=True)
    assert read.stdout == content["d/large"]
    subprocess.run(["cp", mountpoint / "set" / "a", mountpoint / "copy"], timeout=60, check=True)
    assert shell.ok("fs", "cat", f"{bucket}:/copy") == "hello\n"
    assert str(mountpoint) in shell.ok("fs", "mounts", bucket)
    assert "mountpoint" in shell.ok("fs", "stats", str(mountpoint))
    assert len(shell.ok("fs", "stats", str(mountpoint), "--interval", "0.1", "-l", "2").splitlines()) == 3
    code, _, err = shell("fs", "delete", bucket)
    assert code != 0, "a filesystem that is mounted stays"
    assert "mounted" in err
    assert shell.ok("fs", "warmup", str(mountpoint), "-t", "meta").startswith("warmup success, ")
    assert shell.ok("fs", "umount", str(mountpoint)) == "umount success\n"
    assert list(mountpoint.iterdir()) == []
    assert shell("fs", "umount", str(mountpoint))[0] != 0
    assert "no mount found" in shell.ok("fs", "mounts", bucket)


def test_a_mount_in_the_foreground(shell: Shell, local: str, mountpoint: Path) -> None:
    with shell.start("fs", "mount", local, str(mountpoint), "--foreground", "-o", "ro") as process:
        assert process.stdout is not None
        assert "mount success\n" in process.stdout, "it says so before it ends"
        assert os.path.ismount(mountpoint)
        process.terminate()
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
        assert out == "umount success\n"
        assert not os.path.ismount(mountpoint)


def test_bad_mounts_say_why(shell: Shell, local: str, tmp_path: Path) -> None:
    code, _, err = shell("fs", "mount", local, str(tmp_path / "nowhere"))
    assert code == 1
    assert "make it first" in err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    code, _, err = shell("fs", "mount", local, str(tmp_path / "full"))
    assert code == 1
    assert "full is not empty" in err
    assert "InternalError" not in err
    code, _, err = shell("fs", "mount", local, "/proc")
    assert code == 1
    assert "/proc is a mount point already" in err
    (tmp_path / "empty").mkdir()
    for line in (("mount", "nosuchfs", str(tmp_path / "empty")), ("cat", "nosuchfs:/a"), ("ls", "nosuchfs:/a")):
        code, _, err = shell("fs", *line)
        assert code == 5
        assert "there is no filesystem 'nosuchfs'; paddleflow fs list shows" in err
    code, _, err = shell("fs", "stats", str(tmp_path))
    assert code == 5
