"""Pipelines from the command line against a real server: run, watch, explain, fetch, retry, keep, schedule, delete."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
from pathlib import Path

import pytest

from paddleflow import Client
from tests.cli.test_cli_e2e import Shell, port, shell
from tests.e2e.servers import RUN_DEADLINE_S
from tests.programs import started
from tests.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.timeout(600)

__all__ = ["port", "shell"]

PIPELINE = """\
name: demo
entry_points:
  load:
    command: echo '[1, 2, 3]' > {{out}}; cat {{note}}
    parameters: {note: NOTE}
    artifacts: {output: [out]}
    cache: {enable: true}
  many:
    deps: load
    loop_argument: "{{items}}"
    artifacts: {input: {items: "{{load.out}}"}}
    command: echo item {{PF_LOOP_ARGUMENT}}
  train:
    deps: many
    parameters: {code: 0}
    command: echo training; exit {{code}}
post_process:
  notify: {command: echo told}
"""


@pytest.fixture
def file(shell: Shell, tmp_path: Path) -> Path:
    """A pipeline, on a filesystem of the name of the test's directory."""
    data = tmp_path / "data"
    data.mkdir()
    note = tmp_path / "note"
    note.write_text("noted\n")
    shell.ok("fs", "create", fs_of(tmp_path), f"local:/{data}")
    path = tmp_path / "run.yaml"
    path.write_text(PIPELINE.replace("NOTE", str(note)))
    return path


def fs_of(tmp_path: Path) -> str:
    return "fs" + re.sub(r"\W", "", tmp_path.name)[-12:]


def created(said: str) -> str:
    found = re.search(r"run id\[(run-\d+)\]", said)
    assert found, said
    return found.group(1)


def test_a_run_from_create_to_delete(shell: Shell, file: Path, tmp_path: Path) -> None:
    fs = fs_of(tmp_path)
    watched = shell("run", "create", "-f", fs, "-yr", str(file), "--watch")
    first = created(watched.out)
    assert watched.code == 0, watched
    assert watched.out.splitlines()[0] == f"run[{fs}] create success with run id[{first}]"
    for ended in ("load", "many[0]", "many[2]", "train", "post_process.notify", first):
        assert re.search(rf"^{re.escape(ended)} succeeded", watched.out, re.MULTILINE), watched.out
    assert "steps ended; Run successfully" in watched.err
    assert watched.out.splitlines()[-1].startswith(f"{first} succeeded"), "what holds all others ends last"

    shown = shell.json("run", "show", first)[0]
    runtime = shown["runtime in json"]
    assert isinstance(runtime, dict)
    assert [step["status"] for step in runtime["many"]] == ["succeeded"] * 3
    assert "critical path: load → many" in shell.ok("run", "show", first)
    assert [row["run id"] for row in shell.json("run", "list", "-r", first, "-s", "final")] == [first]

    log = shell.ok("log", "run", first)
    assert "submit log:" in log
    assert all(f"item {item}" in log for item in (1, 2, 3))

    made = shell.json("run", "artifacts", first)
    path = str(made[0]["artifact path"])
    assert (made[0]["step"], made[0]["artifact name"]) == ("load", "out")
    target = tmp_path / "fetched"
    shell.ok("run", "download", first, path, "-o", str(target))
    assert json.loads(target.read_text()) == [1, 2, 3]
    again = tmp_path / "again"
    shell.ok("run", "download", first, "load.out", "-o", str(again))
    assert again.read_text() == target.read_text()
    assert shell.ok("run", "lineage", first, "load.out") == shell.ok("run", "lineage", fs, path)
    uses = [(row["use"], row["step"]) for row in shell.json("run", "lineage", fs, path)]
    assert ("made by", "load") in uses
    assert ("read by", "many") in uses

    assert shell.ok("run", "delete", first) == f"run id [{first}] delete success\n"
    assert shell("run", "show", first).code == 5
    assert shell("run", "watch", first).code == 5


def test_results_are_used_again_and_said_why(shell: Shell, file: Path, tmp_path: Path) -> None:
    fs = fs_of(tmp_path)
    first = created(shell.ok("run", "create", "-f", fs, "-yr", str(file), "--wait"))
    second = created(shell.ok("run", "create", "-f", fs, "-yr", str(file), "-w"))
    assert f"as it was in {first}" in shell.ok("run", "why-cached", second, "load")
    taken = shell.json("run", "artifacts", second)
    assert [(row["step"], row["artifact name"], row["made by"]) for row in taken] == [("load", "out", first)]
    target = tmp_path / "taken"
    shell.ok("run", "download", second, "load.out", "-o", str(target))
    assert json.loads(target.read_text()) == [1, 2, 3]
    file.write_text(file.read_text().replace("[1, 2, 3]", "[1, 2]"))
    third = created(shell.ok("run", "create", "-f", fs, "-yr", str(file), "-w"))
    told = shell.ok("run", "why-cached", third, "load")
    assert "command" in told
    assert "[1, 2, 3]" in told
    kept = shell.json("run", "listcache", "-f", fs)
    assert [row["run id"] for row in kept] == [first, third]
    ident = str(kept[0]["cache id"])
    assert shell.json("run", "showcache", ident)[0]["run id"] == first
    assert shell("run", "delete", first).code == 1, "another run relies on it"
    assert shell.ok("run", "deletecache", ident) == f"cache id [{ident}] delete success\n"
    assert shell("run", "showcache", ident).code == 5


def test_failure_and_retry(shell: Shell, file: Path, tmp_path: Path) -> None:
    failed = shell("run", "create", "-f", fs_of(tmp_path), "-yr", str(file), "-p", "train.code=3", "-w")
    first = created(failed.out)
    assert (failed.code, "failed" in failed.err) == (1, True)
    said = shell.ok("run", "retry", first)
    found = re.fullmatch(rf"run id\[{first}\] retry success, new run id is \[(run-\d+)\]\n", said)
    assert found
    again = shell("run", "watch", found.group(1))
    assert again.code == 1
    assert re.search(r"^load succeeded", again.out, re.MULTILINE)
    assert re.search(r"^train failed: exit code 3", again.out, re.MULTILINE)


def test_stop(shell: Shell, file: Path, tmp_path: Path, port: int) -> None:
    file.write_text(PIPELINE.replace("echo training;", "sleep 600;").replace("cat {{note}}", "true"))
    ident = created(shell.ok("run", "create", "-f", fs_of(tmp_path), "-yr", str(file)))
    with Client("127.0.0.1", "root", "paddleflow", port) as client:
        client.login("root", "paddleflow")
        for run in client.watch_run(ident):
            if any(step.status == "running" for step in run.runtime.get("train", [])):
                break
        assert shell.ok("run", "stop", ident) == f"runid[{ident}] stop success\n"
        _, run = client.wait_run(ident, timeout=RUN_DEADLINE_S)
    assert run.status == "terminated"
    assert run.post_process["notify"].status == "succeeded"
    assert shell("run", "stop", ident).code == 1


def test_ctrl_c_leaves_the_run_running(shell: Shell, file: Path, tmp_path: Path) -> None:
    file.write_text(PIPELINE.replace("echo training;", "sleep 600;").replace("cat {{note}}", "true"))
    ident = created(shell.ok("run", "create", "-f", fs_of(tmp_path), "-yr", str(file)))
    seen = ""
    with started(shell.words("run", "watch", ident)) as watching:
        assert watching.stdout is not None
        for line in watching.stdout:
            seen += line
            if line.startswith("train running"):
                break
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=DEADLINE_S)
    assert (watching.returncode, "keeps running" in err) == (130, True), (seen, err)
    assert shell.json("run", "list", "-r", ident)[0]["status"] == "running"
    shell.ok("run", "stop", ident, "-f")


def test_the_drawing_in_a_terminal(shell: Shell, file: Path, tmp_path: Path) -> None:
    words = shell.words("run", "create", "-f", fs_of(tmp_path), "-yr", str(file), "--watch")
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color"}
    seen = b""
    with started(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as watching:
        os.close(theirs)
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            pass  # how Linux says that the other end of a terminal is closed
        watching.wait(RUN_DEADLINE_S)
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert watching.returncode == 0, text
    assert "✔ many" in text
    assert "3/3" in text
    assert "✔ notify" in text


def test_dry_run_finds_what_a_run_would(shell: Shell, file: Path, tmp_path: Path) -> None:
    fs = fs_of(tmp_path)
    good = shell.ok("run", "create", "-f", fs, "-yr", str(file), "--dry-run")
    assert good == shell.ok("run", "check", "-f", fs, str(file))
    file.write_text(file.read_text().replace("deps: many", "deps: few"))
    bad = shell("run", "create", "-f", fs, "-yr", str(file), "--dry-run")
    assert (bad.code, bad.out) == (1, "")
    assert f"{file}:14: component [train] has an wrong dep [few]" in bad.err
    assert bad.err == shell("run", "check", "-f", fs, str(file)).err


def test_pipelines_and_schedules(shell: Shell, file: Path, tmp_path: Path) -> None:
    fs = fs_of(tmp_path)
    name = "kept" + fs
    (tmp_path / "data" / "run.yaml").write_text(file.read_text().replace("name: demo", f"name: {name}"))
    said = shell.ok("pipeline", "create", fs, "-d", "for tests")
    found = re.fullmatch(rf"pipeline\[{name}\] create  success, id\[(ppl-\d+)\], versionID\[1\]\n", said)
    assert found, said
    ident = found.group(1)
    assert shell.ok("pipeline", "update", ident, fs, "run.yaml").endswith("new version id [2]\n")
    assert [row["pipeline id"] for row in shell.json("pipeline", "list", "-n", name)] == [ident]
    versions = shell.json("pipeline", "show", ident)[0]["versions"]
    assert [row["ppl ver id"] for row in versions] == ["1", "2"]  # type: ignore[attr-defined]
    assert f"name: {name}" in shell.ok("pipeline", "showversion", ident, "2")
    run = created(shell.ok("run", "create", "-pplid", ident, "-pplver", "1", "-f", fs, "-w"))
    assert shell.json("run", "show", run)[0]["source"] == f"{ident}-1"

    # Each tick is on time or not recorded at all, so that the one that is seen is the schedule's.
    words = ("schedule", "create", "often", ident, "2", "@every 1s", "-c", "1", "-cp", "skip", "--no-catchup")
    said = shell.ok(*words)
    schedule = said.removeprefix("schedule [often] create success with schedule id[").removesuffix("]\n")

    def has_run() -> bool:
        runs = shell.json("schedule", "show", schedule)[0]["runs"]
        assert isinstance(runs, list)
        return any(row["status"] == "succeeded" for row in runs)

    wait_for(has_run, "a run of the schedule", deadline_s=RUN_DEADLINE_S)
    assert shell("pipeline", "delete", ident).code == 1, "a schedule uses it"
    options = shell.json("schedule", "list", "-p", ident)[0]["options"]
    assert options == {"catchup": False, "expireInterval": 0, "concurrency": 1, "concurrencyPolicy": "skip"}
    assert shell.ok("schedule", "stop", schedule) == f"schedule with id [{schedule}] stop success\n"
    assert shell.ok("schedule", "delete", schedule) == f"schedule with id [{schedule}] delete success\n"
    deleted = f"pipeline version [{ident}] of pipeline [1] delete success\n"
    assert shell.ok("pipeline", "deleteversion", ident, "1") == deleted
    assert shell.ok("pipeline", "delete", ident) == f"pipeline id [{ident}] delete success\n"
