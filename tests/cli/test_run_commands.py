"""``run``, ``pipeline``, ``schedule`` and ``log run`` against recorded answers: what is sent, and what is printed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from paddleflow.cli.main import cli
from paddleflow.documents import load
from paddleflow.planning.codec import dump_plan
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.source import Limits, Overrides
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import Answer, RecordedServer, error, ok
from tests.sdk.run_answers import (
    ARTIFACT,
    CACHE,
    PIPELINE,
    SCHEDULE,
    VERSION,
    brief_json,
    dag_json,
    run_json,
    step_json,
    timed_json,
    timing_json,
)

RUN = "/run/run-000001"
MADE = {"pipelineID": "ppl-000001", "pipelineVersionID": "2", "name": "demo"}
SUCCESS_LINES: list[tuple[str, tuple[str, str], Any, str]] = [
    (
        "run create -f data",
        ("POST", "/run"),
        {"runID": "run-000001"},
        "run[data] create success with run id[run-000001]",
    ),
    (
        "run create -pplid ppl-000001",
        ("POST", "/run"),
        {"runID": "run-000001"},
        "run[None] create success with run id[run-000001]",
    ),
    ("run stop run-000001", ("PUT", RUN), None, "runid[run-000001] stop success"),
    (
        "run retry run-000001",
        ("PUT", RUN),
        {"runID": "run-000002"},
        "run id[run-000001] retry success, new run id is [run-000002]",
    ),
    ("run delete run-000001", ("DELETE", RUN), None, "run id [run-000001] delete success"),
    ("run deletecache cch-1", ("DELETE", "/runCache/cch-1"), None, "cache id [cch-1] delete success"),
    (
        "pipeline create data",
        ("POST", "/pipeline"),
        MADE,
        "pipeline[demo] create  success, id[ppl-000001], versionID[2]",
    ),
    (
        "pipeline update ppl-000001 data run.yaml",
        ("POST", "/pipeline/ppl-000001"),
        MADE,
        "pipeline[ppl-000001] update success, new version id [2]",
    ),
    ("pipeline delete ppl-1", ("DELETE", "/pipeline/ppl-1"), None, "pipeline id [ppl-1] delete success"),
    (
        "pipeline deleteversion ppl-1 2",
        ("DELETE", "/pipeline/ppl-1/2"),
        None,
        "pipeline version [ppl-1] of pipeline [2] delete success",
    ),
    (
        "schedule create nightly ppl-1 1 @daily",
        ("POST", "/schedule"),
        {"scheduleID": "schedule-000001"},
        "schedule [nightly] create success with schedule id[schedule-000001]",
    ),
    ("schedule stop schedule-1", ("PUT", "/schedule/schedule-1"), None, "schedule with id [schedule-1] stop success"),
    (
        "schedule delete schedule-1",
        ("DELETE", "/schedule/schedule-1"),
        None,
        "schedule with id [schedule-1] delete success",
    ),
]


@pytest.mark.parametrize(("line", "endpoint", "answer", "said"), SUCCESS_LINES)
def test_success_line(
    server: RecordedServer, paddleflow: Paddleflow, line: str, endpoint: tuple[str, str], answer: Any, said: str
) -> None:
    server.on(*endpoint, ok(answer))
    assert paddleflow(*line.split()) == (0, said + "\n", "")


@pytest.mark.parametrize(
    ("line", "path", "answer", "said"),
    [
        ("run list", "/run", {"runList": []}, "no run found "),
        ("run listcache", "/runCache", {"runCacheList": []}, "no cache found "),
        ("run listartifact", "/artifact", {"artifactEventList": []}, "no artifact found "),
        ("run artifacts run-000001", RUN, run_json(), "no artifact found "),
        ("pipeline list", "/pipeline", {"pipelineList": []}, "no pipeline found "),
        ("schedule list", "/schedule", {"scheduleList": []}, "no schedule found "),
    ],
)
def test_empty_list(
    server: RecordedServer, paddleflow: Paddleflow, line: str, path: str, answer: Any, said: str
) -> None:
    server.on("GET", path, ok(answer))
    assert paddleflow(*line.split()) == (0, said + "\n", "")
    assert paddleflow("--output", "json", *line.split())[1].strip() == "[]"


OPTIONS = {
    "run create": "-f --fsname -n --name -d --desc -u --username -p --param -yp --runyamlpath -yr --runyamlraw "
    "-pplid --pipelineid -pplver --pipelineversionid --disabled -de --dockerenv -w --wait --watch --dry-run",
    "run list": "-f --fsname -u --username -r --runid -n --name -s --status -m --maxsize -mk --marker",
    "run show": "run_id --detail --yaml",
    "run retry": "run_id",
    "run stop": "run_id -f --force",
    "run delete": "run_id -not-cc --notcheckcache",
    "run listcache": "-u --userfilter -f --fsfilter -r --runfilter -m --maxkeys -mk --marker",
    "run showcache": "cache_id",
    "run deletecache": "cache_id",
    "run listartifact": "-u --userfilter -f --fsfilter -r --runfilter -t --typefilter -p --pathfilter -m --maxkeys "
    "-mk --marker",
    "pipeline create": "fs_name -yp --yamlpath -yr --yamlraw -d --desc -u --username",
    "pipeline list": "-u --userfilter -n --namefilter -m --maxkeys -mk --marker",
    "pipeline show": "pipeline_id -f --fsfilter -m --maxkeys -mk --marker",
    "pipeline delete": "pipeline_id",
    "pipeline update": "pipeline_id fs_name yaml_path -yr --yamlraw -u --username -d --desc",
    "pipeline showversion": "pipeline_id pipeline_version_id",
    "pipeline deleteversion": "pipeline_id pipeline_version_id",
    "schedule create": "name ppl_id ppl_ver_id crontab -d --desc -s --starttime -e --endtime -c --concurrency "
    "-cp --concurrencypolicy -ei --expireinterval --catchup --timezone -u --username",
    "schedule list": "-u --userfilter -n --namefilter -p --pplfilter -pv --pplverfilter -s --statusfilter -m --maxkeys "
    "-mk --marker",
    "schedule show": "schedule_id -r --runfilter -s --statusfilter -m --maxkeys -mk --marker",
    "schedule stop": "schedule_id",
    "schedule delete": "schedule_id",
    "log run": "runid -j --jobid -ps --pagesize -pn --pageno -fp --logfileposition",
    "log show": "runid -j --jobid -ps --pagesize -pn --pageno -fp --logfileposition",
}


@pytest.mark.parametrize(("line", "options"), OPTIONS.items())
def test_options_are_those_scripts_use(line: str, options: str) -> None:
    group, name = line.split()
    with cli.make_context("paddleflow", [group], resilient_parsing=True) as ctx:
        command = cli.get_command(ctx, group)
        assert isinstance(command, click.Group)
        found = command.get_command(ctx, name)
        assert found is not None
    assert " ".join(option for param in found.params for option in param.opts) == options


@pytest.mark.parametrize("group", ["run", "pipeline", "schedule"])
def test_every_command_says_what_it_does_in_one_line(group: str) -> None:
    shown = CliRunner().invoke(cli, [group, "--help"], terminal_width=80).output
    listed = shown.split("Commands:\n")[1].splitlines()
    assert [line for line in listed if line.endswith("...") or not line[2:].strip()] == []
    assert [line for line in listed if line.startswith("    ")] == [], "each on one line"


def test_create_sends_the_local_file_and_what_was_said(
    server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("name: demo\n")
    server.on("POST", "/run", ok({"runID": "run-000001"}, 201))
    words = f"run create -f data -n mine -d why -p lr=0.1 -p s=a=b --disabled a --disabled b.c -de img -yr {file}"
    assert paddleflow(*words.split())[0] == 0
    assert server.asked[-1].body == {
        "fsName": "data",
        "name": "mine",
        "desc": "why",
        "parameters": {"lr": "0.1", "s": "a=b"},
        "disabled": "a,b.c",
        "dockerEnv": "img",
        "runYamlRaw": base64.b64encode(b"name: demo\n").decode(),
    }
    assert paddleflow("run", "create", "-f", "data", "-p", "nonsense")[0] == 2
    code, _, err = paddleflow("run", "create", "-yp", "run.yaml")
    assert (code, "say what to run: -yr FILE" in err) == (2, True), "on which filesystem that file is was not said"


def test_dry_run_shows_what_the_server_makes_of_it(server: RecordedServer, paddleflow: Paddleflow) -> None:
    document = load("name: demo\nentry_points:\n  a: {command: echo hi}\n")
    plan = compile_plan(parse(document.value, document.lines), Overrides(), Limits())
    good = {"valid": True, "problems": [], "plan": json.loads(dump_plan(plan)), "graph": {}}
    problem = {"message": "no parameter", "path": "entry_points.a", "line": 3}
    bad = {"valid": False, "problems": [problem], "plan": None, "graph": None}
    server.on("POST", "/run/check", ok(good), ok(bad))
    code, out, err = paddleflow("run", "create", "-f", "data", "--dry-run")
    assert (code, out.splitlines()[1], err) == (0, "● a  $ echo hi", "")
    code, out, err = paddleflow("run", "create", "-pplid", "ppl-000001", "--dry-run")
    assert (code, out) == (1, "")
    assert err.splitlines() == ["ppl-000001:3: no parameter (at entry_points.a)", "ppl-000001 has 1 problem"]
    assert not server.calls("POST", "/run")


def test_run_list(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/run", ok({"runList": [brief_json()], "nextMarker": "m"}))
    code, out, _ = paddleflow("run", "list", "-s", "active,failed")
    lines = out.splitlines()
    assert (code, lines[0], lines[-1]) == (0, "1 runs shown under:", "marker: m")
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        "run id",
        "fs name",
        "username",
        "status",
        "name",
        "description",
        "run msg",
        "source",
        "schedule id",
        "scheduled time",
        "create time",
        "activate time",
        "update time",
    ]
    assert server.asked[-1].query["statusFilter"] == "initiating,pending,running,terminating,failed"
    paddleflow("run", "list", "-s", "final")
    assert server.asked[-1].query["statusFilter"] == "succeeded,failed,terminated,skipped"
    assert json.loads(paddleflow("--output", "json", "run", "list")[1])[0]["run id"] == "run-000001"
    assert paddleflow("--output", "text", "run", "list")[0] == 0


def test_run_show_in_detail(server: RecordedServer, paddleflow: Paddleflow) -> None:
    timing = timing_json(
        timed_json("load", 1.25, 2.5, critical=True),
        timed_json("train[0]", 0, 75, reused=True),
        timed_json("sub", 0, 80, type="dag"),
        total=90.4,
    )
    server.on("GET", RUN, ok(run_json("succeeded", postProcess={"notify": step_json("notify")})))
    server.on("GET", f"{RUN}/timing", ok(timing))
    code, out, _ = paddleflow("run", "show", "run-000001", "--detail")
    assert code == 0
    first = next(line for line in out.splitlines() if line.startswith("| run id"))
    assert [cell.strip() for cell in first.strip("|").split("|")] == [
        "run id",
        "status",
        "name",
        "desc",
        "param",
        "source",
        "run msg",
        "create time",
        "update time",
        "activate time",
    ]
    for title in ("run yaml detail", "runtime in json", "postProcess in json"):
        assert f"| {title}" in out
    told = out.split("where the time went:\n")[1].splitlines()
    assert [line.split() for line in told[2:4]] == [
        ["load", "succeeded", "1.2s", "2.5s", "3.8s", "critical"],
        ["train[0]", "succeeded", "0.0s", "1m15s", "1m15s", "reused"],
    ]
    assert told[4:] == ["critical path: load", "total: 1m30s"]
    whole = json.loads(paddleflow("--output", "json", "run", "show", "run-000001")[1])[0]
    assert whole["runtime in json"]["load"][0]["stepName"] == "load"
    assert whole["timing"]["criticalPath"] == ["load"]
    assert paddleflow("--output", "text", "run", "show", "run-000001")[0] == 0


def test_run_stop_and_delete_say_how(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("PUT", RUN, ok())
    server.on("DELETE", RUN, ok())
    paddleflow("run", "stop", "run-000001", "-f")
    assert server.asked[-1].body == {"stopForce": True}
    paddleflow("run", "delete", "run-000001", "-not-cc")
    assert server.asked[-1].body == {"checkCache": False}
    server.on("DELETE", RUN, error(404, "RunNotFound", "RunID not found"))
    code, out, err = paddleflow("run", "delete", "run-000001")
    assert (code, out) == (5, "")
    assert "RunID not found" in err


def test_cache_and_artifacts(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/runCache", ok({"runCacheList": [CACHE]}))
    server.on("GET", "/runCache/cch-000001", ok(CACHE))
    server.on("GET", "/artifact", ok({"artifactEventList": [ARTIFACT]}))
    server.on("GET", "/artifact/lineage", ok({"madeBy": [ARTIFACT], "readBy": [{**ARTIFACT, "runID": "run-000002"}]}))
    listing = [{"path": "x/out", "type": "file", "size": 12, "modifyTime": "2024-01-01 00:00:00"}]
    server.on("GET", "/artifact/files", ok({"fileList": listing}))
    assert "| cache id   | run id     | job id   | fsname   |" in paddleflow("run", "listcache")[1]
    shown = paddleflow("run", "showcache", "cch-000001")[1]
    assert "| strategy     | custom   |" in shown
    assert "| first fp   | second fp   |" in shown
    assert json.loads(paddleflow("--output", "json", "run", "showcache", "cch-000001")[1])[0]["second fp"] == "second"
    row = json.loads(paddleflow("--output", "json", "run", "listartifact", "-t", "output")[1])[0]
    assert (row["type"], row["step"]) == ("output", "load")
    assert "x/out" in paddleflow("run", "artifacts", "run-000001", "x/")[1]
    lineage = json.loads(paddleflow("--output", "json", "run", "lineage", "data", "x/out")[1])
    assert [(one["use"], one["run id"]) for one in lineage] == [("made by", "run-000001"), ("read by", "run-000002")]
    server.on("GET", "/artifact/lineage", ok({"madeBy": [], "readBy": []}))
    assert paddleflow("run", "lineage", "data", "x/out")[1] == "nobody has made or read x/out on data\n"


def test_why_cached(server: RecordedServer, paddleflow: Paddleflow) -> None:
    told = {
        "runID": "run-000001",
        "step": "load",
        "reused": False,
        "sentence": "load was computed: its command has changed since run-000000",
        "comparedWith": "run-000000",
        "changed": [{"name": "command", "before": "echo a", "after": "echo b"}],
    }
    server.on("GET", f"{RUN}/why-cached", ok(told))
    code, out, _ = paddleflow("run", "why-cached", "run-000001", "load")
    assert (code, out.splitlines()) == (
        0,
        [
            told["sentence"],
            "changed    in run-000000    in run-000001",
            "---------  ---------------  ---------------",
            "command    echo a           echo b",
        ],
    )
    assert server.asked[-1].query == {"step": "load"}
    assert json.loads(paddleflow("--output", "json", "run", "why-cached", "run-000001", "load")[1]) == told


def test_download(server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path) -> None:
    server.on("GET", "/artifact/download", Answer(body=b"content"))
    target = tmp_path / "copy"
    code, out, _ = paddleflow("run", "download", "run-000001", "x/out", "-o", str(target))
    assert (code, out) == (0, f"x/out download success, written to {target}\n")
    assert target.read_bytes() == b"content"


def made_run() -> dict[str, Any]:
    """One step computed, one loop of two items and one step in a dag reused."""

    def outputs(**paths: str) -> dict[str, Any]:
        return {"artifacts": {"input": {}, "output": paths}}

    older = {"cacheRunID": "run-000000", "cacheJobID": "job-1"}
    many = [
        step_json("many", key=f"many[{at}]", **older, **outputs(piece=f".pipeline/run-000000/demo/many-{at}-a/piece"))
        for at in range(2)
    ]
    train = step_json("train", key="sub.train", **older, **outputs(model=".pipeline/run-000000/demo/train-0-a/model"))
    load = step_json("load", **outputs(out=".pipeline/run-000001/demo/load-0-a/out"))
    sub = dag_json("sub", {"train": [train]}, **outputs(best=".pipeline/run-000000/demo/train-0-a/model"))
    return run_json("succeeded", runtime={"load": [load], "many": many, "sub": [sub]})


def test_artifacts_of_a_run_and_who_made_them(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", RUN, ok(made_run()))
    listing = [{"path": "x/out", "type": "file", "size": 12, "modifyTime": "2024-01-01 00:00:00"}]
    server.on("GET", "/artifact/files", ok({"fileList": listing}))
    listed = json.loads(paddleflow("--output", "json", "run", "artifacts", "run-000001")[1])
    assert [(row["step"], row["artifact name"], row["made by"], row["create time"]) for row in listed] == [
        ("load", "out", "run-000001", "2024-01-01 00:00:04"),
        ("many[0]", "piece", "run-000000", ""),
        ("many[1]", "piece", "run-000000", ""),
        ("sub.train", "model", "run-000000", ""),
    ]
    assert listed[0]["artifact path"] == ".pipeline/run-000001/demo/load-0-a/out"
    assert "x/out" in paddleflow("run", "artifacts", "run-000001", "load.out")[1]
    assert server.asked[-1].query["path"] == ".pipeline/run-000001/demo/load-0-a/out"


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("load.out", ".pipeline/run-000001/demo/load-0-a/out"),
        ("many[1].piece", ".pipeline/run-000000/demo/many-1-a/piece"),
        ("sub.best", ".pipeline/run-000000/demo/train-0-a/model"),
    ],
)
def test_artifacts_are_called_by_their_step(
    server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path, named: str, path: str
) -> None:
    server.on("GET", RUN, ok(made_run()))
    server.on("GET", "/artifact/download", Answer(body=b"content"))
    server.on("GET", "/artifact/lineage", ok({"madeBy": [ARTIFACT], "readBy": []}))
    target = tmp_path / "copy"
    code, out, _ = paddleflow("run", "download", "run-000001", named, "-o", str(target))
    assert (code, out) == (0, f"{named} download success, written to {target}\n")
    assert server.asked[-1].query == {"runID": "run-000001", "path": path}
    assert paddleflow("run", "lineage", "run-000001", named)[0] == 0
    assert server.asked[-1].query == {"fsname": "data", "path": path, "username": "root"}


@pytest.mark.parametrize("command", ["download", "lineage"])
def test_a_name_that_does_not_say_which_artifact(server: RecordedServer, paddleflow: Paddleflow, command: str) -> None:
    server.on("GET", RUN, ok(made_run()))
    code, out, err = paddleflow("run", command, "run-000001", "many.piece")
    assert (code, out) == (1, "")
    assert "choose one of many[0].piece, many[1].piece" in err
    code, out, err = paddleflow("run", command, "run-000001", "load.model")
    assert (code, out) == (5, "")
    assert "it has load.out, many[0].piece, many[1].piece, sub.train.model" in err
    assert not server.calls("GET", f"/artifact/{command}")


def test_pipelines(server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path) -> None:
    versions = {"pplVersionList": [VERSION], "nextMarker": "m"}
    server.on("GET", "/pipeline", ok({"pipelineList": [PIPELINE]}))
    server.on("GET", "/pipeline/ppl-000001", ok({"pipeline": PIPELINE, "pplVersions": versions}))
    server.on("GET", "/pipeline/ppl-000001/2", ok({"pipeline": PIPELINE, "pipelineVersion": VERSION}))
    listed = paddleflow("pipeline", "list")[1]
    assert "| pipeline id   | name   | username   | desc   | create time         | update time         |" in listed
    shown = paddleflow("pipeline", "show", "ppl-000001")[1]
    assert "|   ppl ver id | fs name   | yaml path   | username   |" in shown
    assert shown.splitlines()[-1] == "marker: m"
    assert json.loads(paddleflow("--output", "json", "pipeline", "show", "ppl-000001")[1])[0]["versions"]
    assert "pipeline yaml" in paddleflow("pipeline", "showversion", "ppl-000001", "2")[1]
    version = json.loads(paddleflow("--output", "json", "pipeline", "showversion", "ppl-000001", "2")[1])[0]
    assert (version["ppl ver id"], version["pipeline yaml"]) == ("2", "name: demo\n")

    file = tmp_path / "run.yaml"
    file.write_text("name: demo\n")
    server.on("POST", "/pipeline", ok(MADE, 201))
    assert paddleflow("pipeline", "create", "-yr", str(file))[0] == 0
    assert server.asked[-1].body == {"yamlRaw": base64.b64encode(b"name: demo\n").decode()}
    assert paddleflow("pipeline", "create")[0] == 2
    assert paddleflow("pipeline", "create", "data", "-yr", str(file))[0] == 2
    assert paddleflow("pipeline", "update", "ppl-000001", "data")[0] == 2


@pytest.mark.parametrize(("flag", "sent"), [("--catchup", True), ("--no-catchup", False)])
def test_schedule_create_sends_numbers_as_numbers(
    server: RecordedServer, paddleflow: Paddleflow, flag: str, sent: bool
) -> None:
    server.on("POST", "/schedule", ok({"scheduleID": "schedule-000001"}, 201))
    words = ["-c", "2", "-cp", "skip", "-ei", "60", "--timezone", "Europe/Berlin", "-s"]
    code, _, _ = paddleflow(
        "schedule", "create", "nightly", "ppl-1", "1", "0 3 * * *", *words, "2030-01-01 00:00:00", flag
    )
    assert code == 0
    assert server.asked[-1].body == {
        "name": "nightly",
        "pipelineID": "ppl-1",
        "pipelineVersionID": "1",
        "crontab": "0 3 * * *",
        "startTime": "2030-01-01 00:00:00",
        "concurrency": 2,
        "concurrencyPolicy": "skip",
        "expireInterval": 60,
        "catchup": sent,
        "timeZone": "Europe/Berlin",
    }


def test_schedules(server: RecordedServer, paddleflow: Paddleflow) -> None:
    path = "/schedule/schedule-000001"
    server.on("GET", "/schedule", ok({"scheduleList": [SCHEDULE], "nextMarker": "m"}))
    server.on("GET", path, ok({**SCHEDULE, "runs": {"runList": [brief_json()], "nextMarker": "n"}}))
    listed = paddleflow("schedule", "list")[1]
    assert "| schedule id     | name    | desc   | pipeline id   |" in listed
    assert "| next run time       | time zone     |\n" in listed, "new columns come last"
    assert "| 2024-01-02 03:00:00 | Europe/Berlin |\n" in listed
    assert listed.splitlines()[-1] == "marker: m"
    shown = paddleflow("schedule", "show", "schedule-000001")[1]
    assert "run-000001" in shown
    assert shown.splitlines()[-1] == "marker: n"
    whole = json.loads(paddleflow("--output", "json", "schedule", "show", "schedule-000001")[1])[0]
    assert (whole["next run time"], whole["runs"][0]["run id"]) == ("2024-01-02 03:00:00", "run-000001")
    assert whole["time zone"] == "Europe/Berlin"
    assert json.loads(paddleflow("--output", "json", "schedule", "list")[1])[0]["crontab"] == "0 3 * * *"


def test_log_run_prints_every_task(server: RecordedServer, paddleflow: Paddleflow) -> None:
    tasks = [
        {"taskID": name, "logInfo": {"logContent": f"hi {name}", "hasNextPage": False, "truncated": False}}
        for name in "ab"
    ]
    answer = {"submitLog": "began", "runLog": [{"jobID": "job-1", "taskList": tasks}], "runID": "run-000001"}
    server.on("GET", "/log/run/run-000001", ok(answer))
    head = (
        "runid:run-000001 \tjobid:job-1 \ttaskid:{} \thas_next_page:False \ttruncated:False \tpage_no:2 \tpage_size:10"
    )
    code, out, _ = paddleflow("log", "run", "run-000001", "-ps", "10", "-pn", "2", "-fp", "begin")
    assert (code, out.splitlines()) == (
        0,
        [
            "submit log:",
            "began",
            "run log:",
            head.format("a"),
            "hi a",
            head.format("b"),
            "hi b",
        ],
    )
    told = json.loads(paddleflow("--output", "json", "log", "run", "run-000001")[1])
    assert [one["log_content"] for one in told["runLog"]] == ["hi a", "hi b"]
    assert "hi a" in paddleflow("log", "show", "run-000001")[1]


@pytest.mark.parametrize(
    ("line", "path", "answer", "suggested"),
    [
        ("run show run", "/run", {"runList": [brief_json()]}, "run-000001"),
        ("pipeline show ppl", "/pipeline", {"pipelineList": [PIPELINE]}, "ppl-000001"),
        ("schedule stop s", "/schedule", {"scheduleList": [SCHEDULE]}, "schedule-000001"),
        ("run lineage d", "/fs", {"fsList": [{"name": "data"}, {"name": "other"}]}, "data"),
        ("run download run-000001 sub", RUN, made_run(), "sub.train.model"),
        ("run artifacts run-000001 many[1", RUN, made_run(), "many[1].piece"),
        ("run why-cached run-000001 l", f"{RUN}/timing", timing_json(timed_json("load", 0, 1)), "load"),
    ],
)
def test_ids_are_completed_from_the_server(
    server: RecordedServer, config: Path, line: str, path: str, answer: Any, suggested: str
) -> None:
    server.on("GET", path, ok(answer))
    words = f"paddleflow --pf_config {config} {line}"
    env = {
        **os.environ,
        "_PADDLEFLOW_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run([sys.executable, "-m", "paddleflow"], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"plain,{suggested}\n", "")
