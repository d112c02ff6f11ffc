"""``scratch -- COMMAND``: runs the command with ``{scratch}`` in its words replaced by a private directory with a short
path, removed when the command has ended.

Programs that keep sockets there need it: the kernel takes no more than 107 bytes for the path of a socket, and the
directory of a task may already be longer.
"""

from __future__ import annotations

import shutil
import tempfile

from paddleflow.agents.programs import Program, on_stop_request, run, wait_ended, words_after

PLACEHOLDER = "{scratch}"
_SHORT = "/tmp"  # noqa: S108 - mkdtemp makes a directory nobody else may enter, and the path has to be short


def main(arguments: list[str]) -> int:
    _, command = words_after(arguments, "scratch -- COMMAND")
    directory = tempfile.mkdtemp(prefix="pf-", dir=_SHORT)
    try:
        program = Program([word.replace(PLACEHOLDER, directory) for word in command])
        on_stop_request(program.signal)
        wait_ended((program,))
        return program.exit_code
    finally:
        # Something of the command may still be writing; what it leaves is no reason to fail the task.
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run(main)
