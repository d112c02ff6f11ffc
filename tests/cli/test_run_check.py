"""``run check`` and ``pipeline export``: a file judged and turned into a plan right here, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddleflow.cli.main import run
from tests.cli.conftest import Paddleflow

PIPELINE = """\
name: demo
docker_env: python:3.11
parallelism: 4
fs_options:
  main_fs: {name: data}
entry_points:
  load:
    command: echo load > {{out}}
    artifacts: {output: [out]}
    cache: {enable: true}
  clean:
    deps: load
    command: cat {{data}}
    docker_env: busybox
    artifacts:
      input: {data: "{{load.out}}"}
  sub:
    deps: load
    loop_argument: [1, 2, 3]
    entry_points:
      a: {command: echo a}
      b: {command: echo b, deps: a, retry: {times: 2}}
  train:
    deps: clean,sub
    parameters: {lr: {type: float, default: 0.1}, go: "yes"}
    condition: "{{go}} == yes"
    command: python train.py --lr {{lr}}
    timeout: 60
post_process:
  notify: {command: echo done}
"""

DRAWING = """\
demo: 6 steps, at most 4 at a time, failure strategy fail_fast, main filesystem data, image python:3.11
●   load   cached · $ echo load > {{out}}
├─● clean  image busybox · $ cat {{data}}
● │ sub    loop: 3 items
│ │   ● a  $ echo a
│ │   ● b  2 retries · $ echo b
╰─● train  if {{go}} == yes · timeout 60s · $ python train.py --lr {{lr}}
and at the end, whatever happened:
● notify   $ echo done
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(PIPELINE)
    return path


def check(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Without any config: it must not need one."""
    code = run(list(words))
    out, err = capsys.readouterr()
    return int(code), out, err


def test_a_good_file_is_drawn(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "run", "check", str(file)) == (0, DRAWING, "")


def test_every_problem_is_told_with_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(PIPELINE.replace("deps: clean,sub", "deps: clean,nobody").replace("{{lr}}", "{{lrr}}"))
    code, out, err = check(capsys, "run", "check", str(file))
    assert (code, out) == (1, "")
    first, second, last = err.splitlines()
    assert first.startswith(f"{file}:24: component [train] has an wrong dep [nobody]")
    assert second.startswith(f"{file}:27: unsupported RefParamName[lrr]")
    assert last == f"{file} has 2 problems"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("entry_points:\n  a: {command: [1]}\n", 2),
        ("name: demo\nentry_points: {a: {comand: x}}\n", 2),
        ("name: [\n", None),
    ],
)
def test_what_cannot_be_read_is_told_once(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, line: int | None
) -> None:
    file.write_text(text)
    code, _, err = check(capsys, "run", "check", str(file))
    complaint, last = err.splitlines()
    assert (code, last) == (1, f"{file} has 1 problem")
    if line is not None:
        assert complaint.startswith(f"{file}:{line}: ")
        assert "(line" not in complaint


def test_bytes_that_are_no_text(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"name: \xff\xfe")
    code, _, err = check(capsys, "run", "check", str(file))
    assert (code, "UTF-8" in err) == (1, True)


def test_parameters_and_steps_left_out(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--output", "json", "run", "check", str(file), "-p", "lr=0.5", "--disabled", "sub", "-n", "other")
    code, out, _ = check(capsys, *words)
    told = json.loads(out)
    nodes = {node["path"]: node for node in told["plan"]["nodes"]}
    assert (code, told["valid"], told["problems"], told["plan"]["name"]) == (0, True, [], "other")
    assert (nodes["train"]["parameters"]["lr"], nodes["sub"]["disabled"]) == (0.5, True)


def test_problems_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, "--output", "json", "run", "check", str(file), "-p", "nobody=1")
    assert (code, err) == (1, "")
    assert json.loads(out) == {
        "valid": False,
        "problems": [{"message": "param[nobody] not exist", "path": "", "line": None}],
        "plan": None,
    }


def test_json_files_are_pipelines_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(json.dumps({"name": "demo", "entry_points": {"a": {"command": "echo hi"}}}))
    code, out, _ = check(capsys, "--output", "text", "run", "check", str(file))
    assert (code, out.split(" \t")[:2]) == (0, ["a", "step"])


def test_a_missing_file_is_a_wrong_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "run", "check", str(tmp_path / "none.yaml"))[0] == 2


def test_check_asks_no_server(paddleflow: Paddleflow, file: Path) -> None:
    assert paddleflow("run", "check", str(file))[0] == 0


EXPORTABLE = "name: demo\ndocker_env: busybox\nentry_points:\n  a: {command: echo a}\n  b: {command: echo b, deps: a}\n"


@pytest.mark.parametrize("engine", ["argo", "airflow"])
def test_export(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: str) -> None:
    file.write_text(EXPORTABLE)
    code, out, err = check(capsys, "pipeline", "export", "--to", engine, str(file))
    assert (code, err) == (0, "")
    assert ("Workflow" if engine == "argo" else "import") in out
    target = tmp_path / "exported"
    code, said, _ = check(capsys, "pipeline", "export", "--to", engine, str(file), "-o", str(target))
    assert (code, said) == (0, f"pipeline[demo] export success, written to {target}\n")
    assert target.read_text().strip() == out.strip()


def test_export_of_what_is_wrong(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(EXPORTABLE.replace("deps: a", "deps: nobody"))
    code, out, err = check(capsys, "pipeline", "export", "--to", "argo", str(file))
    assert (code, out) == (1, "")
    assert "has 1 problem" in err


def test_export_takes_the_filesystem_and_the_image_from_the_command_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("name: demo\nentry_points:\n  a: {command: 'echo a > {{out}}', artifacts: {output: [out]}}\n")
    code, out, err = check(capsys, "pipeline", "export", "--to", "argo", str(file))
    assert (code, out, "no Fs mounted" in err) == (1, "", True)
    words = ("-f", "shelf", "-de", "busybox:1.36")
    code, out, err = check(capsys, "pipeline", "export", "--to", "argo", *words, str(file))
    assert (code, err) == (0, "")
    assert "claimName: shelf" in out
    assert "image: busybox:1.36" in out
