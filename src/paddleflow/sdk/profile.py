"""Which server, and as whom: read from the ini file that users of the product already have.

Which file, where none is named: that of ``PADDLEFLOW_PF_CONFIG``, as for the command line; else the one in the home
directory; else, on a machine that has none yet, the server on this machine with the account a new installation has.
"""

from __future__ import annotations

import configparser
import os
from dataclasses import dataclass, field
from pathlib import Path

from paddleflow.sdk.errors import InvalidError

DEFAULT_PORT = 8999
CONFIG_VARIABLE = "PADDLEFLOW_PF_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    path: Path
    user: str
    password: str = field(repr=False)
    host: str
    port: int = DEFAULT_PORT


def default_path() -> Path:
    return Path.home() / ".paddleflow" / "paddleflow.ini"


def find_profile(given: str | os.PathLike[str] | None = None) -> Profile:
    """The profile of the file that was named, here or in the environment, or of the default one."""
    named = given or os.environ.get(CONFIG_VARIABLE)
    if named:
        return read_profile(Path(named).expanduser())
    path = default_path()
    if not path.exists():
        return Profile(path=path, user="root", password="paddleflow", host="127.0.0.1")  # noqa: S106 - public
    return read_profile(path)


def read_profile(path: Path) -> Profile:
    # No interpolation: a password may well contain a per cent sign.
    parser = configparser.ConfigParser(interpolation=None)
    try:
        found = parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise _problem(f"{path} is not an ini file: {error}") from error
    except OSError as error:
        raise _problem(f"cannot read config file {path}: {error.strerror}") from error
    if not found:
        raise _problem(f"no config file in {path}")
    return _checked(path, parser)


def _checked(path: Path, parser: configparser.ConfigParser) -> Profile:
    if not parser.has_section("user") or not parser.has_section("server"):
        raise _problem(f"no user or server conf in {path}")
    user, password = parser.get("user", "name", fallback=""), parser.get("user", "password", fallback="")
    if not user or not password:
        raise _problem(f"no name or password conf['user'] in {path}")
    host = parser.get("server", "paddleflow_server_host", fallback="")
    if not host:
        raise _problem(f"no paddleflow_server_host in {path}")
    port = parser.get("server", "paddleflow_server_port", fallback="") or str(DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise _problem(f"paddleflow_server_port in {path} should be a number from 1 to 65535, not {port!r}")
    return Profile(path=path, user=user, password=password, host=host, port=int(port))


def _problem(sentence: str) -> InvalidError:
    return InvalidError("InvalidConfig", sentence)
