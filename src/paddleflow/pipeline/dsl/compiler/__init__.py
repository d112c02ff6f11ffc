"""The import path of compiling: each class is one call of what ``Pipeline.compile`` does."""

from __future__ import annotations

from paddleflow.pipeline.dsl.compiler.compiler import Compiler
from paddleflow.pipeline.dsl.compiler.dag_compiler import DAGCompiler
from paddleflow.pipeline.dsl.compiler.step_compiler import StepCompiler

__all__ = ["Compiler", "DAGCompiler", "StepCompiler"]
