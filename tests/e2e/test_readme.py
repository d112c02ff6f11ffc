"""Every block of the README, pasted as printed, in order, into one shell with an empty home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import own_network
from tests.e2e.servers import RUN_DEADLINE_S

pytestmark = pytest.mark.timeout(1200)

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED_AS = re.compile(r"[Ss]ave as `([\w.]+)`[^`]*(?:`[^`]*`[^`]*)?:\s*$")
BEFORE = """\
set -Eeumo pipefail
trap 'echo "failed: $BASH_COMMAND"' ERR
end() {
    paddleflow fs umount mnt >/dev/null 2>&1 || true
    kill $(jobs -p)
    wait
    umount -l ~/.local/state/paddleflow/mnt/* 2>/dev/null || true  # what jobs have used stays for the next server
}
trap end EXIT
"""
WITHOUT_MOUNT = """
echo hello > notes.txt
paddleflow fs cp notes.txt data:/notes.txt
"""


def can_mount() -> bool:
    """In a network of its own an ordinary user's fusermount3 has no rights."""
    return os.access("/dev/fuse", os.W_OK) and os.geteuid() == 0


def pasted(page: str) -> str:
    """A script of everything that a reader types, runs or saves."""
    parts = [BEFORE]
    for block in FENCE.finditer(page):
        language, text = block.groups()
        if "make test" in text:
            continue  # this very test would be run by it
        if "fs mount" in text and not can_mount():
            text = text[: text.index("\n\n")] + WITHOUT_MOUNT
        line = page[: block.start()].count("\n") + 1
        parts.append(f"echo '--- README.md:{line}'\n")
        saved = SAVED_AS.search(page[: block.start()])
        name = saved[1] if saved else f"block-{line}.{language}"
        match language:
            case "yaml" | "python":
                parts.append(f"cat > {name} <<'END-OF-BLOCK'\n{text}END-OF-BLOCK\n")
                parts.append(f"python {name}\n" if language == "python" else "")
            case _:
                parts.append(text)
    return "".join(parts)


def test_every_block_runs_as_printed(tmp_path: Path) -> None:
    if not own_network.is_allowed():
        pytest.skip("the README's ports are fixed, and this user may not make a network in which they are free")
    if not (ROOT / ".venv" / "bin" / "rclone").exists():
        pytest.skip("there is no .venv, which make demo and make test make")
    home = tmp_path / "home"
    home.mkdir()
    script = tmp_path / "pasted.sh"
    script.write_text(pasted(README.read_text()))
    environment = {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
    }
    with (tmp_path / "shown").open("w+") as shown:
        done = subprocess.run(
            own_network.command(["bash", str(script)]),
            cwd=ROOT,
            env=environment,
            stdout=shown,
            stderr=subprocess.STDOUT,
            timeout=10 * RUN_DEADLINE_S,
            check=False,
        )
        shown.seek(0)
        told = shown.read()
    shutil.rmtree(home, ignore_errors=True)  # what waits for more to do ends with it
    assert done.returncode == 0, told
    assert told.count("epoch 3 loss") >= 4, "jobs and programs print what they do"
    assert "Traceback" not in told
