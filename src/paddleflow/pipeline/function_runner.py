"""Runs the function of one step, inside its job. Its text travels in the step's command: it needs Python 3.8 alone."""

from __future__ import annotations

import json
import linecache
import os
import sys
import traceback
import types
from pathlib import Path
from typing import Any


def run(name: str, source: str, arguments: list[dict[str, Any]], result: str) -> None:
    module = types.ModuleType("paddleflow_step")
    sys.modules[module.__name__] = module
    # Python's own report of an error would not find these lines: they are in no file.
    sys.excepthook = traceback.print_exception
    place = f"<step {name}>"
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    # The flag leaves annotations as text: what they name need not exist here.
    flag = __import__("__future__").annotations.compiler_flag
    exec(compile(source, place, "exec", flag, True), module.__dict__)  # noqa: S102 - the user's own function
    values = {each["name"]: _value(**each) for each in arguments}
    returned = getattr(module, name)(**values)
    if result:
        _output(result).write_text(json.dumps(returned), encoding="utf-8")
    for each in arguments:
        if each["kind"] == "output" and not values[each["name"]].exists():
            sys.exit(f"step {name} did not write its output [{each['name']}]: {values[each['name']]}")


def _value(name: str, kind: str, type: str = "", parts: tuple[str, ...] = ()) -> Any:
    if kind == "output":
        return _output(name)
    if kind == "parameter":
        return _read(name, type, os.environ["PF_PARAMETER_" + name.upper()], False)
    paths: list[Path] = []
    for part in parts or (name,):
        text = os.environ["PF_INPUT_ARTIFACT_" + part.upper()]
        paths += [Path(text)] if Path(text).exists() else map(Path, text.split(","))
    if kind == "inputs":
        return paths
    if len(paths) > 1:
        sys.exit(f"argument [{name}] comes from a loop and so is several files: annotate it as list[Input]")
    return paths[0] if kind == "input" else _read(name, type, paths[0].read_text(encoding="utf-8"), True)


def _output(name: str) -> Path:
    path = Path(os.environ["PF_OUTPUT_ARTIFACT_" + name.upper()])
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _read(name: str, type: str, text: str, from_file: bool) -> Any:
    try:
        if from_file or type in ("list", "dict"):
            value = _json(text)
            # A whole number is a float too; nothing else is taken for what it is not.
            if type == "float" and value.__class__ is int:
                return float(value)
            return {type: value}[value.__class__.__name__]
        if type == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]
        return {"int": int, "float": float}.get(type, str)(text)
    except (KeyError, ValueError):
        sys.exit(f"argument [{name}] should be of type {type}, it is {text!r}")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # A list that was a parameter of a YAML step is spelled [1 2 3] when it becomes text.
        if not (text.startswith("[") and text.endswith("]")):
            raise
        return [_word(each) for each in text[1:-1].split()]


def _word(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
