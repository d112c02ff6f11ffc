"""The variables by which Paddle's trainers find each other.

Apart from ``paddle`` because an elastic job needs them anew at every change of its membership, inside the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddleflow.frameworks.crews import spell_endpoint

PORTS = 4
"""For each task: two that trainers listen on, one for the launcher's meeting point, one for gloo."""
MEETING, GLOO = 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    host: str
    ports: tuple[int, ...]


def trainer_environment(trainers: Sequence[Trainer], rank: int, generation: int) -> dict[str, str]:
    """For the trainer of this rank.

    A process of the generation before may still hold its port, and a trainer that met it there would wait in vain, so
    the port trainers listen on alternates.
    """
    turn = generation % 2
    endpoints = [spell_endpoint(each.host, each.ports[turn]) for each in trainers]
    return {
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(len(trainers)),
        "PADDLE_TRAINERS": ",".join(each.host for each in trainers),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
        "PADDLE_PORT": str(trainers[rank].ports[turn]),
    }


def launcher_environment(trainers: Sequence[Trainer], rank: int) -> dict[str, str]:
    """For ``python -m paddle.distributed.launch``.

    PADDLE_TRAINER_ENDPOINTS must not be there as well: the launcher would then count distinct hosts instead of tasks.
    """
    return {
        "PADDLE_MASTER": spell_endpoint(trainers[0].host, trainers[0].ports[MEETING]),
        "PADDLE_NNODES": str(len(trainers)),
        "PADDLE_RANK": str(rank),
    }
