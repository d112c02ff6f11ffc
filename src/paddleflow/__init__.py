"""PaddleFlow: queues, jobs, pipelines and a cached filesystem, from a laptop to a cluster.

``from paddleflow import Client`` is the whole way in for a script. The names are loaded on first use, so that
``import paddleflow`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.errors import PaddleFlowSDKException

__version__ = "0.1.0"

__all__ = ["Client", "PaddleFlowSDKException", "__version__"]

_HOMES = {"Client": "paddleflow.sdk.client", "PaddleFlowSDKException": "paddleflow.sdk.errors"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
