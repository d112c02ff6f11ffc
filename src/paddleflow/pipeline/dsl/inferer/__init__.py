"""The import path of inference: each class gives the settled draft of one component and leaves the component alone."""

from __future__ import annotations

from paddleflow.pipeline.dsl.inferer.component_inferer import ComponentInferer
from paddleflow.pipeline.dsl.inferer.dag_inferer import DAGInferer
from paddleflow.pipeline.dsl.inferer.step_inferer import ContainerStepInferer

__all__ = ["ComponentInferer", "ContainerStepInferer", "DAGInferer"]
