"""The other programs of the storage bench: ``rclone serve s3`` for the bucket, ``rclone mount`` as the peer."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import Missing, free_ports, require_alive, running, wait_until
from bench.storage.daemons import Daemons

READY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class S3:
    """A server, and the directory in which it keeps its buckets."""

    endpoint: str
    bucket: str
    key: str
    secret: str = field(repr=False)
    directory: Path

    @property
    def kept(self) -> Path:
        """Where the objects of the bucket are files."""
        return self.directory / self.bucket


def rclone() -> str:
    """The program, from the environment of this Python or from the system."""
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    if found is None:
        raise Missing("rclone is not installed")
    return found


def rclone_version() -> str:
    told = subprocess.run([rclone(), "version"], capture_output=True, text=True, check=True, timeout=60)
    return told.stdout.split("\n", 1)[0]


@contextmanager
def serving_s3(directory: Path, bucket: str, log: Path) -> Iterator[S3]:
    """Whatever the directory holds is there as objects. Its ETags are computed before anybody is timed: the server
    reads each object for it once, and remembers."""
    (port,) = free_ports(1)
    s3 = S3(
        endpoint=f"http://127.0.0.1:{port}",
        bucket=bucket,
        key="bench",
        secret=secrets.token_hex(16),
        directory=directory,
    )
    argv = [rclone(), "serve", "s3", "--addr", f"127.0.0.1:{port}", "--dir-cache-time", "24h", str(directory)]
    environment = _environment({"RCLONE_AUTH_KEY": f'"{s3.key},{s3.secret}"'})
    with running(argv, log, environment) as process:
        wait_until(lambda: _listens(port, process, log), what="the S3 server", timeout_s=READY_S)
        listing = [rclone(), "size", f"bench:{bucket}"]
        subprocess.run(listing, env=_remote(s3), check=True, stdout=subprocess.DEVNULL, timeout=600)
        yield s3


@contextmanager
def rclone_mount(s3: S3, mountpoint: Path, cache: Path, log: Path, options: Sequence[str]) -> Iterator[Daemons]:
    mountpoint.mkdir(parents=True)
    argv = [rclone(), "mount", f"bench:{s3.bucket}", str(mountpoint), "--vfs-cache-mode", "full", *options]
    try:
        with running([*argv, "--cache-dir", str(cache)], log, _remote(s3)) as process:
            wait_until(lambda: _is_mounted(mountpoint, process, log), what="rclone mount", timeout_s=READY_S)
            yield Daemons(lambda: [process.pid])
    finally:
        unmount(mountpoint)


def unmount(mountpoint: Path) -> None:
    """Whatever is still mounted there goes, also when its daemon is gone."""
    while _is_listed(mountpoint):
        lazily = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
        subprocess.run([*lazily, str(mountpoint)], check=True, timeout=60)


def filesystem_of(path: Path) -> str:
    """Its type, by the longest mount point above it."""
    best = ("", "unknown")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ", 1)
        place = before.split()[4]
        if path.is_relative_to(place) and len(place) >= len(best[0]):
            best = (place, after.split()[0])
    return best[1]


def _is_mounted(mountpoint: Path, process: subprocess.Popen[bytes], log: Path) -> bool:
    require_alive(process, log)
    return _is_listed(mountpoint)


def _is_listed(mountpoint: Path) -> bool:
    """By the kernel's table: asking the mount itself could hang with its daemon."""
    return any(line.split()[4] == str(mountpoint) for line in Path("/proc/self/mountinfo").read_text().splitlines())


def _listens(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    require_alive(process, log)
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False  # not yet
    return True


def _remote(s3: S3) -> Mapping[str, str]:
    return _environment(
        {
            "RCLONE_CONFIG_BENCH_TYPE": "s3",
            "RCLONE_CONFIG_BENCH_PROVIDER": "Rclone",
            "RCLONE_CONFIG_BENCH_ENDPOINT": s3.endpoint,
            "RCLONE_CONFIG_BENCH_ACCESS_KEY_ID": s3.key,
            "RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY": s3.secret,
        }
    )


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Ours and the given, without a configuration that somebody may have at home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RCLONE_")}
    return {**kept, "RCLONE_CONFIG": os.devnull, **settings}
