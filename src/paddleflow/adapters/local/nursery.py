"""The nursery: a tiny process that forks supervisors, so that no task pays for starting an interpreter. Host side.

One for each runtime root, started by the platform and detached from it. It holds no state, so that killing it costs
nothing but the start of another; it ends by itself when it was not needed for some minutes or its root is gone. Run by
file path with ``-I -S``; it must not be imported by the server side.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_IDENTITY_CHECK_S = 2.0


def main() -> None:
    """Standard input is the bound datagram socket, the current directory the runtime root, and the one argument the
    seconds after which a nursery that nobody needs may go."""
    longest_idle_s = float(sys.argv[1])
    wait_s = min(_IDENTITY_CHECK_S, longest_idle_s)
    _enter_package()
    from paddleflow.adapters.local import kernel, layout, supervisor

    requests = socket.socket(fileno=os.dup(0))
    _detach()
    kernel.set_process_name("pf-nursery")
    # The kernel reaps the supervisors: they owe nobody here an answer.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    supervisor.warm_up()
    gc.disable()
    gc.freeze()
    identity = _identity(layout.NURSERY_SOCKET)
    poller = select.poll()
    poller.register(requests, select.POLLIN)
    idle_s = 0.0
    while _identity(layout.NURSERY_SOCKET) == identity:
        # The wait ends now and then to see whether the root was deleted or given to another nursery.
        if poller.poll(wait_s * 1000):
            idle_s = 0.0
            _serve(requests.recv(1024), requests, supervisor.supervise)
            continue
        idle_s += wait_s
        if idle_s >= longest_idle_s and _identity(layout.NURSERY_SOCKET) == identity:
            # Nobody needed it for long, perhaps nobody ever will. From the shutdown on whoever sends is refused and
            # starts another nursery; what was sent before is still there to be read.
            os.unlink(layout.NURSERY_SOCKET)
            requests.shutdown(socket.SHUT_RD)
            while request := requests.recv(1024):
                _serve(request, requests, supervisor.supervise)


def _serve(request: bytes, requests: socket.socket, supervise: Callable[[str], None]) -> None:
    try:
        pid = os.fork()
    except OSError:
        return  # No process to be had: the task stays pending, and the platform asks again.
    if pid:
        return
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        requests.close()
        supervise(request.decode())
        status = 0
    finally:
        os._exit(status)


def _enter_package() -> None:
    """Make this folder importable under its own name without running the packages above it.

    ``import paddleflow`` may load the client and its libraries; here that would be paid by every task.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    folders = {"paddleflow": os.path.dirname(os.path.dirname(here)), "paddleflow.adapters": os.path.dirname(here)}
    for name, folder in {**folders, "paddleflow.adapters.local": here}.items():
        package = type(sys)(name)
        package.__path__ = [folder]
        sys.modules[name] = package


def _detach() -> None:
    """Leave the platform's session and family. The process that was started ends, which says that all is ready."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    if os.fork():
        os._exit(0)
    os.setsid()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


if __name__ == "__main__":
    main()
