"""The import path of options."""

from __future__ import annotations

from paddleflow.pipeline.options import (
    FAIL_CONTINUE,
    FAIL_FAST,
    CacheOptions,
    ExtraFS,
    FailureOptions,
    FSOptions,
    FSScope,
    MainFS,
)

__all__ = [
    "FAIL_CONTINUE",
    "FAIL_FAST",
    "CacheOptions",
    "ExtraFS",
    "FSOptions",
    "FSScope",
    "FailureOptions",
    "MainFS",
]
