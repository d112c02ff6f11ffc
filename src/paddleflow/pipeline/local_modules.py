"""The local modules that a step imports, and that its imports import: their sources travel with it.

Local is what the job cannot get by installing what is installed here: a Python source that is neither of the standard
library nor in site-packages or dist-packages. An editable install is local too, since it changes without a new version.
What is not found here, or is installed, is left to the job. Modules are found as Python would find them, but nothing is
imported to find them. What travels is the file as it is when the step is called: what an earlier import in this process
has read cannot be known any more, and the job imports afresh.
"""

from __future__ import annotations

import base64
import bz2
import functools
import importlib
import json
import os
import pkgutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SOURCE_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.import_statements import Import, imports_of, public_names

_OWN_PACKAGE = __name__.partition(".")[0]
"""Never sent, also in a checkout of it: a step has it installed or does not need it."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModule:
    name: str
    path: str
    """Where it is put in the job, below a directory of ``sys.path``; empty: nowhere."""
    search: tuple[str, ...] = ()
    """Of a package: where its submodules are."""
    file: str = ""
    """Empty: a package without ``__init__.py``."""
    loader: Any = None
    content: bytes = b""

    @property
    def package(self) -> str:
        return self.name if self.search else self.name.rpartition(".")[0]

    def is_current(self) -> bool:
        try:
            return not self.file or _read(self.file, self.loader) == self.content
        except OSError:
            return False


class ModuleBundle:
    """The modules that travel with one function, and their text for a command."""

    def __init__(self, modules: Sequence[LocalModule]) -> None:
        self.modules = tuple(modules)

    def is_current(self) -> bool:
        return all(module.is_current() for module in self.modules)

    @functools.cached_property
    def plain(self) -> str:
        return base64.b64encode(self._bytes()).decode()

    @functools.cached_property
    def compressed(self) -> str:
        """By bzip2, since a command is a key of the cache: of equal sources every libbz2 makes equal bytes, which
        zlib and xz do not promise."""
        return base64.b64encode(bz2.compress(self._bytes())).decode()

    def _bytes(self) -> bytes:
        head = json.dumps([[module.path, len(module.content)] for module in self.modules])
        return b"".join([head.encode(), b"\n", *(module.content for module in self.modules)])

    def largest(self) -> str:
        """The largest modules, for people."""
        shown = sorted(self.modules, key=lambda module: (-len(module.content), module.name))[:_SHOWN]
        return ", ".join(f"{module.name} ({len(module.content)} bytes)" for module in shown)


def bundle_for(function: Callable[..., object], source: str, title: str) -> ModuleBundle:
    """What travels with the function whose text is ``source``; kept until one of the files changes."""
    bundle = _bundle(function, source, title)
    if not bundle.is_current():
        _bundle.cache_clear()
        bundle = _bundle(function, source, title)
    return bundle


@functools.lru_cache
def _bundle(function: Callable[..., object], source: str, title: str) -> ModuleBundle:
    importlib.invalidate_caches()  # a file may have been written a moment ago, from a notebook for one
    package = str(getattr(function, "__globals__", {}).get("__package__") or "")
    return ModuleBundle(_Search(title).modules(source, package))


class _Search:
    """One walk from import to import."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._known: dict[str, LocalModule | None] = {}
        self._waiting: list[LocalModule] = []
        self._recorded: dict[str, frozenset[str]] = {}
        paths = sysconfig.get_paths()
        self._libraries = {Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._libraries |= {path.resolve() for path in self._libraries}

    def modules(self, source: str, package: str) -> list[LocalModule]:
        self._follow(imports_of(source, package))
        while self._waiting:
            module = self._waiting.pop()
            self._follow(imports_of(module.content, module.package))
        found = {name: module for name, module in sorted(self._known.items()) if module is not None}
        # A directory of this name, logs or data for one, must not hide a package that the job has installed.
        parents = {name[:at] for name, module in found.items() if module.file for at in _dots(name)}
        return [module for name, module in found.items() if module.path and (module.file or name in parents)]

    def _follow(self, imports: Sequence[Import]) -> None:
        for each in imports:
            module = self._take(each.module)
            if module is None or not module.search:
                continue
            names = set(each.names)
            if "*" in names:
                names |= set(public_names(module.content))
            for name in sorted(names):
                self._take(f"{each.module}.{name}")

    def _take(self, name: str) -> LocalModule | None:
        if name not in self._known:
            self._known[name] = found = self._find(name)
            if found is not None:
                self._waiting.append(found)
        return self._known[name]

    def _find(self, name: str) -> LocalModule | None:
        if name.partition(".")[0] == _OWN_PACKAGE or not all(part.isidentifier() for part in name.split(".")):
            return None
        parent, search = name.rpartition(".")[0], None
        if parent:
            holder = self._take(parent)
            if holder is None or not holder.search:
                return None
            search = holder.search
        spec = _find_spec(name, search)
        if spec is None:
            return None
        search = _search_locations(name, spec)
        if spec.origin is None and search:
            return self._namespace(name, search)
        if not spec.has_location or spec.origin is None or self._is_installed(spec.origin):
            return None
        return self._read(name, spec, spec.origin, search)

    def _namespace(self, name: str, search: tuple[str, ...]) -> LocalModule | None:
        local = [place for place in search if not self._is_installed(place)]
        if not local:
            return None
        # It becomes an ordinary package, which no other of its name comes before; but where a part is installed, the
        # parts have to be joined again in the job.
        path = _job_path(name, is_package=True) if len(local) == len(search) else ""
        return LocalModule(name=name, path=path, search=search)

    def _read(self, name: str, spec: ModuleSpec, file: str, search: tuple[str, ...]) -> LocalModule | None:
        path = _job_path(name, is_package=bool(search), suffix=_suffix(file))
        if self._is_recorded(file, path):
            return None
        if not file.endswith(tuple(SOURCE_SUFFIXES)):
            raise dsl_error(
                f"{self._title} imports the local module [{name}], which is not Python source and cannot be sent to "
                f"the job: {file}. Install the package it belongs to (not editable), here and where the step runs, or "
                "do without it in the step"
            )
        try:
            content = _read(file, spec.loader)
        except OSError as error:
            raise dsl_error(f"the local module [{name}] that {self._title} imports cannot be read: {error}") from error
        return LocalModule(name=name, path=path, search=search, file=file, loader=spec.loader, content=content)

    def _is_installed(self, place: str) -> bool:
        here, real = Path(os.path.abspath(place)), Path(os.path.realpath(place))  # noqa: PTH100 - keeps links
        if not _INSTALLED.isdisjoint(real.parts):
            return True
        if not _INSTALLED.isdisjoint(here.parts):
            # Installers may link file by file to a store of theirs; a whole directory is linked by editable installs.
            at = max(at for at, part in enumerate(here.parts) if part in _INSTALLED)
            top = Path(*here.parts[: at + 2])
            return not (top.is_symlink() and top.is_dir())
        return any(path.is_relative_to(library) for path in (here, real) for library in self._libraries)

    def _is_recorded(self, file: str, path: str) -> bool:
        """Whether ``pip install --target`` has put it there."""
        if not file.endswith(f"/{path}"):
            return False
        root = file.removesuffix(path)
        if root not in self._recorded:
            records = Path(root).glob("*.dist-info/RECORD")
            lines = [line for record in records for line in record.read_text(encoding="utf-8").splitlines()]
            self._recorded[root] = frozenset(line.partition(",")[0].strip('"') for line in lines)
        return path in self._recorded[root]


def _find_spec(name: str, search: tuple[str, ...] | None) -> ModuleSpec | None:
    """As ``importlib.util.find_spec``, which would import the packages around the module."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(spec, ModuleSpec):
        return spec
    for finder in sys.meta_path:
        try:
            # The finder of paths itself cannot find a namespace package in another that is not imported yet.
            found = _find_on_path(name, search) if finder is PathFinder else finder.find_spec(name, search, None)
        except (AttributeError, ImportError, KeyError):
            found = None
        if found is not None:
            return found
    return None


def _find_on_path(name: str, search: tuple[str, ...] | None) -> ModuleSpec | None:
    portions: list[str] = []
    for entry in sys.path if search is None else search:
        finder = pkgutil.get_importer(entry)
        spec = None if finder is None else finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None:
            portions += spec.submodule_search_locations or ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def _search_locations(name: str, spec: ModuleSpec) -> tuple[str, ...]:
    """An imported package may have extended its path."""
    own = getattr(sys.modules.get(name), "__path__", None)
    return tuple(own if own is not None else spec.submodule_search_locations or ())


def _read(file: str, loader: Any) -> bytes:
    """By its loader: a module may be in a zip file."""
    if hasattr(loader, "get_data"):
        content: bytes = loader.get_data(file)
        return content
    return Path(file).read_bytes()


def _job_path(name: str, *, is_package: bool, suffix: str = ".py") -> str:
    return name.replace(".", "/") + ("/__init__" if is_package else "") + suffix


def _suffix(file: str) -> str:
    """All of it: that of an extension module has several dots."""
    return "".join(Path(file).name.partition(".")[1:])


def _dots(name: str) -> list[int]:
    return [at for at, letter in enumerate(name) if letter == "."]
