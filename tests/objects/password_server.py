"""An SSH server that takes a password and serves a directory by SFTP: another implementation than OpenSSH, with none of
its extensions, and the only way to test a password without touching an account of the machine."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType

import paramiko


class PasswordServer:
    """``meet``: what it does with a connection that has just sent a password, before that is looked at."""

    def __init__(
        self,
        directory: Path,
        *,
        user: str,
        password: str,
        meet: Callable[[paramiko.Transport], object] = lambda _: None,
    ) -> None:
        self._account, self._meet = (user, password), meet
        self._key = paramiko.ECDSAKey.generate()
        self.host_key = f"{self._key.get_name()} {self._key.get_base64()}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> PasswordServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Wakes the thread that waits for connections.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for transport in self._transports:
            transport.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(client)
            transport.add_server_key(self._key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Files)
            self._transports.append(transport)
            transport.start_server(threading.Event(), _Door(*self._account, partial(self._meet, transport)))


class _Door(paramiko.ServerInterface):
    def __init__(self, user: str, password: str, meet: Callable[[], object]) -> None:
        self._account, self._meet = (user, password), meet

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        self._meet()
        return paramiko.AUTH_SUCCESSFUL if (username, password) == self._account else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED


class _Handle(paramiko.SFTPHandle):
    def stat(self) -> paramiko.SFTPAttributes:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self.writefile.fileno()))

    def chattr(self, attr: paramiko.SFTPAttributes) -> int:
        os.fchmod(self.writefile.fileno(), attr.st_mode)
        os.utime(self.writefile.fileno(), (attr.st_atime, attr.st_mtime))
        return paramiko.SFTP_OK


class _Files(paramiko.SFTPServerInterface):
    def lstat(self, path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(os.lstat(path))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    stat = lstat

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle:
        handle = _Handle(flags)
        handle.readfile = handle.writefile = os.fdopen(
            os.open(path, flags & ~os.O_ACCMODE | os.O_RDWR, 0o600), "r+b", 0
        )
        return handle

    def rename(self, oldpath: str, newpath: str) -> int:
        os.link(oldpath, newpath)
        os.unlink(oldpath)
        return paramiko.SFTP_OK
