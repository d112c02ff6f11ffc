"""The import path of compiling a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddleflow.pipeline.pipelines import Pipeline


class Compiler:
    def compile(self, pipeline: Pipeline, save_path: str | Path | None = None) -> dict[str, Any]:
        return pipeline.compile(save_path)
