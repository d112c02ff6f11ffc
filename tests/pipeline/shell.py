"""Runs the command of a compiled step as the platform does, in a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(node: dict[str, Any], place: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """What the platform does for a step: parameters into the environment, paths for its artifacts, and a shell."""
    values = {
        name: str(value["default"] if isinstance(value, dict) else value)
        for name, value in node.get("parameters", {}).items()
    }
    values["PF_LOOP_ARGUMENT"] = inputs.pop("PF_LOOP_ARGUMENT", "")
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for name, value in node.get("env", {}).items():
        own = value.strip("{}")
        environment[name] = values[own] if value.startswith("{{") else value
    artifacts = node.get("artifacts", {})
    environment |= {f"PF_INPUT_ARTIFACT_{name.upper()}": inputs[name] for name in artifacts.get("input", {})}
    environment |= {
        f"PF_OUTPUT_ARTIFACT_{name.upper()}": str(place / "out" / name) for name in artifacts.get("output", [])
    }
    return subprocess.run(
        ["sh", "-c", node["command"]], env=environment, cwd=place, capture_output=True, text=True, check=False
    )


def result(node: dict[str, Any], place: Path, **inputs: str) -> Any:
    done = run(node, place, **inputs)
    assert done.returncode == 0, done.stderr
    return json.loads((place / "out" / "result").read_text())
