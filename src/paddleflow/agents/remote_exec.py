"""Remote execution between the tasks of one job, in place of ssh.

``remote_exec serve`` listens at the task's own endpoint; ``remote_exec run NAME WORD...`` is what mpirun calls as its
remote shell. As with ssh, the words are joined and given to the shell of the task that serves: mpirun relies on that,
and quotes them itself. Only who knows the job's secret is heard; with no secret nothing is served. A command whose
caller goes away is stopped.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import select
import signal
import socket
import sys

from paddleflow.agents.frames import (
    CHALLENGE_BYTES,
    HEADER_BYTES,
    Broken,
    Kind,
    check_request,
    check_welcome,
    pack,
    request,
    unpack_header,
    welcome,
)
from paddleflow.agents.programs import Failed, connect, on_stop_request, run, say, split_endpoint

_USAGE = "remote_exec serve | remote_exec run NAME WORD..."
_INTRODUCTION_S = 10.0
_STOP_GRACE_S = 5.0
_CHUNK = 65536
_NO_CONNECTION = 255
"""What ssh ends with when it could not connect."""


def job_secret() -> bytes:
    secret = os.environ.get("PF_JOB_SECRET", "")
    if not secret:
        raise Failed("PF_JOB_SECRET is not set: without a secret of the job anybody could run commands here")
    return secret.encode()


class Host:
    """The side that serves."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._meetings: set[asyncio.Task[None]] = set()

    async def serve(self, host: str, port: int) -> None:
        server = await asyncio.start_server(self._meet, host, port)
        say(f"waiting for commands at {host}:{port}")
        stopping = asyncio.get_running_loop().create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.cancel)
        try:
            await stopping
        except asyncio.CancelledError:
            # The end of a worker is ordered by signal. Commands under way are ended here and not by the end of the
            # loop, which would cancel the start of one half way and leave its process alone.
            server.close()
            for meeting in self._meetings:
                meeting.cancel()
            await asyncio.gather(*self._meetings, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        meeting = asyncio.current_task()
        assert meeting is not None
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)
        try:
            line = await asyncio.wait_for(self._introduce(reader, writer), _INTRODUCTION_S)
            await _carry_out(line, reader, writer)
        except (Broken, TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
            say(f"a caller was turned away or lost: {error or type(error).__name__}")
        finally:
            writer.close()

    async def _introduce(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        writer.write(pack(Kind.CHALLENGE, challenge))
        kind, payload = await _read(reader)
        if kind is not Kind.RUN:
            raise Broken("a command was expected")
        theirs, line = check_request(self._secret, challenge, payload)
        writer.write(pack(Kind.WELCOME, welcome(self._secret, theirs)))
        return line.decode()


async def _read(reader: asyncio.StreamReader) -> tuple[Kind, bytes]:
    kind, length = unpack_header(await reader.readexactly(HEADER_BYTES))
    return kind, await reader.readexactly(length)


async def _carry_out(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    process = await _started(line)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    feeding = asyncio.create_task(_feed(reader, process.stdin))
    outputs = asyncio.gather(
        _pass_on(process.stdout, Kind.OUTPUT, writer), _pass_on(process.stderr, Kind.ERRORS, writer), process.wait()
    )
    try:
        await asyncio.wait((feeding, outputs), return_when=asyncio.FIRST_COMPLETED)
        if not outputs.done():
            raise ConnectionError("the caller went away")
        await outputs
        code = process.returncode or 0
        writer.write(pack(Kind.EXIT, (code if code >= 0 else 128 - code).to_bytes(4, "big")))
        await writer.drain()
    finally:
        feeding.cancel()
        await _end(process)


async def _started(line: str) -> asyncio.subprocess.Process:
    """The command runs before this is told so. Whoever gives up meanwhile must not leave it behind."""
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec("sh", "-c", line, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(await starting)
        raise


async def _feed(reader: asyncio.StreamReader, stdin: asyncio.StreamWriter) -> None:
    """Ends only when the caller is gone: its input may well be over long before."""
    try:
        while True:
            kind, payload = await _read(reader)
            if kind is not Kind.INPUT:
                raise Broken("input was expected")
            if not stdin.is_closing():
                await _give(stdin, payload)
    except (asyncio.IncompleteReadError, ConnectionError):
        return  # That the caller is gone is what is reported here.


async def _give(stdin: asyncio.StreamWriter, payload: bytes) -> None:
    try:
        if payload:
            stdin.write(payload)
            await stdin.drain()
        else:
            stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        stdin.close()  # A command need not read all its input.


async def _pass_on(output: asyncio.StreamReader, kind: Kind, writer: asyncio.StreamWriter) -> None:
    while chunk := await output.read(_CHUNK):
        writer.write(pack(kind, chunk))
        await writer.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Whatever is left of the command's process group goes."""
    for number, patience_s in ((signal.SIGTERM, _STOP_GRACE_S), (signal.SIGKILL, _STOP_GRACE_S)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            await asyncio.wait_for(process.wait(), patience_s)
        except TimeoutError:
            continue  # The next signal is stronger.


def call(connection: socket.socket, secret: bytes, line: str) -> int:
    """Run the line over there; our standard streams are its own. Its exit code."""
    kind, theirs = _receive(connection)
    if kind is not Kind.CHALLENGE or len(theirs) != CHALLENGE_BYTES:
        raise Broken("a challenge was expected")
    ours = secrets.token_bytes(CHALLENGE_BYTES)
    connection.sendall(pack(Kind.RUN, request(secret, theirs, ours, line.encode())))
    kind, payload = _receive(connection)
    if kind is not Kind.WELCOME:
        raise Broken("a welcome was expected")
    check_welcome(secret, ours, payload)
    waiting: list[int | socket.socket] = [connection, sys.stdin.fileno()]
    while True:
        ready, _, _ = select.select(waiting, (), ())
        if sys.stdin.fileno() in ready:
            chunk = os.read(sys.stdin.fileno(), _CHUNK)
            connection.sendall(pack(Kind.INPUT, chunk))
            if not chunk:
                waiting.remove(sys.stdin.fileno())
        if connection in ready:
            kind, payload = _receive(connection)
            if kind is Kind.EXIT:
                return int.from_bytes(payload, "big")
            _write_all(sys.stdout.fileno() if kind is Kind.OUTPUT else sys.stderr.fileno(), payload)


def _receive(connection: socket.socket) -> tuple[Kind, bytes]:
    kind, length = unpack_header(_exactly(connection, HEADER_BYTES))
    return kind, _exactly(connection, length)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise Broken("the connection was closed")
        data += chunk
    return data


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def find_endpoint(name: str) -> str:
    workers = json.loads(os.environ.get("PF_MPI_WORKERS", "[]"))
    for worker in workers:
        if worker["name"] == name:
            return f"{worker['host']}:{worker['port']}"
    known = ", ".join(worker["name"] for worker in workers) or "none"
    raise Failed(f"[{name}] is no worker of this job; its workers are: {known}")


def _call(name: str, words: list[str]) -> int:
    secret = job_secret()
    on_stop_request(lambda number: sys.exit(128 + number))
    try:
        with connect(find_endpoint(name)) as connection:
            return call(connection, secret, " ".join(words))
    except (Broken, OSError) as error:
        say(f"{name}: {error}")
        return _NO_CONNECTION


def main(arguments: list[str]) -> int:
    match arguments:
        case ["serve"]:
            host, port = split_endpoint(os.environ["PF_TASK_ENDPOINT"])
            asyncio.run(Host(job_secret()).serve(host, port))
            return 0
        case ["run", name, *words] if words:
            return _call(name, words)
        case _:
            raise Failed(f"usage: {_USAGE}")


if __name__ == "__main__":
    run(main)
