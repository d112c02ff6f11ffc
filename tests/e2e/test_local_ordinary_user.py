"""The local runtime must not need root: the same stories, run as nobody in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import paddleflow

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
# A root lives below a directory everyone may pass; pytest's own is private to the user who runs it.
STORIES = """
import sys
from pathlib import Path
from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions
from paddleflow.domain.jobs import BindMount, Membership, Placement, TaskLaunch, TaskStatus
from paddleflow.domain.resources import Resources

base = Path(sys.argv[1])
runtime = LocalRuntime(LocalRuntimeOptions(root=base / "root"))
print("isolation:", runtime.isolation)
(base / "source").mkdir()
(base / "source" / "data.txt").write_text("shown\\n")

def run(job, script, **details):
    node = runtime.nodes()[0].name
    argv = ("/bin/sh", "-c", script)
    runtime.launch(TaskLaunch(task_id=f"{job}-worker-0", job_id=job, node=node, argv=argv, env={}, **details))
    while True:
        for report in runtime.wait_reports(30):
            if report.finished_at:
                log = runtime.read_log(job, report.task_id, 0, 10000).content.decode()
                print(job, "|", report.status.value, "|", report.message, "|", log.replace("\\n", " ").strip())
                return report

run("plain", "id -u; exit 3")
for name, target in (("beside", f"{base}/made/up"), ("top", "/pf-ordinary-user-test/storage")):
    mount = BindMount(source=str(base / "source"), target=target)
    run(name, f"cat {target}/data.txt; id -u; echo out > {target}/{name}", mounts=(mount,))
mount = BindMount(source=str(base / "source"), target="/mnt", read_only=True)
run("readonly", "cat /mnt/data.txt; echo x > /mnt/x", mounts=(mount,))
run("leftover", "setsid sleep 1000 & setsid sleep 1000 & exit 0")
eat = "exec /usr/bin/python3 -c 'x = bytearray(500_000_000)'"
run("memory", eat, limits=Resources.of(memory="128Mi"))
found = runtime.addresses("team", ["team-worker-0"], 2)["team-worker-0"]
placed = Placement(task_id="team-worker-0", role="worker", index=0, node=runtime.nodes()[0].name)
runtime.publish(Membership(job_id="team", generation=1, least=1, most=1, tasks=((placed, found),)))
run("team", 'grep -o "generation.: 1" "$PF_MEMBERSHIP_FILE"', mounts=(mount,))
runtime.remove("team")
print("left", "|", sorted(path.name for path in (base / "root" / "ports").iterdir()))
runtime.remove("plain")
"""


@pytest.fixture
def public_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="pf-user-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user; as an ordinary user every test is one"
)
def test_the_stories_as_nobody(public_directory: Path) -> None:
    shutil.copytree(Path(paddleflow.__file__).parent, public_directory / "src" / "paddleflow")
    base = public_directory / "base"
    base.mkdir()
    os.chown(base, NOBODY, NOBODY)
    answer = subprocess.run(
        [
            SYSTEM_PYTHON,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(public_directory / 'src')!r})\n{STORIES}",
            str(base),
        ],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    told = dict(line.split(" | ", 1) for line in answer.stdout.splitlines() if " | " in line)
    assert told["plain"] == "failed | exit code 3 | 65534"
    assert told["beside"] == "succeeded | exit code 0 | shown 65534"
    assert told["top"] == "succeeded | exit code 0 | shown 65534"
    assert told["readonly"].startswith("failed | exit code 2 | shown") and "Read-only" in told["readonly"]
    assert told["leftover"].startswith("succeeded")
    assert told["memory"].startswith("failed") and "MemoryError" in told["memory"]
    assert told["team"] == 'succeeded | exit code 0 | generation": 1'
    assert told["left"] == "[]"
    assert (base / "source" / "beside").exists() and (base / "source" / "top").exists()
    assert not (base / "made").exists() and not Path("/pf-ordinary-user-test").exists()
