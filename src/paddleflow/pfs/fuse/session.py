"""The conversation with the kernel over /dev/fuse: reads requests, steps the operations, writes the answers.

An operation that ends in its first step is answered on the spot; another is answered when it ends, in whatever order.
It runs in the loop's thread and never waits, except for one thing: bytes of a file that are not in the page cache are
read by a thread, which then answers.

A signal does not make a file call fail here. The kernel tells us that a caller was interrupted; we look whether that
caller is about to die, and only then answer for it early, so that killing a program works while the store does not
answer. Everybody else keeps waiting, as on a local disk.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from paddleflow.pfs.attrs import FileRange
from paddleflow.pfs.errnos import errno_of
from paddleflow.pfs.fuse import protocol
from paddleflow.pfs.fuse.dispatch import Answer, Dispatch, Request
from paddleflow.pfs.fuse.negotiation import Negotiated
from paddleflow.pfs.fuse.operations import FileOperations
from paddleflow.pfs.fuse.passthrough import Backings, NoBackings
from paddleflow.pfs.fuse.protocol import HEADER_IN, HEADER_OUT, IN_HEADER, OUT_HEADER, Opcode
from paddleflow.pfs.later import Later

log = logging.getLogger(__name__)

SMALL = 4096
INTERRUPT_CHECK_S = 0.2
COLD_READERS = 4
SWEEP_EVERY_S = 1.0
SWEEP = 256
SIGKILL_PENDING = 1 << 8
OVER = (errno.ENODEV, errno.ECONNABORTED)
NOTHING_READ = (errno.EAGAIN, errno.EINTR, errno.ENOENT)
"""No request after all, or one that was taken back while it was handed over."""

FORGET, BATCH_FORGET = int(Opcode.FORGET), int(Opcode.BATCH_FORGET)
INTERRUPT, IOCTL, WRITE, DESTROY = int(Opcode.INTERRUPT), int(Opcode.IOCTL), int(Opcode.WRITE), int(Opcode.DESTROY)


class Clock(Protocol):
    """Of the loop."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> object: ...


class Session:
    """``fuse_fd`` is in non-blocking mode. ``ended`` is called once, when the mount is gone."""

    def __init__(
        self,
        fuse_fd: int,
        vfs: FileOperations,
        negotiated: Negotiated,
        backings: Backings | NoBackings,
        clock: Clock,
        ended: Callable[[], None],
    ) -> None:
        self.counts = [0] * protocol.OPCODES
        """How many requests of each kind there were."""
        self._fd = fuse_fd
        self._vfs = vfs
        self._backings = backings
        self._clock = clock
        self._ended = ended
        self._is_over = False
        self._max_write = negotiated.max_write
        self._dispatch = Dispatch(vfs, negotiated, backings)
        self._buffers = [self._dispatch.buffer]
        self._table = self._dispatch.table
        self._pending: dict[int, Request] = {}
        self._answer_buffer = memoryview(bytearray(HEADER_OUT + negotiated.max_write))
        self._cold = ThreadPoolExecutor(COLD_READERS, thread_name_prefix="cold-read")
        clock.call_later(SWEEP_EVERY_S, self._sweep)

    def fileno(self) -> int:
        return self._fd

    @property
    def waiting(self) -> int:
        """Requests that are not answered yet."""
        return len(self._pending)

    def resume(self) -> None:
        """After taking over: have the kernel send again what the predecessor had read and not answered."""
        try:
            os.write(self._fd, protocol.pack_resend())
        except OSError as error:
            if error.errno in OVER:
                return  # unmounted meanwhile; the next read says so
            log.warning("requests that were under way cannot be taken over (Linux 6.9 is needed): %s", error)

    def serve(self) -> None:
        """Answer one request. Asking whether there is another is cheaper for the loop than for us."""
        try:
            os.readv(self._fd, self._buffers)
        except OSError as error:
            self._not_read(error)
            return
        header = IN_HEADER.unpack_from(self._buffers[0])
        opcode = header[1]
        if opcode >= protocol.OPCODES:
            self._answer_error(header[2], errno.ENOSYS)
            return
        self.counts[opcode] += 1
        handler = self._table[opcode]
        if handler is None:
            self._without_handler(header)
            return
        request = Request(header)
        work = handler(request)
        try:
            waits_for: Later[Any] = work.send(None)
        except StopIteration as end:
            self._answer(request.unique, end.value)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the caller must get an answer
            self._refuse(request.unique, error)
        else:
            self._postpone(work, request, waits_for)

    def close(self) -> None:
        self._cold.shutdown(wait=True)

    def _not_read(self, error: OSError) -> None:
        if error.errno in NOTHING_READ:
            return
        if error.errno not in OVER:
            raise error
        if not self._is_over:
            self._is_over = True
            self._ended()

    # One request

    def _postpone(self, work: Coroutine[Any, Any, Answer], request: Request, waits_for: Later[Any]) -> None:
        self._pending[request.unique] = request
        if request.opcode == WRITE:
            # The bytes to write lie in the buffer until the operation ends: leave it that one and take another.
            self._dispatch.buffer = bytearray(len(self._dispatch.buffer))
            self._buffers = [self._dispatch.buffer]
        waits_for.when_done(lambda: self._go_on(work, request))

    def _go_on(self, work: Coroutine[Any, Any, Answer], request: Request) -> None:
        try:
            waits_for: Later[Any] = work.send(None)
        except StopIteration as end:
            self._finish(request, end.value, None)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the caller must get an answer
            self._finish(request, b"", error)
        else:
            waits_for.when_done(lambda: self._go_on(work, request))

    def _finish(self, request: Request, answer: Answer, error: BaseException | None) -> None:
        self._pending.pop(request.unique, None)
        if request.is_abandoned:
            return
        if error is not None:
            self._refuse(request.unique, error)
        else:
            self._answer(request.unique, answer)

    def _answer(self, unique: int, answer: Answer) -> None:
        if isinstance(answer, FileRange):
            self._answer_range(unique, answer)
            return
        size = len(answer)
        header = OUT_HEADER.pack(HEADER_OUT + size, 0, unique)
        try:
            if size <= SMALL:
                os.write(self._fd, header + answer)
            else:
                os.writev(self._fd, (header, answer))
        except OSError as error:
            self._not_taken(error)

    def _refuse(self, unique: int, error: BaseException) -> None:
        code = errno_of(error)
        if code == errno.EIO:
            log.error("a file operation failed", exc_info=error)
        self._answer_error(unique, code)

    def _answer_error(self, unique: int, code: int) -> None:
        try:
            os.write(self._fd, OUT_HEADER.pack(HEADER_OUT, -code, unique))
        except OSError as error:
            self._not_taken(error)

    def _not_taken(self, error: OSError) -> None:
        """ENOENT: the kernel gave the request up. ENODEV: the mount is gone, the next read says so. Neither wants
        anything of us."""
        if error.errno != errno.ENOENT and error.errno not in OVER:
            raise error

    # Bytes that lie in a file

    def _answer_range(self, unique: int, wanted: FileRange) -> None:
        got = self._read_from_memory(wanted)
        if got is None:
            self._cold.submit(self._answer_cold, unique, FileRange(os.dup(wanted.fd), wanted.start, wanted.size))
            return
        OUT_HEADER.pack_into(self._answer_buffer, 0, HEADER_OUT + got, 0, unique)
        try:
            os.write(self._fd, self._answer_buffer[: HEADER_OUT + got])
        except OSError as error:
            self._not_taken(error)

    def _read_from_memory(self, wanted: FileRange) -> int | None:
        """How many bytes are in the answer buffer now; None when the disk would have to be waited for, or said no."""
        room = self._answer_buffer[HEADER_OUT : HEADER_OUT + wanted.size]
        try:
            got = os.preadv(wanted.fd, [room], wanted.start, os.RWF_NOWAIT)
            if got < wanted.size and os.preadv(wanted.fd, [room[got:]], wanted.start + got, os.RWF_NOWAIT):
                return None  # more has come into memory just now: better read it in one go
        except OSError:
            return None  # a thread tries again, waits, and says what is wrong
        return got

    def _answer_cold(self, unique: int, wanted: FileRange) -> None:
        try:
            content = os.pread(wanted.fd, wanted.size, wanted.start)
        except OSError as error:
            self._refuse(unique, error)
        else:
            self._answer(unique, content)
        finally:
            os.close(wanted.fd)

    # Requests without an operation

    def _without_handler(self, header: tuple[int, ...]) -> None:
        length, opcode, unique, node = header[:4]
        if opcode == FORGET:
            self._forget(node, protocol.NODE.unpack_from(self._buffers[0], HEADER_IN)[0])
        elif opcode == BATCH_FORGET:
            self._forget_many(length)
        elif opcode == INTERRUPT:
            self._interrupt(protocol.NODE.unpack_from(self._buffers[0], HEADER_IN)[0])
        elif opcode == IOCTL:
            self._answer_error(unique, errno.ENOTTY)
        elif opcode == DESTROY:
            self._answer(unique, b"")
        else:
            self._answer_error(unique, errno.ENOSYS)

    def _forget(self, node: int, count: int) -> None:
        self._vfs.forget(node, count)
        self._backings.drop(node)

    def _forget_many(self, length: int) -> None:
        start = HEADER_IN + protocol.TWO_WORDS.size
        for node, count in protocol.FORGET_ONE.iter_unpack(bytes(self._buffers[0][start:length])):
            self._forget(node, count)

    def _interrupt(self, unique: int) -> None:
        request = self._pending.get(unique)
        if request is None or request.is_abandoned:
            return
        if is_dying(request.pid):
            request.is_abandoned = True
            self._answer_error(unique, errno.EINTR)
        else:
            self._clock.call_later(INTERRUPT_CHECK_S, lambda: self._interrupt(unique))

    def _sweep(self) -> None:
        if not self._is_over:
            self._backings.sweep(SWEEP)
            self._clock.call_later(SWEEP_EVERY_S, self._sweep)


def is_dying(thread: int) -> bool:
    """Whether this thread is being killed: then nothing it is told matters, only that it is told."""
    try:
        with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as status:
            pending = [int(line.split()[1], 16) for line in status if line.startswith(("SigPnd", "ShdPnd"))]
    except OSError:
        return False  # of another pid namespace, so there is no telling: it goes on waiting
    return any(mask & SIGKILL_PENDING for mask in pending)
