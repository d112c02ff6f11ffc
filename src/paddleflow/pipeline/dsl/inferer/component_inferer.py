"""The import path of inference for any component."""

from __future__ import annotations

from collections.abc import Mapping

from paddleflow.pipeline.compiling import settle
from paddleflow.pipeline.components import Component
from paddleflow.pipeline.drafts import Draft


class ComponentInferer:
    def __init__(self, component: Component) -> None:
        self._component = component

    def infer(self, env: Mapping[str, str]) -> Draft:
        """The component with every reference settled; ``env`` is that of the pipeline."""
        return settle(self._component, env)
