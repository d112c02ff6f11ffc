from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddleflow import Client
from tests.sdk.recorded_server import RecordedServer, running


@pytest.fixture
def server() -> Iterator[RecordedServer]:
    with running() as recorded:
        yield recorded


@pytest.fixture
def client(server: RecordedServer) -> Iterator[Client]:
    with Client("127.0.0.1", "root", "paddleflow", server.port) as made:
        made.login("root", "paddleflow")
        yield made
