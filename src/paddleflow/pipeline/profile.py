"""Which server, and as whom: read from the ini file that the command line uses.

Without a file of that name the server is the one on this machine, with the account a new installation has: what the
command line would write into it.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass, field
from pathlib import Path

from paddleflow.pipeline.failures import dsl_error

DEFAULT_PORT = 8999


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    user: str
    password: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT


_NEW_INSTALLATION = Profile(user="root", password="paddleflow")  # noqa: S106 - public: the manual prints it


def read_profile(given: str | Path | None) -> Profile:
    path = Path(given) if given else Path.home() / ".paddleflow" / "paddleflow.ini"
    if not given and not path.exists():
        return _NEW_INSTALLATION
    # No interpolation: a password may well contain a per cent sign.
    parser = configparser.ConfigParser(interpolation=None)
    try:
        found = parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise dsl_error(f"{path} is not an ini file: {error}") from error
    except OSError as error:
        raise dsl_error(f"cannot read config file {path}: {error.strerror}") from error
    if not found:
        raise dsl_error(f"no config file in {path}")
    return _checked(path, parser)


def _checked(path: Path, parser: configparser.ConfigParser) -> Profile:
    if not parser.has_section("user") or not parser.has_section("server"):
        raise dsl_error(f"no user or server conf in {path}")
    user, password = parser.get("user", "name", fallback=""), parser.get("user", "password", fallback="")
    if not user or not password:
        raise dsl_error(f"no name or password conf['user'] in {path}")
    host = parser.get("server", "paddleflow_server_host", fallback="")
    if not host:
        raise dsl_error(f"no paddleflow_server_host in {path}")
    port = parser.get("server", "paddleflow_server_port", fallback="") or str(DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise dsl_error(f"paddleflow_server_port in {path} should be a number from 1 to 65535, not {port!r}")
    return Profile(user=user, password=password, host=host, port=int(port))
