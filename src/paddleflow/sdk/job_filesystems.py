"""The filesystems of a job, as ``submit_job`` and ``--fs`` take them: ``NAME[/DIRECTORY][:/PATH][:ro]``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paddleflow.sdk.errors import InvalidError
from paddleflow.sdk.session import present

_FORM = re.compile(
    r"(?P<name>[A-Za-z0-9_-]{1,63})(?:/(?P<sub_path>[^:]*))?(?::(?P<mount_path>/[^:]*))?(?P<read_only>:ro)?"
)


def filesystem_fields(fs: str | Sequence[str]) -> dict[str, object]:
    """The fields ``fs`` and ``extraFS`` of a request. The first filesystem is also the working directory of a job that
    has no other."""
    parsed = [_parsed(each) for each in ([fs] if isinstance(fs, str) else fs)]
    return present(fs=parsed[0] if parsed else None, extraFS=parsed[1:] or None)


def _parsed(text: str) -> dict[str, object]:
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidError(
            "InvalidFilesystem", f"fs {text!r} should be NAME[/DIRECTORY][:/PATH][:ro], such as data/images:/data:ro"
        )
    return present(
        name=found["name"],
        subPath=(found["sub_path"] or "").strip("/") or None,
        mountPath=found["mount_path"],
        readOnly=True if found["read_only"] else None,
    )
