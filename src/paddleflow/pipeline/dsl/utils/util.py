"""The import path of small functions on names."""

from __future__ import annotations

import re
import secrets
import string

from paddleflow.pipeline.names import base36 as trans_10_36

__all__ = ["random_code", "trans_10_36", "validate_string_by_regex"]


def validate_string_by_regex(text: str, regex: str) -> bool:
    return re.match(regex, text) is not None


def random_code(length: int) -> str:
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))
