"""Names: which are legal, how a component is spelled inside a text, and what inferred parameters are called.

A reference inside an f-string becomes a *marker*, ``{{parameter: PF-ENTRY-POINT.train.lr}}``, that only compiling
understands. What compiling adds for it (a hidden parameter or input) gets a name made from the producer's, so that the
same pipeline compiles to the same text every time, and cached results stay valid.
"""

from __future__ import annotations

import hashlib
import re
import string

from paddleflow.pipeline.failures import dsl_error

VARIABLE_RULE = "^[A-Za-z_][A-Za-z0-9_]{0,49}$"
PIPELINE_RULE = "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"
COMPONENT_RULE = "^[a-zA-Z][a-zA-Z0-9-]{0,29}$"

ROOT = "PF-ENTRY-POINT"
"""The name of the dag that holds everything; the first part of every full name."""
LOOP_ITEM = "PF_LOOP_ARGUMENT"

PARAMETER = "parameter"
ARTIFACT = "artifact"
LOOP = "loop"

_COMPONENT = COMPONENT_RULE[1:-1]
MARKER = re.compile(
    rf"\{{\{{\s*(?P<kind>{PARAMETER}|{ARTIFACT}|{LOOP}):\s*"
    rf"(?P<owner>(?:{_COMPONENT}\.)*{_COMPONENT})\.(?P<name>{VARIABLE_RULE[1:-1]})\s*\}}\}}"
)
OWN_TEMPLATE = re.compile(r"\{\{\s*(?P<name>[A-Za-z0-9_]+)\s*\}\}")

_DIGITS = string.digits + string.ascii_lowercase


def check_variable(name: object, what: str) -> str:
    return _checked(name, VARIABLE_RULE, what)


def check_component(name: object, what: str) -> str:
    return _checked(name, COMPONENT_RULE, what)


def check_pipeline(name: object) -> str:
    return _checked(name, PIPELINE_RULE, "Pipeline")


def _checked(name: object, rule: str, what: str) -> str:
    # fullmatch of the inner part, since "$" alone would let a line break at the end through.
    if not isinstance(name, str) or not re.fullmatch(rule[1:-1], name):
        raise dsl_error(f"the name of {what} is illegal: [{name}] should match {rule}")
    return name


def marker(kind: str, owner: str, name: str) -> str:
    return f"{{{{{kind}: {owner}.{name}}}}}"


def template(name: str, node: str = "") -> str:
    """``{{name}}`` of the component itself, or ``{{node.name}}`` of another."""
    return f"{{{{{node}.{name}}}}}" if node else f"{{{{{name}}}}}"


def hidden_name(field: str, kind: str, owner: str, name: str) -> str:
    """``command_param_2tize3o07mizsbsv9dbcx5fwz``; ``kind`` is ``param`` or ``art``."""
    digest = hashlib.md5(f"{owner}.{name}".encode(), usedforsecurity=False).hexdigest()
    return f"{field}_{kind}_{base36(int(digest, 16))}"


def base36(number: int) -> str:
    """Digits, then lower-case letters."""
    if number == 0:
        return "0"
    rest, written = abs(number), []
    while rest:
        rest, digit = divmod(rest, 36)
        written.append(_DIGITS[digit])
    return ("-" if number < 0 else "") + "".join(reversed(written))


def is_inside(full_name: str, dag: str) -> bool:
    """Whether it lies in that dag, at any depth."""
    return full_name.startswith(f"{dag}.")
