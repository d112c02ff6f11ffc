"""Puts the local modules of a step where Python finds them, inside its job.

The text travels in the step's command, behind that of the runner: it needs Python 3.8 alone, and no __future__. The
modules become files, not entries of an importer, so that worker processes and subprocesses find them too.
"""

import atexit
import base64
import json
import os
import shutil
import sys
import tempfile


def install(payload: str) -> None:
    data = base64.b64decode(payload)
    if data.startswith(b"BZh"):
        data = __import__("bz2").decompress(data)  # not every Python has it, and a small payload does not need it
    head, _, rest = data.partition(b"\n")
    folder, owner = tempfile.mkdtemp(prefix="paddleflow-step-"), os.getpid()

    def remove() -> None:
        # A forked worker that ends must not take the modules from the others.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    for path, size in json.loads(head):
        file = os.path.join(folder, path)  # noqa: PTH118 - no import that the runner does not have already
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
        with open(file, "wb") as opened:  # noqa: PTH123
            opened.write(rest[:size])
        rest = rest[size:]
    # First, so that no older copy in the working directory is used.
    sys.path.insert(0, folder)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder + os.pathsep + inherited if inherited else folder
