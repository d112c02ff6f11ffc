"""The second act: a bucket becomes a directory, training from it twice is training from the disk, and nothing kills it.

Starts an S3 server of its own with a small data set, makes it a filesystem of the demo's platform and mounts it, all by
the commands a user would type. Reads everything twice beside a local directory, then kills the mount's process in front
of a reader. Where this machine cannot mount, or has no S3 server, it says so and the demo goes on.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
BUCKET = "pictures"
SMALL_FILES = 2000
SMALL_SIZE = 100 * 1024
LARGE_SIZE = 256 << 20
MIB = 1 << 20
PATIENCE_S = 120


class CannotShow(Exception):
    """Something this act needs is not there; the sentence says what."""


@dataclass(frozen=True, slots=True)
class Epoch:
    files: int
    bytes: int
    seconds: float
    longest_s: float
    errors: list[str]

    @property
    def rate(self) -> float:
        return self.bytes / MIB / self.seconds


class CommandLine:
    """``paddleflow``, as the demo's administrator."""

    def __init__(self, directory: Path, port: int, user: str, password: str) -> None:
        self._config = directory / "storage.ini"
        server = f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {port}\n"
        self._config.write_text(f"[user]\nname = {user}\npassword = {password}\n{server}")
        self._config.chmod(0o600)
        self._environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state")}

    def run(self, *words: str) -> str:
        argv = [sys.executable, "-m", "paddleflow", "--pf_config", str(self._config), *words]
        done = subprocess.run(
            argv, env=self._environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        if done.returncode:
            raise CannotShow(f"paddleflow {' '.join(words[:2])}: {(done.stderr or done.stdout).strip()}")
        return done.stdout.strip()


def play(console: Console, directory: Path, port: int, password: str = "paddleflow") -> bool:
    """Whether everything was as it should be; also when it could not be shown."""
    console.print("\n[bold]A bucket becomes a directory[/]\n")
    folder = directory / "storage"
    folder.mkdir()
    try:
        return act(console, folder, CommandLine(folder, port, "root", password))
    except CannotShow as reason:
        console.print(f"This act is left out here: {reason}", highlight=False)
        return True


def act(console: Console, folder: Path, command_line: CommandLine) -> bool:
    require_fuse()
    local, manifest = folder / "s3" / BUCKET, folder / "manifest.json"
    make_data(local, manifest)
    with s3_server(folder) as (endpoint, secret):
        properties = folder / "properties.json"
        properties.write_text(json.dumps({"endpoint": endpoint, "accessKey": "demo", "secretKey": secret}))
        command_line.run("fs", "create", BUCKET, f"s3://{BUCKET}/", "--properties", str(properties))
        with mounted(console, command_line, folder) as mountpoint:
            epochs = {
                "a local directory": read(local, manifest),
                "the mount, first epoch": read(mountpoint, manifest),
                "the mount, second epoch": read(mountpoint, manifest),
            }
            show(console, epochs)
            killed = kill_in_front_of_reader(console, command_line, mountpoint, manifest)
    return not killed.errors and not any(epoch.errors for epoch in epochs.values())


def require_fuse() -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise CannotShow("/dev/fuse is not there or not for us, and mounting needs it")


def make_data(root: Path, manifest: Path) -> None:
    """Random pictures, and one large file as a checkpoint would be."""
    block = os.urandom(MIB)
    sizes = {f"train/{number:05}.jpg": SMALL_SIZE for number in range(SMALL_FILES)} | {"checkpoint.bin": LARGE_SIZE}
    checksums = {}
    for number, (name, size) in enumerate(sizes.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = number.to_bytes(8, "little") + (block * -(-size // MIB) if size > MIB else block)[: size - 8]
        path.write_bytes(content)
        checksums[name] = zlib.crc32(content)
    manifest.write_text(json.dumps(checksums))


@contextmanager
def s3_server(folder: Path) -> Iterator[tuple[str, str]]:
    """Its endpoint, and the secret of the user ``demo``."""
    program = Path(sys.executable).with_name("rclone")
    if not program.exists():
        raise CannotShow("rclone, which is the S3 server of this act, is not installed")
    secret = secrets.token_hex(16)
    environment = {**os.environ, "RCLONE_CONFIG": os.devnull, "RCLONE_AUTH_KEY": f'"demo,{secret}"'}
    log = folder / "s3.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program), "serve", "s3", "--addr", "127.0.0.1:0", str(folder / "s3")],
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield endpoint_of(process, log), secret
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def endpoint_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """It chose a free port and says which."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        _, found, rest = log.read_text().partition("[http://")
        if found:
            return "http://" + rest.split("/", 1)[0]
        time.sleep(0.02)
    raise CannotShow(f"the S3 server did not start: {log.read_text()[-500:]}")


@contextmanager
def mounted(console: Console, command_line: CommandLine, folder: Path) -> Iterator[Path]:
    mountpoint = folder / "mnt"
    mountpoint.mkdir()
    cache = folder / "cache"
    console.print(f"$ paddleflow fs mount {BUCKET} {mountpoint.name}", highlight=False)
    told = command_line.run("fs", "mount", BUCKET, str(mountpoint), "-o", f"cache-dir={cache}", "-o", "ro")
    console.print(told, highlight=False, soft_wrap=True)
    try:
        yield mountpoint
    finally:
        command_line.run("fs", "umount", str(mountpoint))


def read(directory: Path, manifest: Path) -> Epoch:
    return finished(reader(directory, manifest))


def reader(directory: Path, manifest: Path) -> subprocess.Popen[str]:
    """A process of its own, as a training is."""
    argv = [sys.executable, str(HERE / "read_epoch.py"), str(directory), str(manifest), secrets.token_hex(4)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> Epoch:
    try:
        told, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return Epoch(files=0, bytes=0, seconds=PATIENCE_S, longest_s=PATIENCE_S, errors=["the reader hung"])
    return Epoch(**json.loads(told.splitlines()[-1]))


def show(console: Console, epochs: dict[str, Epoch]) -> None:
    table = Table("one epoch from", "files", "MiB/s", "files/s", "errors")
    for name, epoch in epochs.items():
        speed = f"{epoch.files / epoch.seconds:,.0f}"
        table.add_row(name, f"{epoch.files:,}", f"{epoch.rate:,.0f}", speed, str(len(epoch.errors)))
    console.print(table)
    local, first, second = epochs.values()
    console.print(
        f"The second epoch ran at {second.rate / local.rate:.0%} of the local directory's speed"
        f" and {second.rate / first.rate:.1f} times as fast as the first, which came from S3.\n",
        soft_wrap=True,
    )


def kill_in_front_of_reader(console: Console, command_line: CommandLine, mountpoint: Path, manifest: Path) -> Epoch:
    pid = front_of(command_line, mountpoint)
    process = reader(mountpoint, manifest)
    assert process.stdout is not None
    process.stdout.readline()  # it is in the middle of its epoch now
    os.kill(pid, signal.SIGKILL)
    epoch = finished(process)
    console.print(
        f"[bold]kill -9 {pid}[/], the process behind the mount, in the middle of an epoch: "
        f"{epoch.files:,} files read, {len(epoch.errors)} errors, the longest wait was {epoch.longest_s:.2f} s"
        f" with a new process {front_of(command_line, mountpoint)}",
        highlight=False,
        soft_wrap=True,
    )
    return epoch


def front_of(command_line: CommandLine, mountpoint: Path) -> int:
    """The process that answers the kernel."""
    told = json.loads(command_line.run("--output", "json", "fs", "stats", str(mountpoint)))
    return int(told["front"])
