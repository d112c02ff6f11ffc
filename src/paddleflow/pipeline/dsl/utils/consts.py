"""The import path of the rules for names. The spelling is the one existing code imports."""

from __future__ import annotations

from paddleflow.pipeline.failures import DSL_ERROR as PipelineDSLError  # noqa: N811 - the name existing code has
from paddleflow.pipeline.names import COMPONENT_RULE as COMPONENT_NAME_REGEX
from paddleflow.pipeline.names import PIPELINE_RULE as PIPELINE_NAME_REGEX
from paddleflow.pipeline.names import ROOT as ENTRY_POINT_NAME
from paddleflow.pipeline.names import VARIABLE_RULE as VARIBLE_NAME_REGEX

__all__ = [
    "COMPONENT_NAME_REGEX",
    "ENTRY_POINT_NAME",
    "PIPELINE_NAME_REGEX",
    "VARIBLE_NAME_REGEX",
    "PipelineDSLError",
]
