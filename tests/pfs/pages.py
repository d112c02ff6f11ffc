"""Examples on a page: ``console`` blocks whose ``$`` lines are run by sh, in order, and print what follows them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Example:
    command: str
    output: str


def examples_in(text: str) -> list[Example]:
    found: list[Example] = []
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Example(command, output))
    return found


def run_example(example: Example, where: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", example.command],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
    )
    return done.stdout + done.stderr
