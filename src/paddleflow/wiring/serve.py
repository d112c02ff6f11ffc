"""``paddleflow serve``: one process that is the whole embedded platform."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import hmac
import logging
import os
import platform as machine
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

import uvicorn

import paddleflow
from paddleflow.domain.errors import Conflict, PaddleFlowError, Unavailable
from paddleflow.domain.ids import ROOT
from paddleflow.server.app import create_app
from paddleflow.server.deps import Services
from paddleflow.settings import Settings
from paddleflow.wiring.config import default_state_dir, load_settings
from paddleflow.wiring.platform import Outside, Platform, connect_outside, installation_key

log = logging.getLogger(__name__)

_DEFAULT_PASSWORD = "paddleflow"  # noqa: S105  the well-known default of a new installation, warned about until changed


def serve(
    flags: Mapping[str, object],
    *,
    environment: Mapping[str, str] = os.environ,
    connect: Callable[[Settings, Path], Outside] = connect_outside,
    out: TextIO = sys.stdout,
) -> int:
    """Run until interrupted. Returns the exit code. ``connect`` is how tests put a wrapper around the world."""
    try:
        settings = load_settings(environment, flags)
        state_dir = Path(settings.state.dir) if settings.state.dir else default_state_dir(environment)
        logging.basicConfig(
            level=settings.server.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # we say ourselves where we listen
        with state_directory(state_dir):
            return _run(settings, state_dir.resolve(), connect, out)
    except PaddleFlowError as error:
        print(f"paddleflow serve: {error.message}", file=sys.stderr)
        return 1


@contextmanager
def state_directory(path: Path) -> Iterator[None]:
    """The state directory, private to its owner and locked: two servers on one would run every job twice."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Conflict(f"state directory {path} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                f"another server uses the state directory {path}; stop it, or give this one --state-dir"
            ) from None
        yield
    finally:
        os.close(lock)


_SWITCH_S = 0.002
"""How long a thread may keep the interpreter while others want it. With Python's own 5 ms every short database call
of a busy server waits for that long to get back to work; much less, and threads do little but take turns."""


def _run(settings: Settings, state_dir: Path, connect: Callable[[Settings, Path], Outside], out: TextIO) -> int:
    sys.setswitchinterval(_SWITCH_S)
    with _listening(settings.server.host, settings.server.port) as listener:
        outside = connect(settings, state_dir)
        return _serve_on(listener, settings, outside, installation_key(state_dir), out)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """The address, taken before anything is started, so that nothing runs when it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with --host and --port"
        ) from error
    with listener:
        yield listener


def _serve_on(listener: socket.socket, settings: Settings, outside: Outside, key: bytes, out: TextIO) -> int:
    address = _address(listener)
    for mounts in outside.mounts.values():
        mounts.use_server(_address(listener, from_here=True))
    platform = Platform(outside, settings)
    is_new = platform.start()
    try:
        app = create_app(services_of(platform, outside, settings, key))
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            loop="uvloop",
            http="httptools",
            lifespan="on",
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )

        def end_long_answers() -> None:
            app.state.streams.close()
            platform.reads.close()

        server = _AnnouncingServer(config, lambda: _announce(out, address, settings, is_new, outside), end_long_answers)
        gc.freeze()  # none of what a server starts with is ever garbage; do not make every request pay for looking
        gc.enable()
        server.run(sockets=[listener])
        return 0 if server.started else 1
    finally:
        platform.stop()


def _address(listener: socket.socket, *, from_here: bool = False) -> str:
    """The server's address; ``from_here``: one by which this machine reaches it, also where it listens everywhere."""
    host, port = listener.getsockname()[:2]
    if from_here:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared with, not bound to
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def services_of(platform: Platform, outside: Outside, settings: Settings, key: bytes) -> Services:
    return Services(
        intake=platform.intake,
        reads=platform.reads,
        logs=platform.logs,
        pipelines=platform.pipelines,
        runs=platform.runs,
        storage=platform.storage,
        storage_reads=platform.storage_reads,
        mounts=platform.mounts,
        statistics=platform.statistics,
        feed=platform.feed,
        clock=outside.clock,
        marker_key=hmac.new(key, b"markers", hashlib.sha256).digest(),
        version=paddleflow.__version__,
        build={"pythonVersion": machine.python_version(), "platform": f"{sys.platform}/{machine.machine()}"},
        reads_are_local=not settings.state.database_url,
    )


class _AnnouncingServer(uvicorn.Server):
    """Says where it listens once it does (the port may have been chosen by the system), and on TERM or INT returns
    instead of dying of the signal, so that what stands behind it is shut down in order."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None], end_long: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce
        self._end_long = end_long

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._end_long()  # streams and replays would hold up the shutdown
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _announce(out: TextIO, address: str, settings: Settings, is_new: bool, outside: Outside) -> None:
    print(f"PaddleFlow {paddleflow.__version__} is ready at {address}", file=out)
    with outside.store.read() as view:
        root = view.users.find(ROOT)
    if root is not None and outside.identity.verify_password(root.password_hash, _DEFAULT_PASSWORD):
        exposed = settings.server.host not in ("127.0.0.1", "localhost", "::1")
        if exposed:
            print("WARNING: root still has the default password and this address is reachable from outside.", file=out)
        if is_new or exposed:
            print("Log in as root with password 'paddleflow'; change it with: paddleflow user set root", file=out)
    out.flush()
