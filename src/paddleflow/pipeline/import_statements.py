"""What a Python source imports, read from its text. Nothing is executed or looked up here."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import resolve_name

_IMPORT_CALLS = frozenset({"import_module", "__import__"})


@dataclass(frozen=True, slots=True)
class Import:
    module: str
    """Its absolute name."""
    names: tuple[str, ...] = ()
    """What is taken from it: attributes, submodules, or ``*``."""


@functools.lru_cache(maxsize=1024)
def imports_of(source: str | bytes, package: str) -> tuple[Import, ...]:
    """All imports of a source that can run, wherever they stand; ``package`` is what relative ones start from.

    A source that is not Python imports nothing: whoever runs it gets the error, with its line.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    return tuple(dict.fromkeys(each for node in _nodes_that_run(tree) for each in _imports_at(node, package)))


def has_relative_imports(source: str) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(source)))


@functools.lru_cache(maxsize=1024)
def public_names(source: bytes) -> tuple[str, ...]:
    """The names in ``__all__``, which may be submodules that ``import *`` imports."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return ()
    return tuple(
        node.value
        for statement in statements
        if any(isinstance(each, ast.Name) and each.id == "__all__" for each in ast.walk(statement))
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def absolute_name(module: str, level: int, package: str) -> str:
    """Empty where a relative name leads out of every package, which Python refuses as well."""
    try:
        return resolve_name("." * level + module, package)
    except ImportError:
        return ""


def _imports_at(node: ast.AST, package: str) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(each.name) for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = absolute_name(node.module or "", node.level, package)
        yield Import(module, tuple(each.name for each in node.names))
    elif isinstance(node, ast.Call) and node.args and _is_import_call(node.func):
        argument = node.args[0]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield Import(absolute_name(argument.value, 0, package))


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _IMPORT_CALLS


def _nodes_that_run(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees. No recursion: an expression may be nested deeply."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _never_true(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.If) and _always_true(node.test):
            waiting += node.body
        else:
            waiting += ast.iter_child_nodes(node)


def _never_true(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_never_true(each) for each in test.values)
    if isinstance(test, ast.Constant):
        return not test.value
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _always_true(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _never_true(test.operand)
