"""The whole of a mount as an ordinary user: fusermount3 mounts, three processes without privileges serve, and a killed
front is replaced all the same."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest

import paddleflow
from tests.pfs.fuse.test_ordinary_user import AS_USER, USER, in_namespace
from tests.pfs.mounts import Watch

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="root opens /dev/fuse for the ordinary user of this test"),
    pytest.mark.skipif(shutil.which("fusermount3") is None, reason="fusermount3 is not installed (package fuse3)"),
]

LIBRARIES = os.pathsep.join([str(Path(paddleflow.__file__).parents[1]), sysconfig.get_path("purelib")])
SCRIPT = """
import json, os, signal, sys
from paddleflow.pfs.mounting import end_mount, figures_of, start_mount, state_dir_of
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.plan import MountPlan
from paddleflow.wiring.stores import StorePlan, cache_levels

place = sys.argv[1]
mnt, base = f"{place}/mnt", f"{place}/states"
plan = MountPlan(
    name="mine", mountpoint=mnt, state_dir=state_dir_of(base, mnt),
    options=MountOptions(uid=os.getuid(), gid=os.getgid()), levels=cache_levels(f"{place}/cache"),
    stores=(StorePlan(type="local", root=f"{place}/store").to_json(),),
    front_argv=(sys.executable, "-m", "paddleflow.pfs.front"),
    worker_argv=(sys.executable, "-m", "paddleflow.wiring.storage_worker"),
)
report = start_mount(plan)
with open(f"{mnt}/old", "rb") as old, open(f"{mnt}/new", "wb") as new:
    new.write(b"before")
    new.flush()
    first = figures_of(base, mnt)
    os.kill(first["front"], signal.SIGKILL)
    content = old.read()
    new.write(b" and after")
os.mkdir(f"{mnt}/dir")
os.rename(f"{mnt}/new", f"{mnt}/dir/new")
second = figures_of(base, mnt)
end_mount(base, mnt)
print(json.dumps({
    "uid": os.getuid(), "way": report.way, "passthrough": report.passthrough, "why": report.why_not,
    "content": len(content), "generations": [first["generation"], second["generation"]],
    "still_mounted": os.path.ismount(mnt),
}))
"""


def python_for_users() -> str | None:
    """An interpreter, and our libraries, where an ordinary user may go."""
    for python in ("/usr/bin/python3",):
        look = [*AS_USER, python, "-c", "import xxhash, paddleflow.wiring.stores, paddleflow.pfs.front"]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": LIBRARIES}
        if not subprocess.run(look, check=False, capture_output=True, env=environment, cwd="/").returncode:
            return python
    return None


def test_an_ordinary_user_mounts_reads_writes_and_survives() -> None:
    python = python_for_users()
    if python is None:
        pytest.skip("this user's interpreter or libraries lie where an ordinary user may not go")
    place = Path(tempfile.mkdtemp(prefix="pf-user-"))  # below the system's own, where everybody may go
    try:
        for name in ("mnt", "store", "cache", "states"):
            (place / name).mkdir()
        (place / "store/old").write_bytes(b"o" * 200_000)
        for path in (place, *place.rglob("*")):
            os.chown(path, USER, USER)
        done = subprocess.run(
            [*in_namespace(place, "0666"), python, "-c", SCRIPT, str(place)],
            check=False,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": LIBRARIES, "HOME": str(place)},
            cwd="/",
        )
        assert done.returncode == 0, done.stderr.decode()
        told = json.loads(done.stdout)
        assert told["uid"] == USER
        assert told["way"] == "fusermount3"
        assert not told["passthrough"]
        assert "root" in told["why"]
        assert told["content"] == 200_000
        assert told["generations"] == [0, 1]
        assert not told["still_mounted"]
        assert (place / "store/dir/new").read_bytes() == b"before and after"
    finally:
        end_what_is_left(place)
        shutil.rmtree(place, ignore_errors=True)


def end_what_is_left(place: Path) -> None:
    """A mount in a namespace of its own, which only its processes can be told from: it ends with them."""
    for description in place.glob("states/*/mount.json"):
        with contextlib.suppress(OSError), Watch(json.loads(description.read_text())["pid"]) as holder:
            if f"{place}/" in Path(f"/proc/{holder.pid}/mounts").read_text():
                holder.kill_with_children()
