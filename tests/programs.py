"""Programs that tests start, and end also when they fail."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def started(words: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """What it says is text, in pipes unless told otherwise. At the end it is killed, if it goes on."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **{**pipes, **options}) as program:
        try:
            yield program
        finally:
            program.kill()
