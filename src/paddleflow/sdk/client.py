"""``paddleflow.Client``: all the calls of the other files in one object.

Every method returns a tuple whose first item is True; what fails raises ``PaddleFlowSDKException``.
"""

from __future__ import annotations

import os
from typing import Self

from paddleflow.sdk.artifacts import ArtifactCalls
from paddleflow.sdk.clusters import ClusterCalls
from paddleflow.sdk.file_access import FileCalls
from paddleflow.sdk.filesystems import FilesystemCalls
from paddleflow.sdk.flavours import FlavourCalls
from paddleflow.sdk.fs_caches import FsCacheCalls
from paddleflow.sdk.links import LinkCalls
from paddleflow.sdk.logs import LogCalls
from paddleflow.sdk.mounts import MountCalls
from paddleflow.sdk.pipelines import PipelineCalls
from paddleflow.sdk.profile import find_profile
from paddleflow.sdk.queues import QueueCalls
from paddleflow.sdk.replays import ReplayCalls
from paddleflow.sdk.runs import RunCalls
from paddleflow.sdk.schedules import ScheduleCalls
from paddleflow.sdk.snapshots import SnapshotCalls
from paddleflow.sdk.statistics import StatisticsCalls
from paddleflow.sdk.users import UserCalls


class Client(
    UserCalls,
    QueueCalls,
    FlavourCalls,
    FilesystemCalls,
    LinkCalls,
    FsCacheCalls,
    MountCalls,
    SnapshotCalls,
    FileCalls,
    ClusterCalls,
    RunCalls,
    ArtifactCalls,
    PipelineCalls,
    ScheduleCalls,
    LogCalls,
    StatisticsCalls,
    ReplayCalls,
):
    """A client of one PaddleFlow server. Call ``login`` before anything else; ``from_config`` has done so."""

    @classmethod
    def from_config(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """A logged-in client of the server in the command line's ini file, with the user and password in it.

        Without ``path`` it is the file the command line would use: that of ``PADDLEFLOW_PF_CONFIG``, or
        ``~/.paddleflow/paddleflow.ini``.
        """
        profile = find_profile(path)
        client = cls(profile.host, profile.user, profile.password, profile.port)
        try:
            client.login(profile.user, profile.password)
        except BaseException:
            client.close()
            raise
        return client
