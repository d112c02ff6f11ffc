"""The import path of the checking dictionaries."""

from __future__ import annotations

from paddleflow.pipeline.mappings import EnvDict, InputArtifactDict, OutputArtifactDict, ParameterDict

__all__ = ["EnvDict", "InputArtifactDict", "OutputArtifactDict", "ParameterDict"]
