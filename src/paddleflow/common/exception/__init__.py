"""The import path of the client's exception that existing scripts use."""

from __future__ import annotations

from paddleflow.sdk.errors import PaddleFlowSDKException

__all__ = ["PaddleFlowSDKException"]
