"""What makes a command mean the same in a job as at this prompt, if the server is on this machine.

It is sent beside the job's own environment; a server whose tasks run elsewhere has no use for it and leaves it out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from paddleflow.sdk.transport import is_loopback

_OF_THE_CALLER = ("HOME", "VIRTUAL_ENV", "CONDA_PREFIX")


def surroundings(address: str, environ: Mapping[str, str]) -> dict[str, str] | None:
    """For a server at this address; None: it is on another machine.

    This very Python comes last on the path, for those who have none of their own on it.
    """
    if not is_loopback(address):
        return None
    folders = [*environ.get("PATH", os.defpath).split(os.pathsep), str(Path(sys.executable).parent)]
    path = os.pathsep.join(dict.fromkeys(folder for folder in folders if folder.startswith("/")))
    found = {"PATH": path, **{name: environ[name] for name in _OF_THE_CALLER if name in environ}}
    with contextlib.suppress(FileNotFoundError):  # somebody has removed the directory we are in
        found["PF_WORK_DIR"] = str(Path.cwd())
    return found
