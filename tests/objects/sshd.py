"""A real OpenSSH server on loopback, for the account that runs the tests, with keys made for the occasion.

``start_sshd(directory)`` needs the programs ``sshd`` and ``ssh-keygen`` (Debian: openssh-server, openssh-client). It
changes no account and reads no configuration of the machine. Run by root, sshd insists on the empty directory
``/run/sshd``, which the Debian service makes too.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import reserve_port
from tests.waiting import DEADLINE_S, wait_for


@dataclass(slots=True)
class SshServer:
    port: int
    private_key: str
    host_key: str
    """A line of a known_hosts file, without the host's name."""
    directory: Path
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def properties(self, **changes: str) -> dict[str, str]:
        """What a filesystem on this server has as properties; an empty change takes one away."""
        properties = {"user": getpass.getuser(), "privateKey": self.private_key, "hostKey": self.host_key} | changes
        return {name: value for name, value in properties.items() if value}

    def stop(self) -> None:
        """With every connection it serves: each is a child in a session of its own."""
        for pid in [self.process.pid, *_descendants(self.process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def start_again(self) -> None:
        self.process = _run(self.directory, self.port)


def start_sshd(directory: Path) -> SshServer:
    for program in ("sshd", "ssh-keygen"):
        if _program(program) is None:
            pytest.skip(f"{program} is missing: install openssh-server and openssh-client")
    if pwd.getpwuid(os.geteuid()).pw_shell.endswith(("/nologin", "/false")):
        pytest.skip("the account that runs the tests may not log in: run them by one that has a shell")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = reserve_port()
    for name in ("host", "user"):
        make_key(directory / name)
    (directory / "authorized_keys").write_text((directory / "user.pub").read_text())
    (directory / "config").write_text(
        f"""
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
MaxSessions 100
Subsystem sftp internal-sftp
"""
    )
    host_key = " ".join((directory / "host.pub").read_text().split()[:2])
    return SshServer(port, (directory / "user").read_text(), host_key, directory, _run(directory, port))


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> str:
    command = [
        _program("ssh-keygen") or "ssh-keygen",
        "-q",
        "-t",
        kind,
        "-N",
        passphrase,
        "-f",
        str(path),
        "-C",
        "test",
    ]
    subprocess.run(command, check=True)
    return path.read_text()


def _descendants(pid: int) -> list[int]:
    """Of a process that is still there, so that their numbers cannot be others' meanwhile."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        direct = [int(child) for child in children.read_text().split()]
    except OSError:
        return []
    return direct + [below for child in direct for below in _descendants(child)]


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


def _run(directory: Path, port: int) -> subprocess.Popen[bytes]:
    program = _program("sshd")
    assert program is not None
    log = directory / "sshd.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [program, "-D", "-e", "-f", str(directory / "config")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def listens() -> bool:
        if process.poll() is not None:
            pytest.fail(f"sshd ended at once: {log.read_text(errors='replace')[-2000:]}")
        socket.create_connection(("127.0.0.1", port), DEADLINE_S).close()
        return True

    try:
        wait_for(listens, f"sshd, which writes to {log}, listens")
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process
