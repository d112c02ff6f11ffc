"""Nobody who reads or writes notices that the daemon was killed, however often."""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.objects.servers import S3Server, start_rclone_s3
from tests.pfs.mounts import RealMount, mounted, why_no_mounts
from tests.pfs.programs import await_more, await_steps, finish, start, steps

KILLS = int(os.environ.get("PADDLEFLOW_KILLS", "6"))

pytestmark = [
    pytest.mark.timeout(300 + 10 * KILLS),
    pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts()),
]

SMALL, LARGE = 100_000, 24 << 20

READER = """
import hashlib, os, sys, time
mnt, log = sys.argv[1], sys.argv[2]
sums = dict(line.split() for line in open(sys.argv[3]))
steps = open(log, "ab", buffering=0)
longest = 0.0
while not os.path.exists(log + ".stop"):
    for name, wanted in sums.items():
        began = time.monotonic()
        with open(f"{mnt}/{name}", "rb", buffering=0) as file:
            digest = hashlib.blake2b(file.read()).hexdigest()
        longest = max(longest, time.monotonic() - began)
        if digest != wanted:
            sys.exit(f"{name} has other bytes")
        steps.write(b".")
open(log + ".longest", "w").write(str(longest))
"""

WRITER = """
import os, sys
mnt, log, number = sys.argv[1], sys.argv[2], sys.argv[3]
steps = open(log, "ab", buffering=0)
done = 0
while not os.path.exists(log + ".stop"):
    content = os.urandom(30_000 + done)
    path = f"{mnt}/out/{number}-{done % 20}"
    with open(path + ".tmp", "wb") as file:
        file.write(content)
    os.rename(path + ".tmp", path)
    with open(path, "rb") as file:
        if file.read() != content:
            sys.exit(f"{path} has other bytes")
    with open(f"{mnt}/out/log-{number}", "ab") as file:
        file.write(b"%08d\\n" % done)
    done += 1
    if done % 7 == 0:
        os.mkdir(f"{mnt}/out/d-{number}-{done}")
        os.rmdir(f"{mnt}/out/d-{number}-{done}")
    if done % 5 == 0:
        os.unlink(path)
    steps.write(b".")
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory):
    server = start_rclone_s3(tmp_path_factory.mktemp("buckets"))
    server.make_bucket("survival")
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3Server, request: pytest.FixtureRequest) -> StorePlan:
    return StorePlan(type="s3", address=s3.endpoint, root=f"/{request.node.name}", properties=s3.properties("survival"))


def fill(mount: RealMount, files: int) -> dict[str, str]:
    chance = random.Random(7)
    sums = {}
    for number in range(files):
        content = chance.randbytes(LARGE if number == 0 else SMALL)
        (mount.path / f"f{number}").write_bytes(content)
        sums[f"f{number}"] = hashlib.blake2b(content).hexdigest()
    return sums


@pytest.mark.parametrize("passthrough", [True, False])
def test_readers_and_writers_notice_nothing(bucket: StorePlan, tmp_path: Path, passthrough: bool) -> None:
    with ExitStack() as started, mounted(tmp_path, bucket, passthrough=passthrough) as mount:
        sums = fill(mount, 40)
        (mount.path / "out").mkdir()
        listed = tmp_path / "sums"
        listed.write_text("\n".join(f"{name} {digest}" for name, digest in sums.items()))
        logs = [tmp_path / f"log{number}" for number in range(4)]
        users = [start(started, READER, mount.path, logs[n], listed) for n in (0, 1)]
        users += [start(started, WRITER, mount.path, logs[n], n) for n in (2, 3)]
        chance = random.Random(1)
        for _ in range(KILLS):
            await_steps(users, steps(*logs) + chance.randint(1, 200), *logs)
            mount.kill_front()
        await_more(users, *logs)
        for log in logs:
            log.with_name(log.name + ".stop").touch()
        finish(users)
        for number in (2, 3):
            lines = (mount.path / f"out/log-{number}").read_bytes().split()
            assert lines == [b"%08d" % line for line in range(steps(logs[number]))]
        longest = max(float(log.with_name(log.name + ".longest").read_text()) for log in logs[:2])
        sys.stdout.write(f"{KILLS} kills, {steps(*logs[2:])} files written, longest call {longest:.2f} s\n")


def test_what_is_open_stays_open(bucket: StorePlan, tmp_path: Path) -> None:
    with mounted(tmp_path, bucket) as mount:
        sums = fill(mount, 3)
        with open(mount.path / "f1", "rb") as file, open(mount.path / "new", "w+b") as new:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            new.write(b"before")
            new.flush()
            mount.kill_front()
            assert hashlib.blake2b(mapped).hexdigest() == sums["f1"]
            assert hashlib.blake2b(file.read()).hexdigest() == sums["f1"]
            new.write(b" and after")
            new.flush()
            assert os.fstat(new.fileno()).st_size == 16
            mount.kill_front()
            mapped.close()
        assert (mount.path / "new").read_bytes() == b"before and after"


def test_a_worker_that_dies_is_replaced(bucket: StorePlan, tmp_path: Path) -> None:
    with mounted(tmp_path, bucket) as mount:
        sums = fill(mount, 12)
        for name, digest in sums.items():
            mount.kill_worker()
            assert hashlib.blake2b((mount.path / name).read_bytes()).hexdigest() == digest
            (mount.path / f"copy-{name}").write_bytes(b"x" * 1000)
        assert len(os.listdir(mount.path)) == 24
