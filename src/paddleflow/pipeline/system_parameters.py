"""Texts that the server replaces with what only a run knows."""

from __future__ import annotations

PF_RUN_ID = "{{PF_RUN_ID}}"
PF_STEP_NAME = "{{PF_STEP_NAME}}"
PF_USER_NAME = "{{PF_USER_NAME}}"
PF_LOOP_ARGUMENT = "{{PF_LOOP_ARGUMENT}}"
