"""The programs that use the filesystems: one in C, compiled at the start, and one in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.processes import BenchError
from bench.storage.content import WrongBytes

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 900
"""For one call; a mount that hangs this long has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """One timed call: the clients stop the clock themselves."""

    seconds: float
    operations: int
    cpu_s: float
    """Of the client."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    argv: tuple[str, ...]

    def run(self, *arguments: object) -> Took:
        try:
            done = subprocess.run(
                [*self.argv, *map(str, arguments)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
        except subprocess.TimeoutExpired as late:
            raise BenchError(f"{arguments[0]} did not end within {PATIENCE_S} s") from late
        if done.returncode:
            sentence = (done.stderr.strip() or f"it ended with {done.returncode}").splitlines()[-1]
            raise (WrongBytes if "WRONG BYTES" in sentence else BenchError)(f"{arguments[0]}: {sentence}")
        return Took(**json.loads(done.stdout))


PYTHON = Program("Python", (sys.executable, "-m", "bench.storage.python_client"))


def compiled(folder: Path) -> Program:
    """The C client, or the one in Python where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return PYTHON
    program = folder / "client"
    source = Path(__file__).with_name("client.c")
    subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True, timeout=120)
    return Program("C", (str(program),))
