"""The client's words are the platform's."""

from __future__ import annotations

from paddleflow.domain.jobs import TERMINAL
from paddleflow.domain.queues import PARENT_LABEL
from paddleflow.domain.runs import RUN_ENDED, NodeStatus
from paddleflow.sdk import words


def test_the_clients_words_are_the_platforms() -> None:
    assert {status.value for status in TERMINAL} == words.JOB_ENDED
    assert {status.value for status in RUN_ENDED} == words.RUN_ENDED
    assert NodeStatus.SUCCEEDED.value == words.SUCCEEDED
    assert words.PARENT_LABEL == PARENT_LABEL
