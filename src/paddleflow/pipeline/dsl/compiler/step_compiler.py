"""The import path of compiling a step."""

from __future__ import annotations

from typing import Any

from paddleflow.pipeline.compiling import settle
from paddleflow.pipeline.components import Step
from paddleflow.pipeline.emission import emit


class StepCompiler:
    def __init__(self, component: Step) -> None:
        self._component = component

    def compile(self) -> dict[str, Any]:
        return emit(settle(self._component, {}))
