"""Which local modules travel with a step, and that they do in an empty directory what they do here."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import pkgutil
import py_compile
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from importlib.machinery import EXTENSION_SUFFIXES, FileFinder
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.common.exception import PaddleFlowSDKException
from paddleflow.pipeline import local_modules
from tests.pipeline.documents import nodes
from tests.pipeline.shell import result, run

HEAD = "from __future__ import annotations\nfrom paddleflow.pipeline import step\n"


class Project:
    """A folder of Python sources, of which one has the step function ``answer``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def step(self, main: str = "main") -> Any:
        """The step function, of a module that is imported as a script's imports are."""
        return importlib.import_module(main).answer

    def node(self, main: str = "main") -> dict[str, Any]:
        (node,) = nodes(self.step(main)).values()
        return node

    def names(self, main: str = "main") -> list[str]:
        """The modules in the command."""
        words = shlex.split(self.node(main)["command"])
        if len(words) == 4:
            return []
        head = base64.b64decode(words[4]).partition(b"\n")[0]
        paths = [str(path) for path, _ in json.loads(head)]
        return [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Its folder is on ``sys.path``, and nothing of it stays imported."""
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    before = set(sys.modules)
    yield Project(tmp_path / "project")
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Where the step runs: nothing of the project is there."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def answers(body: str, head: str = "") -> str:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}{head}\n@step\ndef answer() -> int:\n{indented}"


PACKAGE = {"pkg/__init__.py": "", "pkg/one.py": "VALUE = 1\n", "pkg/two.py": "VALUE = 2\n"}
FORMS: dict[str, tuple[dict[str, str], list[str], int]] = {
    "a module": (
        {"main.py": answers("return helper.VALUE", "import helper"), "helper.py": "VALUE = 7\n"},
        ["helper"],
        7,
    ),
    "a name of a module": (
        {"main.py": answers("return seven()", "from helper import seven"), "helper.py": "def seven(): return 7\n"},
        ["helper"],
        7,
    ),
    "two modules of a package": (
        {**PACKAGE, "main.py": answers("return pkg.one.VALUE + pkg.two.VALUE", "import pkg.one\nimport pkg.two")},
        ["pkg", "pkg.one", "pkg.two"],
        3,
    ),
    "a module under another name": (
        {**PACKAGE, "main.py": answers("return other.VALUE", "import pkg.two as other")},
        ["pkg", "pkg.two"],
        2,
    ),
    "in the function": (
        {**PACKAGE, "main.py": answers("def f():\n    from pkg import one\n    return one.VALUE\nreturn f()")},
        ["pkg", "pkg.one"],
        1,
    ),
    "by name in the function": (
        {**PACKAGE, "main.py": answers("from importlib import import_module\nreturn import_module('pkg.one').VALUE")},
        ["pkg", "pkg.one"],
        1,
    ),
    "in a class that the function uses": (
        {**PACKAGE, "main.py": answers("return C.one.VALUE", "class C:\n    from pkg import one\n")},
        ["pkg", "pkg.one"],
        1,
    ),
    "the fallback of an import": (
        {
            **PACKAGE,
            "main.py": answers(
                "return it.VALUE", "try:\n    import absent as it\nexcept ImportError:\n    import pkg.two as it\n"
            ),
        },
        ["pkg", "pkg.two"],
        2,
    ),
    "a fallback that would have given the same": (
        {
            "main.py": answers(
                "return seven()",
                "import other\ntry:\n    from helper import seven\nexcept ImportError:\n    from other import seven\n",
            ),
            "helper.py": "def seven(): return 7\n",
            "other.py": "from helper import seven\n",
        },
        ["helper"],
        7,
    ),
    "a fallback inside a module": (
        {
            "main.py": answers("return helper.VALUE", "import helper"),
            "helper.py": "try:\n    from absent import VALUE\nexcept ImportError:\n    from slow import VALUE\n",
            "slow.py": "VALUE = 5\n",
        },
        ["helper", "slow"],
        5,
    ),
    "from module to module": (
        {
            "main.py": answers("return a.value()", "import a"),
            "a.py": "import b\ndef value(): return b.value() + 1\n",
            "b.py": "def value():\n    import c\n    return c.VALUE + 1\n",
            "c.py": "VALUE = 1\n",
        },
        ["a", "b", "c"],
        3,
    ),
    "in a circle": (
        {
            "main.py": answers("return a.value()", "import a"),
            "a.py": "import b\nVALUE = 4\ndef value(): return b.value()\n",
            "b.py": "import a\ndef value(): return a.VALUE\n",
        },
        ["a", "b"],
        4,
    ),
    "relative imports": (
        {
            "main.py": answers("return value()", "from pkg.inner.a import value"),
            "pkg/__init__.py": "",
            "pkg/other.py": "VALUE = 2\n",
            "pkg/inner/__init__.py": "from . import b\n",
            "pkg/inner/a.py": "from .. import other\nfrom .b import VALUE\ndef value(): return VALUE * other.VALUE\n",
            "pkg/inner/b.py": "VALUE = 3\n",
        },
        ["pkg", "pkg.inner", "pkg.inner.a", "pkg.inner.b", "pkg.other"],
        6,
    ),
    "everything of a package": (
        {
            "main.py": answers("return helper.value()", "import helper"),
            "helper.py": "from pkg import *\ndef value(): return one.VALUE\n",
            **PACKAGE,
            "pkg/__init__.py": "__all__ = ['one']\n",
        },
        ["helper", "pkg", "pkg.one"],
        1,
    ),
    "packages without __init__": (
        {
            "main.py": answers("return outer.inner.a.VALUE", "import outer.inner.a"),
            "outer/inner/a.py": "from . import b\nVALUE = b.VALUE\n",
            "outer/inner/b.py": "VALUE = 8\n",
            "outer/unused.py": "",
        },
        ["outer", "outer.inner", "outer.inner.a", "outer.inner.b"],
        8,
    ),
    "packages without __init__, imported late": (
        {"main.py": answers("import outer.inner.a as a\nreturn a.VALUE"), "outer/inner/a.py": "VALUE = 8\n"},
        ["outer", "outer.inner", "outer.inner.a"],
        8,
    ),
    "a package that is not imported whole": (
        {**PACKAGE, "main.py": answers("return pkg.NAME", "import pkg"), "pkg/__init__.py": "NAME = 1\n"},
        ["pkg"],
        1,
    ),
    "for type checkers only": (
        {
            "main.py": answers(
                "x: one.T = 1\nreturn x + two.VALUE",
                "from typing import TYPE_CHECKING\nimport pkg.two as two\nif TYPE_CHECKING:\n    from pkg import one\n",
            ),
            **PACKAGE,
            "pkg/one.py": "import nowhere\n",
        },
        ["pkg", "pkg.two"],
        3,
    ),
    "an installed package": (
        {"main.py": answers("import httpx, json, sys, math\nreturn 1")},
        [],
        1,
    ),
    "this package": (
        {"main.py": answers("import paddleflow.pipeline\nreturn 1")},
        [],
        1,
    ),
    "an encoding of its own": (
        {"main.py": answers("return len(helper.TEXT)", "import helper"), "helper.py": "# coding: cp1252\nTEXT = 'x'\n"},
        ["helper"],
        1,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_imported_travels(project: Project, empty: Path, form: str) -> None:
    files, expected, value = FORMS[form]
    project.write(files)
    assert project.names() == expected
    assert result(project.node(), empty) == value


def test_a_step_in_a_package_imports_its_siblings(project: Project, empty: Path) -> None:
    body = "from . import two\nfrom .inner.deep import VALUE\nreturn one.VALUE + two.VALUE + VALUE"
    project.write({**PACKAGE, "pkg/inner/__init__.py": "", "pkg/inner/deep.py": "VALUE = 4\n"})
    project.write({"pkg/steps.py": answers(body, "from . import one\n")})
    assert result(project.node("pkg.steps"), empty) == 7


def test_nothing_is_imported_to_find_it(project: Project) -> None:
    loud = "raise RuntimeError('imported')\n"
    project.write({"main.py": answers("import pkg.sub.a"), "pkg/__init__.py": loud, "pkg/sub/__init__.py": loud})
    project.write({"pkg/sub/a.py": loud})
    assert project.names() == ["pkg", "pkg.sub", "pkg.sub.a"]
    assert "pkg" not in sys.modules


def test_the_name_of_a_module_of_the_standard_library(
    project: Project, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    project.write({"main.py": answers("import colorsys\nreturn colorsys.VALUE"), "colorsys.py": "VALUE = 9\n"})
    assert result(project.node(), empty) == 9


def test_an_older_copy_where_the_step_runs_is_not_used(project: Project, empty: Path) -> None:
    project.write({"main.py": answers("import helper, pkg.one\nreturn helper.VALUE + pkg.one.VALUE")})
    project.write({"helper.py": "VALUE = 2\n", "pkg/one.py": "VALUE = 2\n"})
    Project(empty).write({"helper.py": "VALUE = 1\n", "pkg/__init__.py": "", "pkg/one.py": "VALUE = 1\n"})
    assert result(project.node(), empty) == 4


def test_a_directory_does_not_hide_what_is_installed_where_the_step_runs(project: Project, empty: Path) -> None:
    project.write({"main.py": answers("import logs\nreturn logs.VALUE"), "logs/a.txt": ""})
    Project(empty).write({"logs/__init__.py": "VALUE = 1\n"})
    assert project.names() == []
    assert result(project.node(), empty) == 1


def test_the_command_follows_the_files(project: Project) -> None:
    project.write({"main.py": answers("return helper.VALUE", "import helper"), "helper.py": "from deep import *\n"})
    project.write({"deep.py": "VALUE = 1\n", "other.py": "VALUE = 1\n"})
    first = project.node()["command"]
    project.write({"other.py": "VALUE = 2\n"})
    assert project.node()["command"] == first
    project.write({"deep.py": "VALUE = 2\n"})
    assert project.node()["command"] != first
    project.write({"deep.py": "VALUE = 1\n"})
    assert project.node()["command"] == first
    (project.folder / "deep.py").unlink()
    with pytest.raises(PaddleFlowSDKException, match=r"local module \[deep\] .* cannot be read"):
        project.node()


def test_a_file_that_was_just_written_is_found(project: Project) -> None:
    project.write({"main.py": answers("import late")})
    before = project.folder.stat()
    finder = pkgutil.get_importer(str(project.folder))
    assert finder is not None
    assert finder.find_spec("late") is None
    project.write({"late.py": ""})
    # Python looks into a directory again when its time has changed, which clocks of files may be too coarse for.
    os.utime(project.folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert project.names() == ["late"]


def test_many_calls_search_once(project: Project) -> None:
    project.write({"main.py": answers("return helper.VALUE", "import helper"), "helper.py": "VALUE = 1\n"})
    before = local_modules._bundle.cache_info().misses
    assert len({project.step()().command for _ in range(100)}) == 1
    assert local_modules._bundle.cache_info().misses == before + 1


def test_the_command_does_not_depend_on_where_the_files_are(tmp_path: Path) -> None:
    files = {**PACKAGE, "main.py": answers("from pkg import one, two\nreturn 1") + "print(answer().command)\n"}
    commands = []
    for place in ("here", "there"):
        Project(tmp_path / place).write(files)
        commands.append(script(tmp_path / place / "main.py", cwd=tmp_path))
    assert commands[0] == commands[1]
    assert "paddleflow.pipeline" not in commands[0]


def script(path: Path, cwd: Path) -> str:
    done = subprocess.run([sys.executable, str(path)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_finds_its_modules_beside_it(tmp_path: Path, empty: Path) -> None:
    project = Project(tmp_path / "project")
    dumped = "\nimport json\nfrom tests.pipeline.documents import nodes\nprint(json.dumps(nodes(answer)['answer']))\n"
    path = f"import sys\nsys.path.append({str(Path(__file__).parents[2])!r})\n"
    project.write(
        {"main.py": answers("import helper\nreturn helper.VALUE") + path + dumped, "helper.py": "VALUE = 3\n"}
    )
    Project(empty).write({"helper.py": "VALUE = 1\n"})
    assert result(json.loads(script(project.folder / "main.py", cwd=empty)), empty) == 3


def test_a_notebook_finds_modules_in_its_directory(
    project: Project, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"helper.py": "VALUE = 3\n", "cell.py": answers("import helper\nreturn helper.VALUE")})
    monkeypatch.setitem(sys.path_importer_cache, "", FileFinder(str(empty)))  # what once was the current directory
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(sys, "path", ["", *(entry for entry in sys.path if entry != str(project.folder))])
    # A cell is a text with a name that is no file's, in a module without a file.
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile((project.folder / "cell.py").read_text(), str(project.folder / "cell.py"), "exec"), scope)
    (node,) = nodes(scope["answer"]).values()
    assert result(node, empty) == 3


def test_workers_and_programs_find_the_modules(project: Project, empty: Path) -> None:
    body = """
import multiprocessing, os, pickle, subprocess, sys
found = []
for method in ("fork", "spawn"):
    with multiprocessing.get_context(method).Pool(1) as pool:
        found += pool.map(helper.double, [helper.Number(4)])
if os.fork() == 0:
    sys.exit()  # it ends as a program does, and must not take the modules away
os.wait()
program = [sys.executable, "-c", "import late; print(late.VALUE)"]
found.append(int(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout))
found.append(pickle.loads(pickle.dumps(helper.Number(5))).value)
import late
return found
"""
    project.write({"main.py": answers(body, "import helper"), "late.py": "VALUE = 6\n"})
    project.write(
        {
            "helper.py": "class Number:\n    def __init__(self, value): self.value = value\n"
            "def double(number): return 2 * number.value\n"
        }
    )
    assert result(project.node(), empty) == [8, 8, 6, 5]


def test_sources_are_there_until_the_step_ends(project: Project, empty: Path) -> None:
    body = """
import inspect, sys
print(helper.__file__)
print(len(sys.argv), inspect.getsource(helper.seven))
helper.seven()
"""
    project.write({"main.py": answers(body, "import helper"), "helper.py": "def seven():\n    raise ValueError(7)\n"})
    done = run(project.node(), empty)
    file, source = done.stdout.split("\n", 1)
    assert source.startswith("2 def seven():\n    raise ValueError(7)\n")
    assert f'File "{file}", line 2, in seven\n    raise ValueError(7)\n' in done.stderr
    assert not Path(file).parent.exists()


def test_what_the_job_has_on_its_path_stays(project: Project, empty: Path) -> None:
    body = "import os\nreturn [os.environ['PYTHONPATH'].split(':')[1:], there.VALUE, helper.VALUE]"
    project.write(
        {"main.py": answers(body, "import helper, there"), "helper.py": "VALUE = 1\n", "there.py": "VALUE = 2\n"}
    )
    node = project.node()
    node["command"] = f"PYTHONPATH=/somewhere {node['command']}"
    assert result(node, empty) == [["/somewhere"], 2, 1]


def test_packages_installed_into_a_directory_do_not_travel(project: Project) -> None:
    record = "it.py,sha256=x,9\nbig/__init__.py,,\nfast.abi3.so,,\n"
    project.write(
        {"it.py": "", "big/__init__.py": "", "fast.abi3.so": "", "own.py": "", "it-1.dist-info/RECORD": record}
    )
    project.write({"main.py": answers("import it, own, big, fast")})
    assert project.names() == ["own"]


@pytest.mark.parametrize("name", ["site-packages", "dist-packages"])
def test_site_packages_do_not_travel(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    site = project.folder / name
    source = project.folder.parent / "source"
    project.write(
        {
            f"{name}/it.py": "",
            "main.py": answers("import it, store, shared.a, shared.b, edited"),
        }
    )
    project.write({f"{name}/shared/a.py": "VALUE = 1\n", "shared/b.py": "VALUE = 2\n"})
    Project(source).write({"edited/__init__.py": "", "linked.py": ""})
    (site / "edited").symlink_to(source / "edited")  # an editable install by a link
    (site / "store").mkdir()
    (site / "store" / "__init__.py").symlink_to(source / "linked.py")  # an installer that keeps its files elsewhere
    monkeypatch.syspath_prepend(str(site))
    assert project.names() == ["edited", "shared.b"]


def test_editable_installs_travel(
    tmp_path: Path, project: Project, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path / "checkout").write(
        {"src/mine/__init__.py": "from mine.a import VALUE\n", "src/mine/a.py": "VALUE = 2\n"}
    )
    project.write({"main.py": answers("import mine\nreturn mine.VALUE")})

    class Finder:
        """What build tools put on the path for packages that are mapped to a directory."""

        @staticmethod
        def find_spec(name: str, path: object, target: object = None) -> Any:
            file = tmp_path / "checkout" / "src" / "mine" / "__init__.py"
            return importlib.util.spec_from_file_location(name, file) if name == "mine" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert project.names() == ["mine", "mine.a"]
    assert result(project.node(), empty) == 2


def test_modules_in_a_zip_file_travel(project: Project, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write({"main.py": answers("import zipped.a\nreturn zipped.a.VALUE")})
    with zipfile.ZipFile(project.folder / "it.zip", "w") as file:
        file.writestr("zipped/__init__.py", "")
        file.writestr("zipped/a.py", "VALUE = 2\n")
    monkeypatch.syspath_prepend(str(project.folder / "it.zip"))
    assert result(project.node(), empty) == 2


def test_an_imported_package_knows_where_its_modules_are(project: Project, empty: Path) -> None:
    project.write({"main.py": answers("import pkg.more\nreturn pkg.more.VALUE", "import pkg\nimport pkg.one\n")})
    extend = "import os\n__path__ = [*__path__, os.path.join(os.path.dirname(__path__[0]), 'elsewhere')]\n"
    project.write({**PACKAGE, "pkg/__init__.py": extend, "elsewhere/more.py": "VALUE = 3\n"})
    assert result(project.node(), empty) == 3


@pytest.mark.parametrize("suffix", [EXTENSION_SUFFIXES[0], ".pyc"])
def test_compiled_modules_are_refused(project: Project, suffix: str) -> None:
    file = project.folder / f"fast{suffix}"
    project.write({"main.py": answers("def f():\n    import fast\n"), "plain.py": "VALUE = 1\n"})
    py_compile.compile(str(project.folder / "plain.py"), cfile=str(file))
    with pytest.raises(PaddleFlowSDKException, match=r"imports the local module \[fast\]") as caught:
        project.node()
    assert str(file) in str(caught.value)
    assert "Install the package it belongs to" in str(caught.value)


def noise(count: int, seed: str = "") -> str:
    """Text that cannot be made smaller than half."""
    return "".join(hashlib.sha256(f"{seed}{at}".encode()).hexdigest() for at in range(count // 64))


def test_what_does_not_fit_is_compressed(project: Project, empty: Path) -> None:
    lines = "".join(f"LINE_{at} = {at}\n" for at in range(20_000))
    project.write({"main.py": answers("return helper.LINE_19999", "import helper"), "helper.py": lines})
    node = project.node()
    assert len(node["command"]) < 110_000 < len(lines)
    assert result(node, empty) == 19_999


def test_compressed_bytes_are_the_same_everywhere(project: Project) -> None:
    """Or else the same step would be computed again by each release of Python. So it is with 3.11, 3.12 and 3.13."""
    project.write({"main.py": answers("import a"), "a.py": noise(140_000)})
    words = shlex.split(project.node()["command"])
    assert (
        hashlib.sha256(words[4].encode()).hexdigest()
        == "bbaff45cb43271f7347ff1495977175239fb1ae650a8502442825f63db7fcb8a"
    )


def test_too_much_is_refused(project: Project) -> None:
    sizes = {f"m{at}": 64 * (400 - at) for at in range(9)}
    project.write({f"{name}.py": f"X = '{noise(size, name)}'\n" for name, size in sizes.items()})
    project.write({"main.py": answers(f"import {', '.join(sizes)}")})
    with pytest.raises(PaddleFlowSDKException, match=r"local modules it imports \(9\)") as caught:
        project.node()
    said = str(caught.value)
    assert "the limit is 110000" in said
    assert "The largest are m0 (25607 bytes), m1 (25543 bytes)" in said
    assert "m5" not in said
    assert "install them as a package (not editable)" in said


@st.composite
def projects(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    """Modules at any place of a small tree, with any imports between them, in any form. And the body of a step."""
    packages = ["", *draw(st.lists(st.sampled_from(["p", "p.q", "r", "p.q.s"]), unique=True))]
    packages = sorted({package[:at] for package in packages for at in (*places(package), len(package))})
    files = {f"{package.replace('.', '/')}/__init__.py": "" for package in packages if package and draw(st.booleans())}
    homes = draw(st.lists(st.sampled_from(packages), min_size=1, max_size=7))
    names = [f"{home}.m{at}".lstrip(".") for at, home in enumerate(homes)]
    for name in names:
        targets = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
        files[f"{name.replace('.', '/')}.py"] = module_text(draw, name, targets)
    roots = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    calls = "\n".join(f"{root}.visit(seen)" for root in roots)
    imports = "\n".join(f"import {root}" for root in roots)
    return files, f"{imports}\nseen = []\n{calls}\nreturn seen"


def places(name: str) -> list[int]:
    return [at for at, letter in enumerate(name) if letter == "."]


def module_text(draw: st.DrawFn, name: str, targets: list[str]) -> str:
    home = name.rpartition(".")[0]
    top, body = [], ["    if __name__ in seen: return", "    seen.append(__name__)"]
    for target in targets:
        package, _, last = target.rpartition(".")
        forms = {
            "top": (f"import {target}", f"    {target}.visit(seen)"),
            "inside": ("", f"    import {target} as found; found.visit(seen)"),
            "name": ("", f"    from {target} import visit as other; other(seen)"),
            "literal": ("", f"    __import__('importlib').import_module({target!r}).visit(seen)"),
            "try": (f"try:\n    import nowhere\nexcept ImportError:\n    import {target}", f"    {target}.visit(seen)"),
        }
        if package:
            forms["from"] = ("", f"    from {package} import {last} as found; found.visit(seen)")
        if home and home == package:
            forms["sibling"] = ("", f"    from . import {last} as found; found.visit(seen)")
            forms["of a sibling"] = ("", f"    from .{last} import visit as other; other(seen)")
        if home and "." in home and target.startswith(home.rpartition(".")[0] + "."):
            above = target.removeprefix(home.rpartition(".")[0] + ".")
            forms["above"] = ("", f"    from ..{above} import visit as other; other(seen)")
        first, second = forms[draw(st.sampled_from(sorted(forms)))]
        top.append(first)
        body.append(second)
    return "\n".join([*top, "def visit(seen):", *body, ""])


@settings(max_examples=25)
@given(projects())
def test_any_project_runs_elsewhere_as_it_does_here(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[dict[str, str], str]
) -> None:
    files, body = made
    folder = tmp_path_factory.mktemp("random")
    project, empty = Project(folder / "project"), folder / "empty"
    empty.mkdir()
    project.write({**files, "main.py": answers(body)})
    here = f"def f():\n    {body.replace(chr(10), chr(10) + '    ')}\nimport json; print(json.dumps(f()))"
    local = subprocess.run([sys.executable, "-c", here], cwd=project.folder, capture_output=True, text=True, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(project.folder))
        try:
            node, names = project.node(), project.names()
        finally:
            sys.modules.pop("main")
    seen = json.loads(local.stdout)
    assert [name for name in names if "m" in name] == sorted(seen)
    assert result(node, empty) == seen
