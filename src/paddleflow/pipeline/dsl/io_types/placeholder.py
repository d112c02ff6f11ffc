"""The import path of references by name."""

from __future__ import annotations

from paddleflow.pipeline.values import ArtifactPlaceholder, ParameterPlaceholder

__all__ = ["ArtifactPlaceholder", "ParameterPlaceholder"]
