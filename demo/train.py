"""A real, small training: fit a line by stochastic gradient descent. Prints its loss as it falls."""

from __future__ import annotations

import os
import random
import sys
import time


def main() -> None:
    steps = int(sys.argv[1])
    noise = random.Random(os.environ.get("PF_JOB_ID", ""))
    slope, intercept = noise.uniform(-3, 3), noise.uniform(-1, 1)
    a = b = 0.0
    cards = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    print(f"training as {os.environ.get('PF_USER_NAME')} on GPU [{cards}]", flush=True)
    for step in range(1, steps + 1):
        loss = 0.0
        for _ in range(2000):
            x = noise.uniform(-1, 1)
            error = a * x + b - (slope * x + intercept + noise.gauss(0, 0.01))
            a, b = a - 0.01 * error * x, b - 0.01 * error
            loss += error * error
        print(f"step {step}/{steps} loss {loss / 2000:.5f}", flush=True)
        time.sleep(0.35)  # the time a real step would spend on its GPU
    print(f"done: y = {a:.2f} x + {b:.2f}")


if __name__ == "__main__":
    main()
