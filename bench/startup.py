"""What it costs to start: user and system CPU time of a command, best of several, as the kernel accounts it."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence

REPEATS = 5


def cpu_seconds(argv: Sequence[str]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return best
