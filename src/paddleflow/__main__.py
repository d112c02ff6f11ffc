"""The console script ``paddleflow`` and ``python -m paddleflow``."""

from __future__ import annotations

import sys


def main() -> None:
    from paddleflow.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
