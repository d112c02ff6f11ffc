"""A training to try things with: fits a line, and prints its loss after every epoch. Needs nothing but Python.

usage: python train.py [--epochs N] [FOLDER]        with FOLDER every epoch reads all files below it
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    asked = parser.parse_args()
    noise = random.Random(7)
    rank, size = os.environ.get("PF_TASK_RANK", "0"), os.environ.get("PF_WORLD_SIZE", "1")
    print(f"task {rank} of {size}, GPUs [{os.environ.get('CUDA_VISIBLE_DEVICES', '')}]", flush=True)
    slope = 0.0
    for epoch in range(1, asked.epochs + 1):
        began = time.monotonic()
        read = 0 if asked.folder is None else sum(map(read_whole, files_below(asked.folder)))
        loss = 0.0
        for _ in range(1000):
            x = noise.uniform(-1, 1)
            error = slope * x - 2 * x
            slope -= 0.01 * error * x
            loss += error * error
        spent = f", {read} bytes read in {time.monotonic() - began:.3f} s" if asked.folder else ""
        print(f"epoch {epoch} loss {loss / 1000:.6f}{spent}", flush=True)
        time.sleep(0.2)  # the time a real epoch would take


def files_below(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file()]


def read_whole(file: Path) -> int:
    return len(file.read_bytes())


if __name__ == "__main__":
    main()
