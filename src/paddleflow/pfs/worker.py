"""A worker: does what may take long for one front, on threads, and ends the moment the front does.

It must not outlive the front. An upload that a dead front's worker finished late would overwrite what the successor
uploaded since; so the kernel is asked to kill it together with its parent, and the end of the socket ends it too.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

from paddleflow.pfs.wire import pack

_log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was told
        os._exit(0)


Question: TypeAlias = tuple[int, str, tuple[Any, ...], dict[str, Any]]
"""Number, method, arguments, named arguments."""


def serve(
    end: socket.socket, questions: Iterator[Question], methods: Mapping[str, Callable[..., Any]], threads: int
) -> NoReturn:
    """Answer each with ``(number, is_error, value)`` until the front is gone.

    The threads take turns at listening; whoever hears a question answers it itself, while the next one listens. Handing
    it over to another thread would cost as much as most answers do.
    """
    listening, writing = threading.Lock(), threading.Lock()

    def answer_for_ever() -> NoReturn:
        while True:
            with listening:
                question = next(questions, None)
                if question is None:
                    os._exit(0)
            number, method, arguments, named = question
            try:
                message = pack((number, False, methods[method](*arguments, **named)))
            except Exception as error:  # noqa: BLE001 - it is the asker's: the front raises it where the work is awaited
                message = _pack_error(number, error)
            with writing:
                end.sendall(message)

    for index in range(threads - 1):
        threading.Thread(target=_or_die, args=(answer_for_ever,), name=f"work-{index}", daemon=True).start()
    _or_die(answer_for_ever)


def _or_die(work: Callable[[], NoReturn]) -> NoReturn:
    """A worker that has lost a thread would answer ever more slowly: the front starts another instead."""
    try:
        work()
    except BaseException:  # noqa: BLE001 - the end of the process follows
        _log.exception("a worker ends")
        os._exit(1)


def _pack_error(number: int, error: Exception) -> bytes:
    try:
        return pack((number, True, error))
    except Exception:  # noqa: BLE001 - an error that cannot travel is told by its name
        _log.exception("an error could not be sent")
        return pack((number, True, RuntimeError(f"{type(error).__name__} in a worker")))
