"""The import path of what steps and DAGs have in common."""

from __future__ import annotations

from paddleflow.pipeline.components import Component
from paddleflow.pipeline.components import register as register_component_handler

__all__ = ["Component", "register_component_handler"]
