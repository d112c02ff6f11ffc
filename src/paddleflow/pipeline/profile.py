"""Which server a pipeline is sent to: the one of the command line's ini file.

Without such a file it is the server on this machine, with the account a new installation has: what the command line
would write into it.
"""

from __future__ import annotations

from pathlib import Path

from paddleflow.domain.errors import Invalid
from paddleflow.pipeline.failures import dsl_error
from paddleflow.sdk import profile
from paddleflow.sdk.profile import Profile


def read_profile(given: str | Path | None) -> Profile:
    path = Path(given) if given else profile.default_path()
    if not given and not path.exists():
        return Profile(path=path, user="root", password="paddleflow", host="127.0.0.1")  # noqa: S106 - public
    try:
        return profile.read_profile(path)
    except Invalid as error:
        raise dsl_error(error.message) from error
