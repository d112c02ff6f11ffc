"""What the pages about pipelines tell a reader to type is typed, and what they say one sees is seen."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from paddleflow import Client
from paddleflow.cli.main import cli
from paddleflow.documents import load
from tests.e2e.reader import Reader, serving
from tests.e2e.servers import RUN_DEADLINE_S

pytestmark = pytest.mark.timeout(600)

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = DOCS / "tutorial" / "first-pipeline.md"
HOWTO = DOCS / "howto" / "pipelines.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    before: str
    """The text above it."""
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(text[: found.start()].rstrip(), *found.groups()) for found in FENCE.finditer(text)]


def commands(block: Block) -> list[str]:
    return [line for line in block.text.splitlines() if line.startswith("paddleflow ")]


class Shell:
    """One that is kept open: it stays in the directory it was told to go to."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self._reader = reader
        self.folder = folder

    def type(self, line: str) -> str:
        if line.startswith("cd "):
            self.folder /= line.removeprefix("cd ")
            return ""
        done = self._reader.start(["sh", "-c", line], self.folder)
        assert (done.returncode != 0) == line.endswith("# it fails"), f"{line}\n{done.stdout}"
        return done.stdout


def test_the_tutorial_from_top_to_bottom(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as server:
        shell = Shell(Reader(tmp_path / "home", server), tmp_path)
        shown = ""
        for block in blocks(TUTORIAL):
            match block.language:
                case "sh":
                    shown = "".join(shell.type(line) for line in block.text.splitlines())
                case "text":
                    seen = {plain(line) for line in shown.splitlines()}
                    assert [line for line in block.text.splitlines() if plain(line) not in seen] == [], shown
                case "yaml" | "python":
                    (name,) = re.findall(r"`([\w]+\.\w+)`:$", block.before)
                    with (shell.folder / name).open("a") as file:
                        file.write(f"\n{block.text}")
                case _:
                    assert "paddleflow serve" in block.text


def plain(line: str) -> str:
    return " ".join(line.split())


@pytest.mark.parametrize("page", [TUTORIAL, HOWTO], ids=lambda page: page.name)
def test_every_command_exists_with_its_options(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.yaml", "shaky.yaml"):
        (tmp_path / name).touch()
    typed = [line for block in blocks(page) if block.language == "sh" for line in commands(block)]
    assert len(typed) > 10
    for line in typed:
        words = shlex.split(line, comments=True)[1:]
        command: click.Command = cli
        context = None
        while isinstance(command, click.Group):
            # Parsed, as if it were to be run; what it would do is not done.
            context = command.make_context(command.name, words, parent=context)
            _, found, words = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            command = found
        command.make_context(command.name, words, parent=context)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, Client]]:
    place = tmp_path_factory.mktemp("docs")
    data = place / "data"
    (data / "src").mkdir(parents=True)
    (data / "work").mkdir()
    (data / "src" / "code").write_text("print(1)\n")
    with serving(place / "state") as server, Client("127.0.0.1", "root", "paddleflow", server.port) as client:
        client.login("root", "paddleflow")
        client.add_fs("data", f"local://{data}")
        yield Shell(Reader(place / "home", server), data), client


@pytest.mark.parametrize(
    "block", [block for block in blocks(HOWTO) if block.language == "yaml"], ids=lambda block: block.text.split(":")[0]
)
def test_every_pipeline_of_the_howto_runs(shell: tuple[Shell, Client], block: Block) -> None:
    _, client = shell
    text = block.text
    if "entry_points" not in dict(load(text).value):  # type: ignore[call-overload]  # a mapping, or the test fails here
        text = "name: howto\nentry_points:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    _, run_id = client.create_run("data", run_yaml_raw=text)
    _, run = client.wait_run(run_id, timeout=RUN_DEADLINE_S)
    assert run.status == "succeeded", run.run_msg
    assert not any(view.status == "skipped" for views in run.runtime.values() for view in views)


def test_every_program_of_the_howto_runs(shell: tuple[Shell, Client]) -> None:
    reader, client = shell
    programs = [block for block in blocks(HOWTO) if block.language == "python"]
    assert programs
    for block in programs:
        (reader.folder / "program.py").write_text(block.text)
        _, run = client.wait_run(reader.type("python program.py").strip(), timeout=RUN_DEADLINE_S)
        assert run.status == "succeeded", run.run_msg
