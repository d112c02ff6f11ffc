"""The import path of what flows between components."""

from __future__ import annotations

from paddleflow.pipeline.mappings import EnvDict, InputArtifactDict, OutputArtifactDict, ParameterDict
from paddleflow.pipeline.values import Artifact, ArtifactPlaceholder, Parameter, ParameterPlaceholder

__all__ = [
    "Artifact",
    "ArtifactPlaceholder",
    "EnvDict",
    "InputArtifactDict",
    "OutputArtifactDict",
    "Parameter",
    "ParameterDict",
    "ParameterPlaceholder",
]
