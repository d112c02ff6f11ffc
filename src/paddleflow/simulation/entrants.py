"""Who may decide in a replay, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paddleflow.domain.queries import REPLAY_POLICIES
from paddleflow.simulation.baselines import Backfill, Fifo
from paddleflow.simulation.cluster import Capacity
from paddleflow.simulation.edl import Edl
from paddleflow.simulation.loop import Policy
from paddleflow.simulation.policies import OwnScheduler

_MAKERS: Mapping[str, Callable[[Capacity], Policy]] = dict(
    zip(REPLAY_POLICIES, (OwnScheduler.on, Fifo, Backfill, Edl), strict=True)
)


def policy_named(name: str, capacity: Capacity) -> Policy:
    """A policy that has decided nothing yet; ``name`` is one of ``REPLAY_POLICIES``."""
    return _MAKERS[name](capacity)
