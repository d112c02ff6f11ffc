"""The import path of pipelines."""

from __future__ import annotations

from paddleflow.pipeline.pipelines import Pipeline

__all__ = ["Pipeline"]
