"""The import path of steps and DAGs."""

from __future__ import annotations

from paddleflow.pipeline.components import DAG, Component, ContainerStep, Step

__all__ = ["DAG", "Component", "ContainerStep", "Step"]
