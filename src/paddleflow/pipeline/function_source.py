"""The text of a function, and of what it uses of its module, so that it can run where neither exists.

What the module imports is imported again (``local_modules`` finds what of that has to travel beside this text), plain
constants are written down, its own functions and classes travel along. Nothing is pickled: what has no such text is
refused, by name, when the pipeline is built.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import logging
import symtable
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.import_statements import absolute_name, has_relative_imports

_SCALARS = (str, bytes, int, float, complex, bool, type(None))


def check_function(function: Callable[..., object], title: str) -> None:
    """Refuse what has no source of its own to send."""
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise dsl_error(f"{title} should be written with def: its source is what runs in the job")
    if hasattr(function, "__wrapped__"):
        raise dsl_error(f"{title} is wrapped by another decorator: @step should be the only one")
    flags = function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        raise dsl_error(f"{title} should be an ordinary function, not a generator or a coroutine")
    if function.__code__.co_freevars:
        raise dsl_error(
            f"{title} uses {list(function.__code__.co_freevars)} of the function around it, which do not exist in the "
            "job: make them arguments"
        )


def function_text(function: Callable[..., object], title: str, stands_for: Callable[[object], object]) -> str:
    """A program that defines the function and everything it uses.

    ``stands_for`` says what an object of the module is inside the job: a step function, for one, is its plain function.
    """
    return _Shipment(function, title, stands_for).text()


def returns_value(function: Callable[..., object], title: str) -> bool:
    """Whether there is a result: said by the annotation, or else by a ``return`` with something behind it."""
    annotation = inspect.signature(function).return_annotation
    if annotation is not inspect.Signature.empty:
        return annotation not in (None, "None", type(None))
    definition = _definition(_source(function, title))
    return any(isinstance(node, ast.Return) and not _is_none(node.value) for node in _own_nodes(definition))


class _Shipment:
    """Everything one function needs, each thing once, in the order it must be defined."""

    def __init__(self, function: Callable[..., object], title: str, stands_for: Callable[[object], object]) -> None:
        self._function = function
        self._title = title
        self._stands_for = stands_for
        self._globals: dict[str, object] = function.__globals__
        self._import_lines = _import_lines(function)
        self._imports: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._definitions: dict[str, str] = {}

    def text(self) -> str:
        own = _bare(_source(self._function, self._title))
        self._definitions[self._function.__name__] = ""  # a function that calls itself needs no second copy
        self._collect(own)
        del self._definitions[self._function.__name__]
        bodies = [*self._definitions.values(), own]
        package = self._globals.get("__package__")
        if package and any(map(has_relative_imports, bodies)):
            # What relative imports start from.
            home = f"__spec__ = __import__('importlib.machinery').machinery.ModuleSpec('{package}.step', None)"
            bodies.insert(0, home)
        parts = [*sorted(self._imports.values()), *self._constants.values(), *bodies]
        return "\n".join(part.rstrip("\n") for part in parts) + "\n"

    def _collect(self, source: str) -> None:
        for name in _global_names(source):
            if any(name in found for found in (self._imports, self._constants, self._definitions)):
                continue
            if name in self._globals:
                self._add(name, self._globals[name])
            elif not hasattr(builtins, name):
                raise dsl_error(f"{self._title} uses [{name}], which is not defined in its module")

    def _add(self, name: str, original: object) -> None:
        value = self._stands_for(original)
        inner = inspect.unwrap(value) if callable(value) else value
        import_line = self._import_line(name, value)
        if value is original and import_line:
            self._imports[name] = import_line
        elif value is Path:
            self._imports[name] = f"from pathlib import Path as {name}"
        elif isinstance(value, ModuleType):
            self._imports[name] = f"import {value.__name__} as {name}"
        elif isinstance(value, logging.Logger):
            self._constants[name] = f"{name} = __import__('logging').getLogger({value.name!r})"
        elif _is_plain(value):
            self._constants[name] = f"{name} = {_literal(value)}"
        elif isinstance(inner, FunctionType | type) and inner.__module__ == self._function.__module__:
            self._define(name, inner, bare=value is not original)
        elif isinstance(inner, FunctionType | type):
            self._imports[name] = f"from {inner.__module__} import {inner.__name__} as {name}"
        else:
            raise dsl_error(
                f"{self._title} uses [{name}], a {type(value).__name__} of its module that cannot be sent to the job: "
                "make it inside the function, or pass it as an argument"
            )

    def _import_line(self, name: str, value: object) -> str:
        """How the module imports it: the one statement, or that which gave the value, ``try`` has others for one."""
        lines = self._import_lines.get(name, ())
        meant = lines if len(lines) == 1 else [line for line in lines if line.gives(value)]
        # Of a package, import a.b and import a.c give different parts.
        parts = meant if all(line.is_plain for line in meant) else meant[:1]
        return "\n".join(sorted({line.text for line in parts}))

    def _define(self, name: str, value: FunctionType | type, *, bare: bool) -> None:
        if value.__name__ != name or "<locals>" in value.__qualname__:
            raise dsl_error(f"{self._title} uses [{name}], which is defined elsewhere under another name")
        if isinstance(value, FunctionType) and value.__code__.co_freevars:
            raise dsl_error(f"{self._title} uses [{name}], which uses variables of the function around it")
        source = _source(value, f"[{name}], used by {self._title},")
        source = _bare(source) if bare else source
        self._definitions[name] = ""
        self._collect(source)
        # What it uses comes before it, since decorators, defaults and base classes are read at once.
        del self._definitions[name]
        self._definitions[name] = source


def _source(value: Callable[..., object] | type, title: str) -> str:
    try:
        return _read_source(value)
    except (OSError, TypeError) as error:
        raise dsl_error(f"the source of {title} cannot be read: it should be in a file, not typed in") from error


@functools.lru_cache
def _read_source(value: Callable[..., object] | type) -> str:
    """Kept, since a step may be made thousands of times, and a file may change after it was loaded."""
    source = inspect.getsource(value)
    # Indented source is put into a block instead of being shifted, which would change texts of several lines.
    return f"if True:\n{source}" if source[:1].isspace() else source


def _definition(source: str) -> ast.FunctionDef:
    node: ast.stmt = ast.parse(source).body[0]
    if isinstance(node, ast.If):
        node = node.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise dsl_error(f"the source of a step function should begin with its def, not with: {source[:60]!r}")
    return node


@functools.lru_cache
def _bare(source: str) -> str:
    """The function without its decorators."""
    node, lines = _definition(source), source.splitlines(keepends=True)
    opening = lines[:1] if source.startswith("if True:\n") else []
    return "".join([*opening, *lines[node.lineno - 1 : node.end_lineno]])


@dataclass(frozen=True, slots=True)
class _ImportLine:
    text: str
    module: str
    attribute: str = ""
    """What it takes of the module; empty: the module itself."""
    is_plain: bool = False
    """``import a.b``, which gives the name ``a``."""

    def gives(self, value: object) -> bool:
        if self.module not in sys.modules:
            return False
        found = sys.modules.get(self.module.partition(".")[0] if self.is_plain else self.module)
        return (getattr(found, self.attribute, None) if self.attribute else found) is value


@functools.lru_cache
def _import_lines(function: FunctionType) -> Mapping[str, Sequence[_ImportLine]]:
    """The import statements of its module, each name by itself: as they were written, they can be written again."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    try:
        module = ast.parse("".join(lines))
    except SyntaxError:
        # A cell of a notebook need not be Python alone; what its names are is then seen from their values.
        return {}
    package = str(function.__globals__.get("__package__") or "")
    found: dict[str, list[_ImportLine]] = {}
    for node in sorted(_import_nodes(module), key=lambda node: node.lineno):
        for each in node.names:
            if isinstance(node, ast.Import):
                name = each.asname or each.name.partition(".")[0]
                line = _ImportLine(f"import {_renamed(each)}", each.name, is_plain=each.asname is None)
            else:
                name = each.asname or each.name
                home = absolute_name(node.module or "", node.level, package)
                line = _ImportLine(f"from {home} import {_renamed(each)}", home, each.name)
            if line.module:
                found.setdefault(name, []).append(line)
    return found


def _import_nodes(module: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in _own_nodes(module) if isinstance(node, ast.Import | ast.ImportFrom))


def _renamed(imported: ast.alias) -> str:
    return f"{imported.name} as {imported.asname}" if imported.asname else imported.name


@functools.lru_cache
def _global_names(source: str) -> tuple[str, ...]:
    """What the code takes from its module. Annotations do not count: nobody evaluates them in the job."""
    tree = _WithoutAnnotations().visit(ast.parse(source))
    table = symtable.symtable(ast.unparse(ast.fix_missing_locations(tree)), "<step>", "exec")
    defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    found = {
        symbol.get_name()
        for scope in _scopes(table)
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or scope is table)
    }
    return tuple(sorted(found - defined))


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(value="")
        return self.generic_visit(node)


def _own_nodes(scope: ast.FunctionDef | ast.Module) -> Iterator[ast.AST]:
    """What is in a function or module, but not in the functions and classes inside it."""
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_plain(value: object) -> bool:
    """Whether its text is Python that makes it again."""
    if type(value) in _SCALARS:
        return not isinstance(value, float) or value - value == 0
    if type(value) in (list, tuple, set, frozenset):
        return all(_is_plain(each) for each in value)  # type: ignore[attr-defined]
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(each) for key, each in value.items())
    return False


def _literal(value: object) -> str:
    """Its text, the same in every process: the order of a set is not."""
    if isinstance(value, set | frozenset):
        inside = ", ".join(sorted(_literal(each) for each in value))
        return f"{type(value).__name__}([{inside}])"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_literal(each)}, " for each in value) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(each)}" for key, each in value.items()) + "}"
    return repr(value)
