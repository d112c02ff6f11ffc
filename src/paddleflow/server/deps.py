"""What the server is given to serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paddleflow.engine.feed import Feed
from paddleflow.engine.intake import Intake
from paddleflow.engine.logs import Logs
from paddleflow.engine.mounts import MountDesk
from paddleflow.engine.pipelines import PipelineDesk
from paddleflow.engine.reads import Reads
from paddleflow.engine.run_reads import RunReads
from paddleflow.engine.statistics import Statistics
from paddleflow.engine.storage_desk import StorageDesk
from paddleflow.engine.storage_reads import StorageReads
from paddleflow.ports.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    intake: Intake
    reads: Reads
    pipelines: PipelineDesk
    """Takes pipelines in: to be checked, kept or run."""
    runs: RunReads
    """Runs and what belongs to them, stored pipelines, schedules."""
    storage: StorageDesk
    """Takes filesystems and links in, once their storage answers."""
    storage_reads: StorageReads
    """What belongs to filesystems."""
    mounts: MountDesk
    logs: Logs
    statistics: Statistics
    feed: Feed
    clock: Clock
    marker_key: bytes
    """Signs the markers of lists, so that nobody can make one up."""
    version: str
    build: Mapping[str, str]
    reads_are_local: bool = False
    """The database is a file of this machine: reading a row never waits for a network or for a writer."""
