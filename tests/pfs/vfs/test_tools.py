"""Programs people use, on a mount of a store that holds everything and of one that holds bytes alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.objects.servers import start_rclone_s3
from tests.pfs.mounts import mounted, why_no_mounts

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())]

SCRIPT = """set -e
mkdir src; for i in 1 2 3 4 5 6 7 8; do echo line $i > src/f$i; done; chmod 755 src/f1
tar cf t.tar src; mkdir out; tar xf t.tar -C out; diff -r src out/src
cp -a src copy; diff -r src copy; test -x copy/f1
sed -i s/line/LINE/ src/f3; grep -q LINE src/f3
git init -q repo; cd repo; git config user.email a@example.com; git config user.name somebody
cp ../src/* .; git add .; git commit -qm one; git status --porcelain
echo more >> f2; git commit -qam two; git fsck --no-progress; git log --oneline | wc -l; cd ..
rm -rf src out copy repo t.tar; ls -A | wc -l
"""


def run_script(where: Path) -> str:
    done = subprocess.run(["sh", "-c", SCRIPT], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_on_a_store_that_holds_everything(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with mounted(tmp_path, StorePlan(type="local", root=str(tmp_path / "store"))) as mount:
        assert run_script(mount.path).split() == ["2", "0"]


def test_on_a_store_that_holds_bytes_alone(tmp_path: Path) -> None:
    (tmp_path / "served" / "tools").mkdir(parents=True)
    server = start_rclone_s3(tmp_path / "served")
    try:
        plan = StorePlan(type="s3", address=server.endpoint, root="/tree", properties=server.properties("tools"))
        with mounted(tmp_path, plan) as mount:
            assert run_script(mount.path).split() == ["2", "0"]
    finally:
        server.stop()
