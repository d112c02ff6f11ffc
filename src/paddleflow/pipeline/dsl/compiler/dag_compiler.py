"""The import path of compiling a DAG."""

from __future__ import annotations

from typing import Any

from paddleflow.pipeline.compiling import settle
from paddleflow.pipeline.components import DAG
from paddleflow.pipeline.emission import emit


class DAGCompiler:
    def __init__(self, component: DAG) -> None:
        self._component = component

    def compile(self) -> dict[str, Any]:
        return emit(settle(self._component, {}))
