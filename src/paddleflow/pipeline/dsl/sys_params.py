"""The import path of the system parameters."""

from __future__ import annotations

from paddleflow.pipeline.system_parameters import PF_LOOP_ARGUMENT, PF_RUN_ID, PF_STEP_NAME, PF_USER_NAME

__all__ = ["PF_LOOP_ARGUMENT", "PF_RUN_ID", "PF_STEP_NAME", "PF_USER_NAME"]
