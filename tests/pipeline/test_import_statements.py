"""Which imports are read from a text, and which are not there when it runs."""

from __future__ import annotations

import pytest

from paddleflow.pipeline.import_statements import Import, has_relative_imports, imports_of, public_names

FORMS: dict[str, tuple[str, list[Import]]] = {
    "a module": ("import a", [Import("a")]),
    "several": ("import a, b.c", [Import("a"), Import("b.c")]),
    "a submodule under another name": ("import a.b as c", [Import("a.b")]),
    "names of a module": ("from a.b import c, d as e", [Import("a.b", ("c", "d"))]),
    "everything": ("from a import *", [Import("a", ("*",))]),
    "a sibling": ("from . import x", [Import("p.q", ("x",))]),
    "of a sibling": ("from .x import y", [Import("p.q.x", ("y",))]),
    "of the package above": ("from ..x import y", [Import("p.x", ("y",))]),
    "out of every package": ("from ...x import y", [Import("", ("y",))]),
    "in a function": ("def f():\n  def g():\n    import a", [Import("a")]),
    "in a coroutine": ("async def f():\n  import a", [Import("a")]),
    "in a class": ("class C:\n  import a\n  def f(self):\n    import b", [Import("a"), Import("b")]),
    "in try": (
        "try:\n  import a\nexcept ImportError:\n  import b\nelse:\n  import c\nfinally:\n  import d",
        [*map(Import, "abcd")],
    ),
    "in with, for, while and match": (
        "with x:\n  import a\nfor x in y:\n  import b\nwhile x:\n  import c\nmatch x:\n  case 1:\n    import d",
        [*map(Import, "abcd")],
    ),
    "in both branches": ("if x:\n  import a\nelif y:\n  import b\nelse:\n  import c", [*map(Import, "abc")]),
    "by name": ("import importlib\nm = importlib.import_module('a.b')", [Import("importlib"), Import("a.b")]),
    "by the name of a sibling": ("import_module('.a', __package__)", [Import("p.q.a")]),
    "by the oldest function": ("__import__('a')", [Import("a")]),
    "by a name that is not known": ("import_module(name)\n__import__()\nimport_module(1)", []),
    "for type checkers": ("if TYPE_CHECKING:\n  import a\nelse:\n  import b", [Import("b")]),
    "for type checkers of a module": ("if typing.TYPE_CHECKING:\n  import a", []),
    "not for type checkers": ("if not TYPE_CHECKING:\n  import a\nelse:\n  import b", [Import("a")]),
    "for some type checkers": ("if TYPE_CHECKING and x:\n  import a\nelse:\n  import b", [Import("b")]),
    "perhaps for type checkers": ("if TYPE_CHECKING or x:\n  import a", [Import("a")]),
    "never": ("if False:\n  import a\nif 0:\n  import b\nif True:\n  import c", [Import("c")]),
    "in a text": ("'import a'", []),
    "not Python": ("import a\nimport", []),
    "a null byte": ("import a\0", []),
    "deep in an expression": ("x = " + "+".join(["f(import_module('a'))"] * 900), [Import("a")]),
}


@pytest.mark.parametrize(("source", "expected"), FORMS.values(), ids=FORMS)
def test_the_forms_of_an_import(source: str, expected: list[Import]) -> None:
    for text in (source, source.encode()):
        assert sorted(imports_of(text, "p.q"), key=str) == sorted(expected, key=str)


def test_the_encoding_of_a_source_is_its_own() -> None:
    assert imports_of("# coding: latin-1\nimport a_\xe9".encode("latin-1"), "") == (Import("a_\xe9"),)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (b"__all__ = ['a', 'b']", ("a", "b")),
        (b"__all__: list[str] = ['a']\n__all__ += ['b']\n__all__.append('c')", ("a", "b", "c")),
        (b"names = ['a']", ()),
        (b"__all__ = [", ()),
    ],
)
def test_the_public_names(source: bytes, names: tuple[str, ...]) -> None:
    assert public_names(source) == names


def test_relative_imports_are_seen_in_functions() -> None:
    assert has_relative_imports("def f():\n  from . import a")
    assert not has_relative_imports("def f():\n  from a import b")
