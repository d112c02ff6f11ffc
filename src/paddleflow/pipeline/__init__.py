"""The Python pipeline language: write functions and f-strings, get a graph that any server runs.

::

    components (steps, DAGs) ──draft──► references by name ──infer──► hidden parameters, inputs, deps ──emit──► document

``ContainerStep`` and ``DAG`` are the language users know; ``@step`` makes a step of a plain function. All of it is
standard library: YAML and HTTP are loaded by the first thing that needs them. ``paddleflow.pipeline.dsl`` holds the
module paths that existing code imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from paddleflow.pipeline.components import DAG, ContainerStep
from paddleflow.pipeline.function_arguments import Input, Output
from paddleflow.pipeline.functions import step
from paddleflow.pipeline.options import (
    FAIL_CONTINUE,
    FAIL_FAST,
    CacheOptions,
    ExtraFS,
    FailureOptions,
    FSOptions,
    FSScope,
    MainFS,
    RetryOptions,
)
from paddleflow.pipeline.pipelines import Pipeline
from paddleflow.pipeline.system_parameters import PF_LOOP_ARGUMENT, PF_RUN_ID, PF_STEP_NAME, PF_USER_NAME
from paddleflow.pipeline.values import Artifact, Parameter

if TYPE_CHECKING:
    from paddleflow.sdk.pipelines import PipelineInfo, PipelineServiceApi, PipelineVersionInfo

__all__ = [
    "DAG",
    "FAIL_CONTINUE",
    "FAIL_FAST",
    "PF_LOOP_ARGUMENT",
    "PF_RUN_ID",
    "PF_STEP_NAME",
    "PF_USER_NAME",
    "Artifact",
    "CacheOptions",
    "ContainerStep",
    "ExtraFS",
    "FSOptions",
    "FSScope",
    "FailureOptions",
    "Input",
    "MainFS",
    "Output",
    "Parameter",
    "Pipeline",
    "PipelineInfo",
    "PipelineServiceApi",
    "PipelineVersionInfo",
    "RetryOptions",
    "step",
]

_OF_THE_CLIENT = frozenset({"PipelineInfo", "PipelineServiceApi", "PipelineVersionInfo"})


def __getattr__(name: str) -> object:
    if name not in _OF_THE_CLIENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module("paddleflow.sdk.pipelines"), name)
    globals()[name] = value
    return value
