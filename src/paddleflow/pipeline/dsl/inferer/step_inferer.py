"""The import path of inference for a step."""

from __future__ import annotations

from paddleflow.pipeline.dsl.inferer.component_inferer import ComponentInferer


class ContainerStepInferer(ComponentInferer):
    """Settles the step in its surroundings."""
