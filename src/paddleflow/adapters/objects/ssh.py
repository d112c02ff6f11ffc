"""SSH connections that carry SFTP: the only door of the SSH library.

Owns who is at the other end (host keys are checked, always), who we are (a private key or a password), and time limits.
A host key is trusted when the filesystem's property ``hostKey`` names it, or the known_hosts of this machine do, or it
is in the file where keys are remembered at first use, where such a file was given. Otherwise the connection is refused
before anything secret is sent, with the fingerprint and what to set.

Refuses keys with a passphrase: there is nobody to type it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import io
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko  # type: ignore[import-untyped]

from paddleflow.adapters.objects.sftp_wire import Broken, Channel, SftpSession
from paddleflow.domain.errors import Denied, Unavailable, invalid_field

# The library tells of every connection that fails, also where that is retried; what matters is in our errors.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
"""Asked for first: they encrypt and sign in one pass, at half the cost of the library's own first choice."""
_WINDOW = 8 * 1024 * 1024
"""Bytes the server may send before we take them."""
KNOWN_HOSTS = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    host: str
    port: int
    user: str
    password: str = ""
    private_key: str = ""
    host_keys: frozenset[bytes] = frozenset()
    """The public keys the property names; empty: look into the files."""

    def __repr__(self) -> str:
        return f"Login({self.user}@{self.host}:{self.port})"

    @property
    def place(self) -> str:
        """As known_hosts files write it."""
        return self.host if self.port == 22 else f"[{self.host}]:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshLimits:
    connect_s: float = 10.0
    """To reach the server, to agree on keys, to log in: each."""
    stall_s: float = 30.0
    """Without a single byte moving while an answer is due."""
    keepalive_s: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    known_hosts: Sequence[str] = KNOWN_HOSTS
    remember_in: str = ""
    """A file: a host seen for the first time is written there and trusted from then on."""


def parse_login(address: str, properties: Mapping[str, str]) -> Login:
    """``host``, ``host:port`` or ``[v6]:port``; the properties user, password, privateKey and hostKey."""
    host, _, port = address.strip("/").rpartition(":") if not address.endswith("]") else (address, "", "")
    if not host:
        host, port = port, ""
    host = host.strip("[]")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise invalid_field("url", f"[{address}] has no valid port: write sftp://host:port/path")
    if not host or any(character.isspace() for character in host):
        raise invalid_field("url", f"[{address}] names no host: write sftp://host:port/path")
    user = properties.get("user", "")
    if not user:
        raise invalid_field("user", "it is missing: an SFTP filesystem needs the name to log in with")
    password, private_key = properties.get("password", ""), properties.get("privateKey", "")
    if not password and not private_key:
        raise invalid_field("password", "it is missing: give password, or privateKey (the text of a key file)")
    return Login(
        host=host,
        port=int(port or 22),
        user=user,
        password=password,
        private_key=private_key,
        host_keys=frozenset(_parse_host_keys(properties.get("hostKey", ""))),
    )


def _parse_host_keys(lines: str) -> Iterator[bytes]:
    """Lines of a known_hosts file, with or without the host's name in front."""
    for line in lines.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            encoded = next(word for word in words if word.startswith("AAAA"))
            yield base64.b64decode(encoded, validate=True)
        except (StopIteration, binascii.Error) as error:
            raise invalid_field(
                "hostKey", "it is no line of a known_hosts file: take one that `ssh-keyscan` prints for the host"
            ) from error


@dataclass(slots=True)
class Connection:
    """One SSH connection with one SFTP session on it."""

    transport: paramiko.Transport
    session: SftpSession

    @property
    def is_alive(self) -> bool:
        return bool(self.transport.is_active())

    def close(self) -> None:
        self.transport.close()


def connect(login: Login, trust: Trust, limits: SshLimits) -> Connection:
    try:
        sock = socket.create_connection((login.host, login.port), limits.connect_s)
    except socket.gaierror as error:
        raise Unavailable(f"there is no host named {login.host}: check the address of the filesystem") from error
    except OSError as error:
        told = error.strerror or "no answer in time"
        raise Unavailable(f"{login.place} cannot be reached: {told}") from error
    transport = None
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(sock, default_window_size=_WINDOW)
        return _log_in(transport, login, trust, limits)
    except (paramiko.SSHException, EOFError, OSError) as error:
        _close(transport, sock)
        raise _translated(error, login) from error
    except BaseException:
        _close(transport, sock)
        raise


def _close(transport: paramiko.Transport | None, sock: socket.socket) -> None:
    if transport is not None:
        transport.close()
    sock.close()


def _log_in(transport: paramiko.Transport, login: Login, trust: Trust, limits: SshLimits) -> Connection:
    transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = limits.connect_s
    _state_preferences(transport, login, trust)
    transport.start_client(timeout=limits.connect_s)
    _check_host_key(transport.get_remote_server_key(), login, trust)
    _authenticate(transport, login)
    transport.set_keepalive(limits.keepalive_s)
    channel = transport.open_session(timeout=limits.connect_s)
    channel.settimeout(limits.stall_s)
    channel.invoke_subsystem("sftp")
    return Connection(transport, SftpSession(_as_channel(channel)))


def _authenticate(transport: paramiko.Transport, login: Login) -> None:
    """The library calls it a failed authentication too when the connection ends, or stays silent for too long, before
    the server has said anything. Only a refusal takes the user's name back."""
    try:
        if login.private_key:
            transport.auth_publickey(login.user, _parse_private_key(login.private_key))
        else:
            transport.auth_password(login.user, login.password)
    except paramiko.AuthenticationException as error:
        if transport.auth_handler.get_username() is None:
            raise
        raise paramiko.SSHException(*error.args) from error


def _as_channel(channel: paramiko.Channel) -> Channel:
    typed: Channel = channel
    return typed


def _translated(error: Exception, login: Login) -> Exception:
    if isinstance(error, paramiko.BadAuthenticationType):
        offered = ", ".join(error.allowed_types) or "nothing"
        return Denied(f"{login.place} does not let {login.user} log in this way; it offers: {offered}")
    if isinstance(error, paramiko.AuthenticationException):
        which = "privateKey" if login.private_key else "password"
        return Denied(f"{login.place} does not let {login.user} log in: check user and {which}")
    if isinstance(error, paramiko.ChannelException):
        return Unavailable(f"{login.place} gives {login.user} no SFTP session")
    told = str(error) or type(error).__name__
    return Broken(f"the SSH connection to {login.place} could not be made: {told}")


def _parse_private_key(pem: str) -> paramiko.PKey:
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(pem.strip() + "\n"))
        except paramiko.PasswordRequiredException as error:
            raise invalid_field("privateKey", "it has a passphrase: give a key without one") from error
        except (paramiko.SSHException, ValueError, IndexError):
            # Not of this kind; there are two more.
            continue
    # The library cannot read some ECDSA keys that have no comment, which is why the other kinds are named first.
    raise invalid_field(
        "privateKey", "it is no private key: give the text of an Ed25519 or RSA key file, or an ECDSA one"
    )


# Host keys.


def _state_preferences(transport: paramiko.Transport, login: Login, trust: Trust) -> None:
    """A server has keys of several kinds; it is asked for one of the kind we can check."""
    known = {_kind_of(blob) for blob in login.host_keys or _known_keys(login, trust)}
    options = transport.get_security_options()
    ciphers = tuple(options.ciphers)
    options.ciphers = (*_CIPHERS, *(cipher for cipher in ciphers if cipher not in _CIPHERS))
    offered = tuple(options.key_types)
    first = [kind for kind in offered if kind in known or ("ssh-rsa" in known and kind.startswith("rsa-sha2-"))]
    options.key_types = (*first, *(kind for kind in offered if kind not in first))


def _kind_of(blob: bytes) -> str:
    size = int.from_bytes(blob[:4], "big")
    return blob[4 : 4 + size].decode("ascii", "replace")


def _check_host_key(key: paramiko.PKey, login: Login, trust: Trust) -> None:
    blob = key.asbytes()
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    line = f"{key.get_name()} {base64.b64encode(blob).decode()}"
    told = f"{key.get_name()} SHA256:{digest}"
    if login.host_keys:
        if blob not in login.host_keys:
            raise Denied(
                f"{login.place} has another host key ({told}) than the property hostKey says: somebody may stand in "
                "between. If the server's key was changed on purpose, set hostKey to the new one"
            )
        return
    known = set(_known_keys(login, trust))
    if blob in known:
        return
    if known:
        raise Denied(
            f"{login.place} has another host key ({told}) than the known_hosts of this machine say: somebody may stand "
            "in between. If the server's key was changed on purpose, correct them, or set the property hostKey"
        )
    if trust.remember_in:
        _remember(Path(trust.remember_in), f"{login.place} {line}\n")
        return
    raise Denied(
        f"the host key of {login.place} is not known ({told}). If this is the right fingerprint, set the property "
        f"hostKey to: {line}",
        details={"host_key": line},
    )


def _known_keys(login: Login, trust: Trust) -> Iterator[bytes]:
    """Of every kind, by every file; names may be hashed there."""
    for name in (*trust.known_hosts, *([trust.remember_in] if trust.remember_in else [])):
        keys = paramiko.HostKeys()
        # A file that is not there, or is not ours to read, knows no host.
        with contextlib.suppress(OSError):
            keys.load(str(Path(name).expanduser()))
        for key in (keys.lookup(login.place) or {}).values():
            yield key.asbytes()


def _remember(path: Path, line: str) -> None:
    """One write of a whole line at the end: others may add theirs at the same time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise Unavailable(f"the host key cannot be remembered in [{path}]: {error.strerror}") from error
