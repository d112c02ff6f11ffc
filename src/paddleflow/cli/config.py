"""The file that says which server and which user, and the log-ins remembered beside it.

The file is the ini file users of the product already have; if the default one is missing it is made, for the server
on this machine. It holds a password, so it is readable by its owner alone. Tokens of earlier log-ins are kept in a
second file beside it, equally private, so that not every command pays for a log-in.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from pathlib import Path

from paddleflow.sdk.profile import Profile, default_path, read_profile

_FIRST_CONTENT = """\
[user]
name = root
password = paddleflow
[server]
paddleflow_server_host = 127.0.0.1
paddleflow_server_port = 8999
"""


def load_config(given: Path | None) -> Profile:
    """The file named by the user, or the default one, which is made on first use."""
    path = given or default_path()
    if given is None and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_private(path, _FIRST_CONTENT)
    return read_profile(path)


def change_password(path: Path, password: str) -> None:
    """Put a new password into the file and leave every other line as its owner wrote it."""
    section, lines = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip().startswith("["):
            section = line.strip()
        is_it = section == "[user]" and re.match(r"\s*password\s*[=:]", line, re.IGNORECASE)
        lines.append(f"password = {password}" if is_it else line)
    _write_private(path, "\n".join(lines) + "\n")


class TokenCache:
    """Tokens by server, user and password. What cannot be read or written is only a log-in more, never a failure."""

    def __init__(self, config: Profile) -> None:
        self._path = config.path.with_name(config.path.name + ".tokens")
        digest = hashlib.sha256(f"{config.user}\n{config.password}".encode()).hexdigest()[:16]
        self._key = f"{config.host}:{config.port} {config.user} {digest}"

    def find(self) -> str | None:
        token = self._read().get(self._key)
        return token if isinstance(token, str) else None

    def keep(self, token: str) -> None:
        # A read-only home is no reason to fail a command that has already done its work.
        with contextlib.suppress(OSError):
            _write_private(self._path, json.dumps({**self._read(), self._key: token}, indent=1))

    def _read(self) -> dict[str, object]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # Missing, unreadable or damaged: nothing is remembered.
            return {}
        return kept if isinstance(kept, dict) else {}


def _write_private(path: Path, content: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
