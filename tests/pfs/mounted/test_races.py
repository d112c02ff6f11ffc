"""Many programs at the same few files, through the mount and in the store behind it: nobody ever gets an error that has
no reason, and nobody reads a mixture of two versions."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.objects.servers import S3Server
from tests.pfs.mounted.places import is_whole, stamped
from tests.pfs.mounts import mounted
from tests.pfs.programs import await_steps, finish, start

ROUNDS = int(os.environ.get("PADDLEFLOW_RACE_ROUNDS", "5"))
USERS, THREADS = 3, 4
PATIENCE_S = 300.0
"""For one of many who all wait for one slow server."""

pytestmark = pytest.mark.timeout(600 + 60 * ROUNDS)

USER = """
import errno, os, random, sys, threading
from tests.pfs.mounted.places import is_whole, stamped

mnt, seed, rounds, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
steps = open(sys.argv[5], "ab", buffering=0)
names = ["a", "b", "c"] * 4 + ["large"]
failed = []

def read(path, chance):
    with open(path, "rb", buffering=0) as file:
        content = b"".join(iter(lambda: file.read(chance.choice([4096, 1 << 20])), b""))
    if not is_whole(content):
        failed.append(f"{path} is a mixture: {content[:40]!r} {len(content)}")

def act(path, number, chance):
    size = chance.randrange(1, 30_000) if not path.endswith("large") else chance.randrange((4 << 20) + 1, 5 << 20)
    what = chance.random()
    if what < 0.7:
        read(path, chance)
    elif what < 0.9:
        fresh = f"{path}.{number}"
        with open(fresh, "wb") as file:
            file.write(stamped(number, size))
        os.rename(fresh, path)
    elif what < 0.95:
        os.stat(path), os.listdir(mnt)
    else:
        os.unlink(path)
        with open(f"{path}.{number}", "wb") as file:
            file.write(stamped(number, size))
        os.rename(f"{path}.{number}", path)

def run(thread):
    chance = random.Random(seed * 100 + thread)
    for turn in range(rounds):
        number = (seed * 100 + thread) * 1_000_000 + turn
        path = f"{mnt}/{chance.choice(names)}"
        try:
            act(path, number, chance)
        except FileNotFoundError:
            pass  # somebody else deleted it in between
        except OSError as error:
            # A large file, fetched as it is read, that is replaced meanwhile cannot be had any more: that is told.
            if error.errno != errno.ESTALE or not path.endswith("large"):
                failed.append(f"{path}: {error!r}")
        steps.write(b".")

threads = [threading.Thread(target=run, args=[thread]) for thread in range(count)]
[each.start() for each in threads]
[each.join() for each in threads]
if failed:
    sys.exit("\\n".join(failed[:10]))
"""


@pytest.mark.parametrize("passthrough", [True, False], ids=["passthrough", "without"])
def test_reading_and_replacing_at_once(moto: S3Server, tmp_path: Path, passthrough: bool) -> None:
    plan = StorePlan(type="s3", address=moto.endpoint, root=f"/{tmp_path.name}", properties=moto.properties("mounted"))
    with (
        ExitStack() as started,
        closing(plan.open()) as behind,
        mounted(tmp_path, plan, passthrough=passthrough, meta_ttl=0.2) as mount,
    ):
        for number, name in enumerate(("a", "b", "c", "large")):
            (mount.path / name).write_bytes(stamped(number, 10_000 if name != "large" else 4_500_000))
        log, source = tmp_path / "log", tmp_path / "source"
        users = [start(started, USER, mount.path, seed, ROUNDS, THREADS, log) for seed in range(USERS)]
        for turn in range(2 * USERS * THREADS * ROUNDS):
            # Two for each thing they do: as many as can be, and no more when they are slow.
            await_steps(users, turn // 2, log, deadline_s=PATIENCE_S)
            source.write_bytes(stamped(10**9 + turn, 1000 + turn * 37 % 20_000))
            with source.open("rb") as file:
                behind.write("abc"[turn % 3], file.fileno(), source.stat().st_size)
            if turn % 20 == 19:
                mount.kill_front()
        finish(users)
        for name in os.listdir(mount.path):
            assert is_whole((mount.path / name).read_bytes()), name


REWRITER = """
import os, sys
mnt, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
steps = open(sys.argv[4], "ab", buffering=0)
for turn in range(rounds):
    with open(f"{mnt}/shared", "r+b") as file:
        file.seek(seed * 8)
        file.write(b"%d%07d" % (seed, turn))
    with open(f"{mnt}/shared", "rb") as file:
        seen = file.read()
    if seen[seed * 8 : seed * 8 + 8] != b"%d%07d" % (seed, turn):
        sys.exit(f"turn {turn}: what I wrote and closed is not there: {seen}")
    if len(seen) != 32:
        sys.exit(f"turn {turn}: {len(seen)} bytes")
    if turn % 5 == 0:
        os.truncate(f"{mnt}/own{seed}", turn)
        if os.stat(f"{mnt}/own{seed}").st_size != turn:
            sys.exit("truncated, and not so long")
    steps.write(b".")
"""


def test_writers_of_one_file_do_not_lose_each_others_bytes(moto: S3Server, tmp_path: Path) -> None:
    plan = StorePlan(type="s3", address=moto.endpoint, root=f"/{tmp_path.name}", properties=moto.properties("mounted"))
    with ExitStack() as started, mounted(tmp_path, plan) as mount:
        (mount.path / "shared").write_bytes(b"." * 32)
        for seed in range(4):
            (mount.path / f"own{seed}").write_bytes(b"x")
        log = tmp_path / "log"
        users = [start(started, REWRITER, mount.path, seed, ROUNDS, log) for seed in range(4)]
        await_steps(users, ROUNDS, log, deadline_s=PATIENCE_S)
        mount.kill_front()
        finish(users)
        wanted = b"".join(b"%d%07d" % (seed, ROUNDS - 1) for seed in range(4))
        assert (mount.path / "shared").read_bytes() == wanted
    with mounted(tmp_path, plan) as mount:
        assert (mount.path / "shared").read_bytes() == wanted
