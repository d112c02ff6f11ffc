"""``paddleflow simulate`` from the outside: files in, a table, JSON or one line of error out; a server if asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddleflow.cli.main import run
from paddleflow.simulation.synthetic import Recipe, make_trace, spell_trace
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import Asked, RecordedServer, ok

TINY = "submit,duration,gpus\n0,100,3\n10,50,4\n20,30,1\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(TINY)
    return path


def called(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["simulate", *map(str, words)])
    out, err = capsys.readouterr()
    return int(code), out, err


def test_one_table_and_a_chart(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    code, out, err = called(capsys, trace, "--gpus", 4, "--gpus-per-node", 4, "--policy", "fifo")
    assert (code, err) == (0, "")
    table, chart = out.split("\nutilisation over time, fifo\n")
    assert "| fifo " in table
    assert "2.2m" in table, "completion times 100, 140 and 160 seconds: 133 in the mean"
    assert "█" in chart and chart.rstrip().endswith("3m")


def test_every_policy_in_one_table(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    code, out, _ = called(capsys, trace, "--gpus", 4, "--gpus-per-node", 4, "--policy", "all", "-o", "json")
    assert code == 0
    answers = {answer["policy"]: answer for answer in json.loads(out)}
    assert list(answers) == ["paddleflow", "fifo", "backfill", "edl"]
    assert answers["fifo"]["mean_completion_s"] == pytest.approx(400 / 3)
    assert answers["backfill"]["mean_completion_s"] == pytest.approx((100 + 140 + 30) / 3)
    assert len(answers["edl"]["utilisation_over_time"]) == 100
    assert all(answer["jobs"] == 3 and answer["decision_s"] >= 0 for answer in answers.values())


def test_root_output_format_counts_too(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    assert run(["--output", "json", "simulate", str(trace), "--gpus", "8"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["policy"] == "paddleflow"


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.json"])
def test_a_described_cluster(capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path, name: str) -> None:
    described = tmp_path / name
    described.write_text('{"nodes": [{"gpus": 4}], "queues": [{"name": "lab", "max": {"gpus": 3}}]}')
    code, out, err = called(capsys, trace, "--cluster", described)
    assert code == 0
    assert err == "1 jobs can never fit this cluster and took no part\n"
    assert "| paddleflow " in out


def test_tenants_as_queues(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text("".join(spell_trace(make_trace(Recipe(jobs=120, tenants=3, elastic_share=0.2), seed=5))))
    words = (path, "--gpus", 32, "--queues", "tenants", "--load", 0.9, "--limit", 100, "-o", "json")
    code, out, _ = called(capsys, *words)
    assert code == 0
    (answer,) = json.loads(out)
    assert (answer["jobs"] + answer["refused"], answer["unfinished"]) == (100, 0)
    assert set(answer["share_deviation_of_queue"]) <= {"tenant-1", "tenant-2", "tenant-3"}
    again = json.loads(called(capsys, *words)[1])[0]
    timed = ("decision_s", "longest_decision_s")
    assert {k: v for k, v in again.items() if k not in timed} == {k: v for k, v in answer.items() if k not in timed}


def test_the_chart_keeps_to_the_terminal(
    capsys: pytest.CaptureFixture[str], trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = called(capsys, trace, "--gpus", 4, "--gpus-per-node", 4)
    chart = out.split("utilisation over time, paddleflow\n")[1]
    assert max(map(len, chart.splitlines())) <= 40


BAD_TRACES = [
    ("submit,duration,gpus\n5,1,1\n4,1,1\n", "row 2", "--sort"),
    ("submit,duration,gpus\n5,nan,1\n", "row 1", "duration"),
    ("submit,gpus\n", "no column duration", "submit,duration,gpus"),
    ("", "no column submit", "header"),
]


@pytest.mark.parametrize(("text", "where", "fix"), BAD_TRACES)
def test_bad_traces_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, where: str, fix: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    code, out, err = called(capsys, path, "--gpus", 4, "--gpus-per-node", 4)
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert where in err and fix in err


def test_sorting_on_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "unsorted.csv"
    path.write_text(BAD_TRACES[0][0])
    assert called(capsys, path, "--gpus", 8, "--sort")[0] == 0


BAD_CLUSTERS = [
    ("a.yaml", "nodes: [", "is not YAML"),
    ("a.json", "{", "is not JSON"),
    ("a.yaml", "nodes: [{gpu: 8}]", "nodes[0].gpu"),
    ("a.yaml", "", "mapping"),
    ("a.yaml", "nodes: [{gpus: 8}]\nqueues: [{name: a, parent: b}, {name: b, parent: a}]", "circle"),
]


@pytest.mark.parametrize(("name", "text", "told"), BAD_CLUSTERS)
def test_bad_clusters_are_one_line(
    capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path, name: str, text: str, told: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    code, out, err = called(capsys, trace, "--cluster", path)
    assert (code, out) == (1, "")
    assert told in err and err.count("\n") == 1


def test_files_that_cannot_be_read(capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    code, _, err = called(capsys, tmp_path / "none.csv", "--gpus", 8)
    assert (code, err.count("\n")) == (1, 1)
    assert "none.csv" in err
    code, _, err = called(capsys, trace, "--cluster", tmp_path / "none.yaml")
    assert code == 1 and "none.yaml" in err
    binary = tmp_path / "picture.csv"
    binary.write_bytes(b"\x89PNG\xff\xfe")
    code, _, err = called(capsys, binary, "--gpus", 8)
    assert code == 1 and "UTF-8" in err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--gpus", "8", "--cluster", "x.yaml"),
        ("--gpus", "0"),
        ("--gpus", "8", "--policy", "magic"),
        ("--gpus", "8", "--limit", "0"),
    ],
)
def test_wrong_command_lines(capsys: pytest.CaptureFixture[str], trace: Path, words: tuple[str, ...]) -> None:
    assert called(capsys, trace, *words)[0] == 2


def test_bad_numbers(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    code, _, err = called(capsys, trace, "--gpus", 10, "--gpus-per-node", 8)
    assert code == 1 and "gpus-per-node" in err
    code, _, err = called(capsys, trace, "--gpus", 8, "--load", "-1")
    assert code == 1 and "load" in err


PAST = (
    "submit,duration,gpus,cpus,memory,queue,priority,tasks,min_tasks,max_tasks,limit,id\n"
    "1000,100,3,1,1Gi,lab,NORMAL,1,,,,a\n"
    "1010,50,4,1,1Gi,lab,NORMAL,1,,,,b\n"
    "1020,30,1,1,1Gi,gone,HIGH,1,,,,c\n"
)
LAB = {
    "name": "lab",
    "status": "closed",
    "clusterName": "default-cluster",
    "quotaType": "elasticQuota",
    "maxResources": {"cpu": "0", "memory": "0", "scalarResources": {"nvidia.com/gpu": "4"}},
    "minResources": {"cpu": "0", "memory": "0"},
    "location": {},
    "weight": 2,
}
NODES = {
    "capacity": {"n1": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}, "n2": {"cpu": "8", "memory": "32Gi"}},
    "labels": {"n1": {"paddleflow/node-status": "Ready"}, "n2": {"paddleflow/node-status": "NotReady"}},
}


@pytest.fixture
def lab(server: RecordedServer) -> RecordedServer:
    """A server with a past."""
    server.on("GET", "/trace", ok(PAST.encode()))
    server.on("POST", "/cluster/resource", ok({"default-cluster": NODES}))

    def queues(asked: Asked) -> object:
        others = {**LAB, "name": "other", "clusterName": "elsewhere"}
        if "marker" not in asked.query:
            return ok({"queueList": [others], "nextMarker": "more"})
        return ok({"queueList": [LAB]})

    server.on("GET", "/queue", queues)  # type: ignore[arg-type]
    return server


def test_the_past_of_a_server(lab: RecordedServer, paddleflow: Paddleflow) -> None:
    code, out, err = paddleflow("simulate", "--server", "--policy", "all", "-o", "json")
    assert (code, err) == (0, "")
    answers = {answer["policy"]: answer for answer in json.loads(out)}
    assert answers["fifo"]["mean_completion_s"] == pytest.approx(400 / 3), "one node is ready, of four GPUs"
    assert all((one["jobs"], one["refused"]) == (3, 0) for one in answers.values())
    assert set(answers["paddleflow"]["share_deviation_of_queue"]) <= {"lab", "gone"}
    assert lab.calls("GET", "/trace")[0].query == {"clusterName": "default-cluster"}
    assert lab.calls("POST", "/cluster/resource")[0].body["clusterNames"] == ["default-cluster"]


def test_part_of_the_past_on_another_cluster(lab: RecordedServer, paddleflow: Paddleflow) -> None:
    words = ("--since", "5", "--until", "9000", "--limit", "2", "--clustername", "c2", "--gpus", "8")
    code, out, _ = paddleflow("simulate", "--server", *words, "-o", "json")
    assert code == 0
    assert json.loads(out)[0]["jobs"] == 2
    asked = {"since": "5", "until": "9000", "limit": "2", "clusterName": "c2"}
    assert lab.calls("GET", "/trace")[0].query == asked
    assert not lab.calls("GET", "/queue"), "the cluster is described, nobody needs to be asked"


def test_the_past_can_be_saved(lab: RecordedServer, paddleflow: Paddleflow, tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    assert paddleflow("simulate", "--server", "--save", str(path)) == (0, "", f"3 jobs written to {path}\n")
    assert path.read_text() == PAST
    assert paddleflow("simulate", str(path), "--gpus", "8")[0] == 0, "what was saved can be replayed"
    code, _, err = paddleflow("simulate", "--server", "--save", str(tmp_path / "no" / "past.csv"))
    assert code == 1 and "cannot be written" in err


def test_servers_without_a_past_or_nodes(lab: RecordedServer, paddleflow: Paddleflow, tmp_path: Path) -> None:
    lab.on("POST", "/cluster/resource", ok({}))
    code, _, err = paddleflow("simulate", "--server")
    assert (code, err.count("\n")) == (1, 1)
    assert "no ready node" in err
    lab.on("GET", "/trace", ok(PAST.splitlines()[0].encode() + b"\n"))
    code, _, err = paddleflow("simulate", "--server", "--save", str(tmp_path / "past.csv"))
    assert code == 1 and "no job of cluster[default-cluster]" in err
    assert not (tmp_path / "past.csv").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("jobs.csv", "--server"),
        ("--gpus", "8"),
        ("jobs.csv", "--gpus", "8", "--save", "x.csv"),
        ("jobs.csv", "--gpus", "8", "--since", "5"),
        ("--server", "--gpus", "8", "--cluster", "x.yaml"),
        ("--server", "--since", "-1"),
    ],
)
def test_one_source_of_jobs(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert called(capsys, *words)[0] == 2
