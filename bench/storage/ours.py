"""Our own mount, as the bench starts it: straight from a bucket, without a server of the platform.

Its cache lies on the disk beside the native files. There is no level in memory: one would be faster than the disk that
the others are measured on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import BenchError
from bench.storage.daemons import Daemons
from bench.storage.servers import S3, unmount
from paddleflow.domain.errors import PaddleFlowError
from paddleflow.pfs.cache import Level
from paddleflow.pfs.mounting import LOG, end_mount, start_mount, state_dir_of
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.plan import MountPlan
from paddleflow.wiring.stores import StorePlan

CACHE_BYTES = 64 << 30
"""More than a run ever reads: nothing is evicted."""


@contextmanager
def mount_ours(s3: S3, mountpoint: Path, cache: Path, base: Path, options: MountOptions) -> Iterator[Daemons]:
    """``base`` is where mounts keep their state."""
    mountpoint.mkdir(parents=True)
    plan = MountPlan(
        name=s3.bucket,
        mountpoint=str(mountpoint),
        state_dir=state_dir_of(str(base), str(mountpoint)),
        options=options,
        levels=(Level(str(cache), CACHE_BYTES, free_floor=0.01),),
        stores=(
            StorePlan(
                type="s3",
                address=s3.bucket,
                properties={
                    "endpoint": s3.endpoint,
                    "accessKey": s3.key,
                    "secretKey": s3.secret,
                    "bucket": s3.bucket,
                    "s3ForcePathStyle": "true",
                },
            ).to_json(),
        ),
        front_argv=(sys.executable, "-m", "paddleflow.pfs.front"),
        worker_argv=(sys.executable, "-m", "paddleflow.wiring.storage_worker"),
    )
    try:
        report = start_mount(plan)
        if options.passthrough and not options.dataset and not report.passthrough:
            print(f"  no passthrough here: {report.why_not}", file=sys.stderr)
        yield Daemons(lambda: [report.pid])
        end_mount(str(base), str(mountpoint), force=True)
    except PaddleFlowError as error:
        log = Path(plan.state_dir, LOG)
        tail = log.read_text(errors="replace")[-1500:] if log.exists() else ""
        raise BenchError(f"our mount: {error.message}\n{tail}".strip()) from error
    finally:
        unmount(mountpoint)
