"""The command line against recorded answers: success lines, exit codes, and what is sent."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from paddleflow.cli.commands.job_follow import last_lines
from paddleflow.cli.errors import ExitCode, job_exit_code, one_line
from paddleflow.cli.main import cli
from paddleflow.domain.errors import Conflict
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import Asked, RecordedServer, error, event_bytes, job_json, lost, ok

FLAVOUR = {"name": "f", "cpu": "1", "mem": "1Gi"}
CLUSTER = {"id": "cluster-1", "clusterName": "c"}

SUCCESS_LINES: list[tuple[str, tuple[str, str], Any, str]] = [
    ("user add alice secret1", ("POST", "/user"), {"username": "alice"}, "user[alice] add success"),
    ("user set alice secret1", ("PUT", "/user/alice"), None, "user[alice] update success"),
    ("user delete alice", ("DELETE", "/user/alice"), None, "user[alice] delete success"),
    ("queue create q ns 1 1Gi", ("POST", "/queue"), {"name": "q"}, "queue[q] create success "),
    ("queue update q --maxcpu 2", ("PUT", "/queue/q"), {"name": "q"}, "queue[q] update success "),
    ("queue stop q", ("PUT", "/queue/q"), {"name": "q"}, "queue[q] stop success "),
    ("queue open q", ("PUT", "/queue/q"), {"name": "q"}, "queue[q] open success "),
    ("queue delete q", ("DELETE", "/queue/q"), None, "queue[q] delete success "),
    ("queue grant alice q", ("POST", "/grant"), {"grantID": "g"}, "queue[q] add username[alice] success"),
    ("queue ungrant alice q", ("DELETE", "/grant"), None, "queue[q] delete username[alice] success"),
    ("flavour create f -c 1 -m 1Gi", ("POST", "/flavour"), {"name": "f"}, "flavour[f] create success "),
    ("flavour update f -c 2", ("PUT", "/flavour/f"), FLAVOUR, "update [f] success"),
    ("flavour delete f", ("DELETE", "/flavour/f"), None, "flavour[f] delete success "),
    ("fs create d local://a/b", ("POST", "/fs"), {"fsName": "d", "fsID": "fs-root-d"}, "fs[d] create success"),
    ("fs update d local://a/b", ("PUT", "/fs"), {"fsName": "d", "fsID": "fs-root-d"}, "fs[d] update success"),
    ("fs delete d", ("DELETE", "/fs/d"), None, "fs[d] delete success"),
    ("fs link d /p s3://b", ("POST", "/link"), None, "fs[d] create link success"),
    ("fs unlink d /p", ("DELETE", "/link/d"), None, "fs[d] delete link success"),
    ("fs createfscache d", ("POST", "/fsCache"), None, "create fs cache success"),
    ("fs updatefscache d -o quota=1", ("PUT", "/fsCache/d"), None, "fs[d] cache config update success"),
    ("fs deletefscache d", ("DELETE", "/fsCache/d"), None, "fs[d] cache config delete success"),
    ("fs snapshot create d", ("POST", "/fs/d/snapshot"), {"snapshotID": "s-1"}, "snapshot[s-1] create success"),
    ("fs snapshot delete d s-1", ("DELETE", "/fs/d/snapshot/s-1"), None, "snapshot[s-1] delete success"),
    ("cluster create c http://x Local", ("POST", "/cluster"), CLUSTER, "cluster[c] create  success, id[cluster-1]"),
    ("cluster update c --status offline", ("PUT", "/cluster/c"), CLUSTER, "cluster[c] update success, id[cluster-1]"),
    ("cluster delete c", ("DELETE", "/cluster/c"), None, "cluster[c] delete success"),
    ("job stop job-1", ("PUT", "/job/job-1"), None, "jobid[job-1] stop success"),
    ("job update job-1 -p high", ("PUT", "/job/job-1"), None, "jobid[job-1] update success"),
    ("job delete job-1", ("DELETE", "/job/job-1"), None, "job[job-1] delete success "),
    ("job run -F mpi -d -- mpirun x", ("POST", "/job/distributed"), {"id": "job-1"}, "job-1"),
    ("job submit -- echo hi", ("POST", "/job/single"), {"id": "job-1"}, "job-1"),
]


@pytest.mark.parametrize(("line", "endpoint", "answer", "said"), SUCCESS_LINES)
def test_success_line(
    server: RecordedServer, paddleflow: Paddleflow, line: str, endpoint: tuple[str, str], answer: Any, said: str
) -> None:
    server.on(*endpoint, ok(answer))
    assert paddleflow(*line.split()) == (0, said + "\n", "")


EMPTY_LISTS = [
    ("user list", "/user", {"userList": []}, "no user found"),
    ("queue list", "/queue", {"queueList": []}, "no queue found"),
    ("queue grantlist", "/grant", {"grantList": []}, "no grantlist found "),
    ("flavour list", "/flavour", {"flavourList": []}, "not find flavour"),
    ("fs list", "/fs", {"fsList": []}, "no fs found "),
    ("fs listlink d", "/link/d", {"linkList": []}, "no link found "),
    ("fs mounts d", "/fsMount", {"mountList": []}, "no mount found "),
    ("fs stats d", "/fsCache/stats/d", {"nodes": []}, "no node has told of a cache "),
    ("fs snapshot list d", "/fs/d/snapshot", {"snapshotList": []}, "no snapshot found "),
    ("cluster list", "/cluster", {"clusterList": []}, "no cluster found "),
    ("job list", "/job", {"jobList": []}, "no job found"),
]


@pytest.mark.parametrize(("line", "path", "answer", "said"), EMPTY_LISTS)
def test_empty_list(
    server: RecordedServer, paddleflow: Paddleflow, line: str, path: str, answer: Any, said: str
) -> None:
    server.on("GET", path, ok(answer))
    assert paddleflow(*line.split()) == (0, said + "\n", "")


def test_lists_end_with_the_marker(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/flavour", ok({"flavourList": [FLAVOUR], "nextMarker": "abc"}))
    code, out, _ = paddleflow("flavour", "list")
    assert code == 0
    assert out.splitlines() == [
        "+--------+-------+-------+-------------------+---------------+",
        "| name   |   cpu | mem   | scalarResources   | clusterName   |",
        "+========+=======+=======+===================+===============+",
        "| f      |     1 | 1Gi   |                   |               |",
        "+--------+-------+-------+-------------------+---------------+",
        "marker: abc",
    ]
    server.on("GET", "/job", ok({"jobList": [job_json()]}))
    assert paddleflow("job", "list")[1].splitlines()[-1] == "marker: None"


def test_job_list_fields(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/job", ok({"jobList": [job_json()]}))
    code, out, _ = paddleflow("--output", "json", "job", "list", "-fl", "id,labels,fs", "-l", "a=b", "-m", "5")
    assert (code, json.loads(out)) == (0, [{"job id": "job-1", "labels": {"team": "a"}, "file system": {}}])
    assert server.asked[-1].query == {"labels": '{"a": "b"}', "maxKeys": "5"}
    code, _, err = paddleflow("job", "list", "-fl", "nonsense")
    assert code == 2
    assert "nonsense" in err


def test_job_show(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/job/job-1", ok(job_json(runtime={"nodeName": "n"})))
    code, out, _ = paddleflow("job", "show", "job-1")
    head, block = out.split("job config and runtime info: \n")
    assert code == 0
    assert "| job id   | job name   | queue         | priority   | status   |" in head
    assert json.loads(block)[0]["runtime"] == {"nodeName": "n"}
    whole = json.loads(paddleflow("--output", "json", "job", "show", "job-1")[1])
    assert (whole[0]["job id"], whole[0]["command"]) == ("job-1", "true")


def test_queue_show(server: RecordedServer, paddleflow: Paddleflow) -> None:
    shown = {"name": "q", "maxResources": {"cpu": "2"}, "usedResources": {"cpu": "1"}, "status": "open"}
    server.on("GET", "/queue/q", ok(shown))
    _, out, _ = paddleflow("queue", "show", "q")
    _, block = out.split("queue info: \n")
    assert json.loads(block) == [{"max resources": {"cpu": "2"}, "used resources": {"cpu": "1"}, "weight": 1}]


def test_queue_show_of_a_parent(server: RecordedServer, paddleflow: Paddleflow) -> None:
    least = {"cpu": "1500m", "memory": "1Gi", "scalarResources": {"nvidia.com/gpu": "1"}}
    child = {"parent": "p", "clusterName": "c", "minResources": least}
    rows = [{"name": "x", **child}, {"name": "y", **child}, {"name": "z", **child, "parent": "x"}]
    far = {"name": "far", **child, "clusterName": "elsewhere"}
    server.on("GET", "/queue/p", ok({"name": "p", "status": "closed", "clusterName": "c", "parent": "root"}))
    server.on("GET", "/queue", ok({"queueList": rows[:2], "nextMarker": "m"}), ok({"queueList": [rows[2], far]}))
    told = json.loads(paddleflow("--output", "json", "queue", "show", "p")[1])[0]
    assert (told["parent"], told["children"]) == ("root", ["x", "y"])
    assert told["children min resources"] == {"cpu": "3", "memory": "2Gi", "nvidia.com/gpu": "2"}


def test_queue_create_sends_what_was_given(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("POST", "/queue", ok({"name": "q"}))
    line = "queue create q ns 4 8Gi --maxscalar nvidia.com/gpu=2 --minscalar nvidia.com/gpu=1 --policy priority"
    assert paddleflow(*line.split(), "--location", "a=b,c=d")[0] == 0
    assert server.asked[-1].body == {
        "name": "q",
        "namespace": "ns",
        "maxResources": {"cpu": "4", "mem": "8Gi", "scalarResources": {"nvidia.com/gpu": "2"}},
        "minResources": {"scalarResources": {"nvidia.com/gpu": "1"}},
        "schedulingPolicy": ["priority"],
        "location": {"a": "b", "c": "d"},
    }


def test_job_create_reads_the_file(server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path) -> None:
    server.on("POST", "/job/single", ok({"id": "job-1"}))
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"command": "true", "limitFlavour": {"cpu": "1"}}))
    assert paddleflow("job", "create", "single", str(file)) == (0, "job create success, id[job-1]\n", "")
    assert server.asked[-1].body["limitFlavour"] == {"cpu": "1"}
    file.write_text("{")
    assert paddleflow("job", "create", "single", str(file))[0] == 2


def test_job_submit_takes_the_words_as_they_are(
    server: RecordedServer, paddleflow: Paddleflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.on("POST", "/job/single", ok({"id": "job-1"}))
    monkeypatch.setenv("MY_SECRET", "s3")
    monkeypatch.chdir(tmp_path)
    words = ["-c", "2", "-e", "A=1=2", "-e", "MY_SECRET", "-l", "k=v", "--", "python", "t.py", "--lr", "0 1", "-q", "x"]
    assert paddleflow("job", "submit", *words) == (0, "job-1\n", "")
    assert server.asked[-1].body.pop("hostEnv")["PF_WORK_DIR"] == str(tmp_path)
    assert server.asked[-1].body == {
        "command": "python t.py --lr '0 1' -q x",
        "flavour": {"cpu": "2", "mem": "1Gi"},
        "env": {"A": "1=2", "MY_SECRET": "s3"},
        "labels": {"k": "v"},
    }
    assert paddleflow("job", "submit", "--fs", "data/x:/in:ro", "--fs", "more", "--", "ls")[0] == 0
    assert server.asked[-1].body["fs"] == {"name": "data", "subPath": "x", "mountPath": "/in", "readOnly": True}
    assert server.asked[-1].body["extraFS"] == [{"name": "more"}]
    code, _, err = paddleflow("job", "submit", "-e", "NOT_SET_ANYWHERE", "--", "true")
    assert code == 2
    assert "NOT_SET_ANYWHERE" in err


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(400, "JobCreateFailed", "queue is\nempty"), 1),
        (error(500, "InternalError", "oh"), 1),
        (error(400, "AuthFailed", "no"), 4),
        (error(403, "AccessDenied", "no"), 4),
        (error(404, "JobNotFound", "no"), 5),
        (lost(), 3),
    ],
)
def test_exit_codes(server: RecordedServer, paddleflow: Paddleflow, answer: Any, code: int) -> None:
    server.on("GET", "/job/job-1", answer)
    got, out, err = paddleflow("job", "show", "job-1")
    assert (got, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["nonsense"], ["job", "show"], ["--output", "xml", "version"], ["queue", "list", "-m", "x"]]
)
def test_usage_errors(paddleflow: Paddleflow, words: list[str]) -> None:
    assert paddleflow(*words)[0] == 2


def test_missing_config_is_said(paddleflow: Paddleflow) -> None:
    code, _, err = paddleflow("--pf_config", "/nowhere/x.ini", "version")
    assert (code, err) == (1, "error: no config file in /nowhere/x.ini [InvalidConfig]\n")


def test_one_login_for_many_commands(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/version", ok({"gitVersion": "1"}))
    for _ in range(3):
        code, out, _ = paddleflow("version")
        assert (code, json.loads(out)["server"]) == (0, {"gitVersion": "1"})
    assert len(server.calls("POST", "/login")) == 1
    # A token the server no longer takes is renewed, and the new one remembered.
    server.on("GET", "/version", error(400, "AuthInvalidToken", "old"), ok({"gitVersion": "2"}))
    assert paddleflow("version")[0] == 0
    assert paddleflow("version")[0] == 0
    assert len(server.calls("POST", "/login")) == 2


def _follow(server: RecordedServer, *statuses: str) -> None:
    """A job that goes through these statuses, one with each event."""

    def answer_events(asked: Asked) -> Any:
        if asked.query.get("follow") == "false":
            return ok({"eventList": [], "lastSeq": 0})
        return ok(event_bytes(int(asked.query["after"]) + 1, "JobUpdated", "job-1"))

    server.on("GET", "/event", answer_events)
    server.on("GET", "/job/job-1", *(ok(job_json(status)) for status in statuses))
    server.on("GET", "/job/job-1/why", ok({"jobID": "job-1", "status": "init", "sentence": "it waits: queue is full"}))


@pytest.mark.parametrize(("end", "code"), [("succeeded", 0), ("failed", 10), ("terminated", 11)])
def test_watch_ends_as_the_job_does(server: RecordedServer, paddleflow: Paddleflow, end: str, code: int) -> None:
    _follow(server, "init", "running", end)
    server.on("GET", "/job/job-1/log", ok(b"step 1\nstep 2\n"))
    server.on("POST", "/job/single", ok({"id": "job-1"}))
    got, out, err = paddleflow("job", "watch", "job-1")
    assert (got, out) == (code, "step 1\nstep 2\n")
    assert err.splitlines() == ["job-1 init: it waits: queue is full", "job-1 running", f"job-1 {end}"]
    _follow(server, "running", end)
    assert paddleflow("job", "submit", "--watch", "--", "true")[:2] == (code, "job-1\nstep 1\nstep 2\n")


def test_watch_of_a_job_that_never_started(server: RecordedServer, paddleflow: Paddleflow) -> None:
    _follow(server, "init", "terminated")
    server.on("GET", "/job/job-1/log", error(404, "RecordNotFound", "no log"))
    assert paddleflow("job", "watch", "job-1")[:2] == (11, "")


def test_job_why(server: RecordedServer, paddleflow: Paddleflow) -> None:
    _follow(server, "init")
    assert paddleflow("job", "why", "job-1") == (0, "job-1 waits: queue is full\n", "")


def test_logs_and_tail(server: RecordedServer, paddleflow: Paddleflow) -> None:
    content = "".join(f"line {n}\n" for n in range(100)).encode()

    def answer_log(asked: Asked) -> Any:
        start = int(asked.query["start"])
        return ok(content[start:] if -len(content) <= start else content)

    def answer_log_with_size(asked: Asked) -> Any:
        return replace(answer_log(asked), headers={"X-Log-Size": str(len(content))})

    server.on("GET", "/job/job-1", ok(job_json()))
    server.on("GET", "/job/job-1/log", answer_log)
    assert paddleflow("job", "logs", "job-1")[1].encode() == content
    for answer in (answer_log, answer_log_with_size):
        server.on("GET", "/job/job-1/log", answer)
        assert paddleflow("job", "logs", "job-1", "--tail", "2")[1] == "line 98\nline 99\n"
        assert paddleflow("job", "logs", "job-1", "--tail", "2", "-f")[1] == "line 98\nline 99\n"
    # Told the size, the client reads no more than it shows and follows from there.
    assert [asked.query["start"] for asked in server.calls("GET", "/job/job-1/log")[-2:]] == ["-400", str(len(content))]


@pytest.mark.parametrize("count", [0, 1, 3, 50])
@pytest.mark.parametrize("lines", [[], ["a" * 3000], ["x", "y" * 999, "", "z"], ["short"] * 100])
def test_last_lines(lines: list[str], count: int) -> None:
    content = "".join(line + "\n" for line in lines).encode()
    wanted = "".join(line + "\n" for line in lines[-count:]) if count else ""
    found = last_lines(lambda length: (content[-length:], len(content)), count)
    assert found == (wanted, len(content))


def test_last_lines_of_a_log_whose_middle_was_not_kept() -> None:
    """From the end of a gap less comes than was asked for; that is not the whole log."""
    kept = b"cut line\n" + b"x" * 1000 + b"\nlast\n"
    asked: list[int] = []

    def read_end(length: int) -> tuple[bytes, int]:
        asked.append(length)
        return (b"first\n" + kept if length >= 50_000 else kept[-length:]), 50_000

    assert last_lines(read_end, 2) == ("x" * 1000 + "\nlast\n", 50_000)
    assert last_lines(read_end, 3) == (kept.decode(), 50_000)
    assert max(asked) >= 50_000


def test_log_job(server: RecordedServer, paddleflow: Paddleflow) -> None:
    page = {"taskID": "t", "logInfo": {"logContent": "hello", "hasNextPage": False, "truncated": False}}
    server.on("GET", "/log/job", ok({"jobID": "job-1", "taskList": [page], "eventList": ["started"]}))
    code, out, _ = paddleflow("log", "job", "-j", "job-1", "-f", "standalone", "-l", "5")
    assert (code, out.splitlines()) == (
        0,
        [
            "eventList:",
            "started",
            "logs:",
            "jobid:job-1 \ttaskid:t \thas_next_page:False \ttruncated:False",
            "hello",
        ],
    )


def test_statistics(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", "/statistics/job/job-1", ok({"metricsInfo": {"cpu_usage_rate": "50%"}}))
    assert "| cpu usage rate   |" in paddleflow("statistics", "job", "job-1")[1]
    series = [{"metric": "cpu", "values": [[1, 2]]}, {"metric": "mem", "values": [[2, 3]]}]
    server.on("GET", "/statistics/jobDetail/job-1", ok({"result": [{"taskName": "t", "taskInfo": series}]}))
    assert paddleflow("--output", "text", "statistics", "job", "job-1", "-d")[1] == "1 \t2 \tN/A\n2 \tN/A \t3\n"
    assert paddleflow("statistics", "job", "job-1", "-s", "1")[0] == 2


def test_password_may_come_from_standard_input(
    server: RecordedServer, paddleflow: Paddleflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("POST", "/user", ok({"username": "alice"}))
    read, write = os.pipe()
    os.write(write, b"secret1\n")
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert paddleflow("user", "add", "alice")[0] == 0
    assert server.asked[-1].body == {"username": "alice", "password": "secret1"}


def test_closed_pipe_is_no_traceback(server: RecordedServer, config: Path) -> None:
    server.on("GET", "/job/job-1", ok(job_json()))
    server.on("GET", "/job/job-1/log", ok(b"x" * 1_000_000))
    words = [sys.executable, "-m", "paddleflow", "--pf_config", str(config), "job", "logs", "job-1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == ExitCode.OUTPUT_CLOSED


def test_every_command_has_help() -> None:
    runner = CliRunner()
    with cli.make_context("paddleflow", ["job"], resilient_parsing=True) as ctx:
        for name in cli.list_commands(ctx):
            command = cli.get_command(ctx, name)
            assert command is not None
            # The table's line and the command's own must not drift apart.
            assert cli._lazy[name].help == (command.help or "").split("\n")[0]
            assert runner.invoke(cli, [name, "--help"]).exit_code == 0


def test_help_imports_no_command_and_no_library() -> None:
    code = (
        "import sys; from paddleflow.cli.main import run; assert run(['--help']) == 0;"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('rich', 'httpx', 'pydantic')"
        " or m.startswith(('paddleflow.cli.commands', 'paddleflow.sdk'))]; assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert "_PADDLEFLOW_COMPLETE" in result.output


def test_names_are_completed_from_the_server(server: RecordedServer, config: Path) -> None:
    server.on("GET", "/job", ok({"jobList": [job_json(), job_json(id="other")]}))
    env = {
        **os.environ,
        "_PADDLEFLOW_COMPLETE": "bash_complete",
        "COMP_WORDS": f"paddleflow --pf_config {config} job show job",
        "COMP_CWORD": "5",
    }
    done = subprocess.run([sys.executable, "-m", "paddleflow"], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("plain,job-1\n", "")


@pytest.mark.parametrize(
    ("status", "code"),
    [("succeeded", 0), ("failed", 10), ("terminated", 11), ("preempted", 11), ("cancelled", 11), ("skipped", 11)],
)
def test_job_exit_code(status: str, code: int) -> None:
    assert job_exit_code(status) == code


def test_error_is_one_line() -> None:
    assert one_line(Conflict("first\n  second")) == "error: first second [ActionNotAllowed]"


ROOT_HELP = """\
Usage: paddleflow [OPTIONS] COMMAND [ARGS]...

  PaddleFlow: pipelines, jobs and data, from a laptop to a cluster.

  Options may also be given as environment variables: PADDLEFLOW_OUTPUT=json,
  PADDLEFLOW_PF_CONFIG=PATH.

Options:
  --pf_config PATH            The config file.  [default:
                              ~/.paddleflow/paddleflow.ini]
  --output [table|json|text]  How to show answers.  [default: table]
  --version                   Show the version and exit.
  -h, --help                  Show this message and exit.

Commands:
  job         submit, watch and manage jobs
  run         run pipelines, watch and manage their runs
  pipeline    keep pipelines on the server, or export them
  schedule    run pipelines at set times
  queue       manage queues and who may use them
  flavour     manage flavours, named amounts of resources
  fs          manage filesystems, mount them, work on their files
  cluster     manage clusters
  user        manage users
  log         show logs
  simulate    replay a TRACE of jobs and show what the scheduler makes of it
  statistics  show what jobs and queues have used
  serve       run the server on this machine
  version     show the versions of client and server
  completion  print a shell completion script
"""


def test_help_of_the_root() -> None:
    result = CliRunner().invoke(cli, ["--help"], prog_name="paddleflow", terminal_width=80)
    assert result.output == ROOT_HELP


OPTIONS = {
    "user list": "-m --maxsize",
    "user add": "username password",
    "user set": "username password",
    "user delete": "username",
    "queue list": "-m --maxsize -mk --marker",
    "queue show": "queuename",
    "queue create": "name namespace maxcpu maxmem --maxscalar --mincpu --minmem --minscalar --policy --location "
    "--quota --clustername --weight --parent",
    "queue update": "name --maxcpu --maxmem --maxscalar --mincpu --minmem --minscalar --policy --location --weight "
    "--parent",
    "queue delete": "queuename",
    "queue grant": "username queuename",
    "queue ungrant": "username queuename",
    "queue grantlist": "-m --maxsize -u --username",
    "flavour list": "-m --maxkeys --marker -cn --clustername",
    "flavour show": "name",
    "flavour delete": "name",
    "flavour create": "name -c --cpu -m --memory -s --scalar -cn --clustername",
    "flavour update": "name -c --cpu -m --memory -s --scalar",
    "fs list": "-u --username -m --maxsize",
    "fs show": "fsname -u --username",
    "fs delete": "fsname -u --username",
    "fs create": "fsname url -u --username -o --option --properties",
    "fs update": "fsname url -u --username -o --option --properties",
    "fs mount": "fsname path -u --username -o --option --foreground",
    "fs umount": "path -f --force",
    "fs createfscache": "fsname -u --username -o --option",
    "fs getfscache": "fsname -u --username",
    "fs deletefscache": "fsname -u --username",
    "fs link": "fsname fspath url -u --username -o --option --properties",
    "fs unlink": "fsname fspath -u --username",
    "fs showlink": "fsname fspath -u --username",
    "fs listlink": "fsname -u --username -m --maxsize",
    "fs warmup": "places -f --file -p --parallel -t --type -r --recursive -u --username",
    "fs stats": "what --interval -l --lines -u --username",
    "fs bench": "path --block-size --big-file-size --small-file-size --small-file-count -p --threads",
    "cluster list": "-m --maxkeys -mk --marker -cn --clusternames -cs --clusterstatus",
    "cluster show": "clustername",
    "cluster delete": "clustername",
    "cluster create": "clustername endpoint clustertype -c --credential -d --description --source --setting --status "
    "-ns --namespacelist --version",
    "cluster update": "clustername -e --endpoint -c --credential -t --clustertype -d --description --source --setting "
    "--status -ns --namespacelist --version",
    "cluster resource": "-cn --clustername",
    "cluster statistic": "--pageno --pagesize -cn --clusternames -q --queuename -l --labels",
    "job list": "-s --status -t --timestamp -st --starttime -q --queue -l --labels -m --maxkeys -mk --marker "
    "-fl --fieldlist",
    "job show": "jobid",
    "job stop": "jobid",
    "job delete": "jobid",
    "job create": "jobtype jsonpath",
    "job update": "jobid -p --priority -l --labels -a --annotations",
    "log job": "-j --jobid -f --framework -r --readfromtail -l --line_limit -s --size_limit",
    "statistics job": "jobid -d --detail -s --start -e --end -st --step",
    "statistics card-time": "-q --queue_names -s --start_time -e --end_time",
    "version": "",
}


@pytest.mark.parametrize(("line", "words"), OPTIONS.items())
def test_options_scripts_rely_on(line: str, words: str) -> None:
    command: click.Command = cli
    with click.Context(cli) as ctx:
        for name in line.split():
            assert isinstance(command, click.Group)
            found = command.get_command(ctx, name)
            assert found is not None
            command = found
    assert " ".join(word for one in command.params for word in one.opts) == words


def test_watch_on_a_terminal(server: RecordedServer, config: Path) -> None:
    _follow(server, "init", "running", "succeeded")
    server.on("GET", "/job/job-1/log", ok(b"step 1\n"))
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "paddleflow", "--pf_config", str(config), "job", "watch", "job-1"]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    env.pop("NO_COLOR", None)
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end of a terminal is closed
                break
            if not chunk:
                break
            seen += chunk
    os.close(ours)
    assert process.returncode == 0
    assert b"it waits: queue is full" in seen
    assert b"step 1" in seen
    assert b"\x1b[32msucceeded" in seen


def test_serve_refuses_a_password_that_everybody_could_see(paddleflow: Paddleflow) -> None:
    code, _, err = paddleflow("serve", "--database", "postgresql://pf:hunter2@127.0.0.1/pf")
    assert code == 2
    assert "PADDLEFLOW_DATABASE" in err
    assert "hunter2" not in err
