"""The import path of loops."""

from __future__ import annotations

from paddleflow.pipeline.values import LoopArgument as _LoopArgument
from paddleflow.pipeline.values import LoopItem as _LoopItem

__all__ = ["_LoopArgument", "_LoopItem"]
