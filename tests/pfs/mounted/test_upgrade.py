"""Changing the program under a mount that is in use, and what remains when the holder itself dies."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from paddleflow.pfs.fuse import device
from tests.pfs.mounted.places import local_store, stamped
from tests.pfs.mounts import mounted
from tests.pfs.programs import await_more, finish, start
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(300)

USER = """
import os, sys
from tests.pfs.mounted.places import is_whole, stamped
mnt, stop, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = open(sys.argv[4], "ab", buffering=0)
turn = 0
log = open(f"{mnt}/log{seed}", "ab", buffering=0)
while not os.path.exists(stop):
    with open(f"{mnt}/new{seed}", "wb") as file:
        file.write(stamped(turn, 20_000))
    os.rename(f"{mnt}/new{seed}", f"{mnt}/f{seed}")
    for name in (f"f{seed}", "large"):
        with open(f"{mnt}/{name}", "rb") as file:
            if not is_whole(file.read()):
                sys.exit(f"{name} has other bytes")
    os.mkdir(f"{mnt}/d{seed}"), os.rmdir(f"{mnt}/d{seed}")
    log.write(b"%d\\n" % turn)
    turn += 1
    steps.write(b".")
log.close()
with open(f"{mnt}/log{seed}", "rb") as file:
    if file.read() != b"".join(b"%d\\n" % line for line in range(turn)):
        sys.exit("the log is not what was written")
"""


def test_a_new_front_takes_over_while_files_are_used(tmp_path: Path) -> None:
    with ExitStack() as started, mounted(tmp_path, local_store(tmp_path)) as mount:
        (mount.path / "large").write_bytes(stamped(1, 6 << 20))
        stop, logs = tmp_path / "stop", [tmp_path / f"log{seed}" for seed in range(3)]
        users = [start(started, USER, mount.path, stop, seed, log) for seed, log in enumerate(logs)]
        for _ in range(4):
            await_more(users, *logs)
            before = mount.figures()
            os.kill(mount.report.pid, signal.SIGHUP)
            wait_for(lambda before=before: mount.figures()["generation"] > before["generation"])  # type: ignore[misc]
            assert mount.figures()["front"] != before["front"]
        await_more(users, *logs)
        stop.touch()
        finish(users)
        assert "ERROR front" not in mount.log()


def test_without_its_holder_a_mount_is_gone_and_nothing_that_was_closed(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    with mounted(tmp_path, store) as mount:
        content = stamped(1, 100_000)
        (mount.path / "file").write_bytes(content)
        reader = open(mount.path / "file", "rb", buffering=0)  # noqa: SIM115 - it outlives the mount
        written = os.open(mount.path / "unfinished", os.O_WRONLY | os.O_CREAT)
        os.write(written, b"not closed")
        front = mount.figures()["front"]
        os.kill(mount.report.pid, signal.SIGKILL)
        os.kill(front, signal.SIGKILL)
        wait_for(lambda: is_gone(mount.path))
        assert reader.read() == content, "the kernel reads it by itself"
        with pytest.raises(OSError, match="not connected"):
            os.close(written)
        reader.close()
        device.detach_broken(str(mount.path))
        assert (tmp_path / "store" / "file").read_bytes() == content
        with mounted(tmp_path, store) as again:
            assert (again.path / "file").read_bytes() == content
            wait_for(lambda: (again.path / "unfinished").read_bytes() == b"not closed")


def is_gone(path: Path) -> bool:
    try:
        os.listdir(path)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False
