"""``after HOST:PORT -- COMMAND``: becomes the command once somebody listens there.

For programs that give up when the one they join has not started yet.
"""

from __future__ import annotations

import os

from paddleflow.agents.programs import Failed, connect, run, words_after

_USAGE = "after HOST:PORT -- COMMAND"


def main(arguments: list[str]) -> int:
    before, command = words_after(arguments, _USAGE)
    if len(before) != 1:
        raise Failed(f"usage: {_USAGE}")
    connect(before[0]).close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - the task's own command line, and no shell in between
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}") from error


if __name__ == "__main__":
    run(main)
