"""What a legal name, label or path is. Everything that reaches a path, a table or a command line passes here first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from paddleflow.domain.errors import Invalid, invalid_field

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_USER = re.compile(r"[A-Za-z0-9]{4,16}")
_CLUSTER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9-_]{0,253}[A-Za-z0-9_]")
_FILESYSTEM = re.compile(r"[a-zA-Z0-9_-]{1,63}")
_FLAVOUR = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PIPELINE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_KEY = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

TEXT_LIMIT = 120 * 1024
"""Characters in any one free text field (command, environment value). Linux takes 128 KiB as one argument or variable;
the rest is left for names and for what is put around a command."""


def _check(pattern: re.Pattern[str], name: str, kind: str, *, code: str = "InvalidNamePattern") -> str:
    if not pattern.fullmatch(name):
        shown = name if len(name) <= 80 else name[:77] + "..."
        raise Invalid(
            f"name[{shown}] for [{kind}] does not compile with regex rule[^{pattern.pattern}$]",
            code=code,
            details={"field": kind},
        )
    return name


def check_user_name(name: str) -> str:
    return _check(_USER, name, "user")


def check_queue_name(name: str) -> str:
    return _check(_DNS_LABEL, name, "queue")


def check_namespace(name: str) -> str:
    return _check(_DNS_LABEL, name, "namespace")


def check_cluster_name(name: str) -> str:
    return _check(_CLUSTER, name, "cluster")


def check_flavour_name(name: str) -> str:
    return _check(_FLAVOUR, name, "flavour")


def check_filesystem_name(name: str) -> str:
    return _check(_FILESYSTEM, name, "fs", code="FileSystemNameFormatError")


def check_pipeline_name(name: str) -> str:
    """Of a pipeline, or of a run."""
    return _check(_PIPELINE, name, "run")


def check_job_id(name: str) -> str:
    return _check(_DNS_LABEL, name, "job")


def check_password(password: str) -> str:
    """At least six characters with a digit and a lower-case letter."""
    strong = (
        6 <= len(password) <= 256
        and any(c.isdigit() for c in password)
        and any(c.isascii() and c.islower() for c in password)
    )
    if not strong:
        raise Invalid(
            "Password must consist of at least one number and one letter, and length must be greater than 6",
            code="UserPasswordWeak",
        )
    return password


def check_text(field: str, value: str, *, limit: int = TEXT_LIMIT, code: str = "InvalidArguments") -> str:
    if len(value) > limit:
        raise invalid_field(field, f"it has {len(value)} characters, the limit is {limit}", code=code)
    if "\x00" in value:
        raise invalid_field(field, "it contains a NUL character", code=code)
    return value


def can_be_kept(text: str) -> bool:
    """No NUL and no half of a surrogate pair: not every database, file or process takes them."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_labels(field: str, labels: Mapping[str, str], *, value_limit: int, code: str) -> dict[str, str]:
    """Labels and annotations: legal keys, bounded values, at most 256 of them."""
    if len(labels) > 256:
        raise invalid_field(field, f"it has {len(labels)} entries, the limit is 256", code=code)
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid_field(
                field, f"key [{key[:80]}] is not a label key such as team or example.org/team", code=code
            )
        check_text(f"{field}.{key}", value, limit=value_limit, code=code)
    return dict(labels)


def check_environment(field: str, env: Mapping[str, str], *, code: str) -> dict[str, str]:
    if len(env) > 1024:
        raise invalid_field(field, f"it has {len(env)} entries, the limit is 1024", code=code)
    for name, value in env.items():
        if len(name) > 256 or not _ENV_NAME.fullmatch(name):
            raise invalid_field(field, f"[{name[:80]}] is not a legal environment variable name", code=code)
        check_text(f"{field}.{name}", value, code=code)
    return dict(env)


def check_mount_path(field: str, path: str, *, code: str) -> str:
    """An absolute, normalised path that is not the root."""
    check_text(field, path, limit=4096, code=code)
    if not path.startswith("/"):
        raise invalid_field(field, f"[{path[:80]}] is not an absolute path", code=code)
    normal = posixpath.normpath(path)
    if normal.startswith("//"):
        normal = normal[1:]
    if normal == "/" or ".." in path.split("/"):
        raise invalid_field(field, f"[{path[:80]}] may not be the root directory or contain '..'", code=code)
    return normal


def check_sub_path(field: str, path: str, *, code: str) -> str:
    """A relative path inside a filesystem; leading slashes are the filesystem's own root."""
    check_text(field, path, limit=4096, code=code)
    if ".." in path.split("/"):
        raise invalid_field(field, f"[{path[:80]}] may not contain '..'", code=code)
    normal = posixpath.normpath(path.lstrip("/")) if path.strip("/") else ""
    return "" if normal == "." else normal
