"""The module paths that code written for earlier releases imports. Nothing is done here: the language lives above."""

from __future__ import annotations

from paddleflow.pipeline.components import DAG, ContainerStep
from paddleflow.pipeline.pipelines import Pipeline
from paddleflow.pipeline.values import Artifact, Parameter

__all__ = ["DAG", "Artifact", "ContainerStep", "Parameter", "Pipeline"]
