"""An ear on the event stream, in a thread of its own: something is waited for, with a deadline, without asking again.

What was heard does not matter here, only that something was: whoever waits then looks at how things are now.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from paddleflow.sdk.events import EventInfo

Stream = Callable[[Callable[[], bool]], Iterator[EventInfo]]
"""Makes the stream; it ends soon after the function it is given says so."""


class Ear:
    """Listens from ``with`` to its end. A failure of the stream is raised where it is waited for."""

    def __init__(self, stream: Stream, concerns: Callable[[EventInfo], bool] = lambda _: True) -> None:
        self._stream = stream
        self._concerns = concerns
        self._heard = threading.Event()
        self._closed = threading.Event()
        self._trouble: Exception | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, name="paddleflow-ear", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # The thread ends by itself with the next heartbeat; nobody needs to wait for that.
        self._closed.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until something was heard since the last wait; False if that took too long."""
        if not self._heard.wait(timeout_s):
            return False
        self._heard.clear()
        if self._trouble is not None:
            raise self._trouble
        return True

    def _listen(self) -> None:
        try:
            for event in self._stream(self._closed.is_set):
                if self._concerns(event):
                    self._heard.set()
        except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits raises it
            self._trouble = error
        self._heard.set()
