"""Objects that are too large for one request: sent in parts, side by side, and put together at the end.

Until then nothing is under the key. Whatever fails, the parts are given up, so that nobody pays for them. Parts in
flight are bounded by the number of threads, which all uploads of a store share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial

from paddleflow.adapters.objects.bucket import Bucket, Head
from paddleflow.adapters.objects.source import read_exactly
from paddleflow.domain.errors import PaddleFlowError

MIB = 1 << 20
PART = 8 * MIB
THREADS = 8
"""Times the size of a part is the most memory that parts in flight take, 64 MiB: of larger parts fewer go at once."""
COPY_PART = 512 * MIB
_MOST_PARTS = 10_000

Span = tuple[int, int]
"""(start, size)"""
SendPart = Callable[[str, int, int, int], str]
"""(upload, number, start, size) -> ETag"""


def part_size(size: int) -> int:
    least = -(-size // _MOST_PARTS)
    return max(PART, -(-least // MIB) * MIB)


def spans_of(size: int, part: int) -> list[Span]:
    return [(start, min(part, size - start)) for start in range(0, size, part)]


def upload_file(bucket: Bucket, pool: ThreadPoolExecutor, key: str, source: int, size: int) -> Head:
    part = part_size(size)

    def send(upload: str, number: int, start: int, length: int) -> str:
        return bucket.put_part(key, upload, number, read_exactly(source, start, length))

    return _upload(bucket, pool, key, spans_of(size, part), send, max(1, THREADS * PART // part))


def copy_large(bucket: Bucket, pool: ThreadPoolExecutor, source: str, target: str, size: int) -> Head:
    def send(upload: str, number: int, start: int, length: int) -> str:
        return bucket.copy_part(target, upload, number, source, start, length)

    return _upload(bucket, pool, target, spans_of(size, COPY_PART), send, THREADS)


def _upload(
    bucket: Bucket, pool: ThreadPoolExecutor, key: str, spans: Sequence[Span], send: SendPart, at_once: int
) -> Head:
    upload, write = bucket.begin_upload(key)
    size = sum(length for _, length in spans)
    try:
        sends = [partial(send, upload, number, *span) for number, span in enumerate(spans, 1)]
        etags = _send_all(pool, sends, at_once)
        return bucket.finish_upload(key, upload, etags, size, write)
    except BaseException:
        # What failed is told; that the parts could not be given up either would only hide it.
        with suppress(PaddleFlowError):
            bucket.drop_upload(key, upload)
        raise


def _send_all(pool: ThreadPoolExecutor, sends: Sequence[Callable[[], str]], at_once: int) -> list[str]:
    """In their order, so many at a time; after a failure no more are begun, and those that run
    are waited for: nothing may read the source after we have returned."""
    sent: list[Future[str]] = []
    running: set[Future[str]] = set()
    try:
        for send in sends:
            if len(running) >= at_once:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            future = pool.submit(send)
            sent.append(future)
            running.add(future)
        return [future.result() for future in sent]
    finally:
        for future in running:
            future.cancel()
        wait(running)
