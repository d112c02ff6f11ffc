"""The command line against a real server: ``paddleflow serve`` in a process of its own, every command driven once."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddleflow import Client
from tests.e2e.servers import RUN_DEADLINE_S, Server
from tests.ports import reserve_port
from tests.programs import started
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Shell:
    """A user at a prompt: a home of their own and a config file for one server."""

    config: Path
    cwd: Path

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "paddleflow", "--pf_config", str(self.config), *words]

    def __call__(self, *words: str) -> Ended:
        done = subprocess.run(
            self.words(*words), cwd=self.cwd, capture_output=True, text=True, timeout=RUN_DEADLINE_S, check=False
        )
        return Ended(code=done.returncode, out=done.stdout, err=done.stderr)

    def ok(self, *words: str) -> str:
        ended = self(*words)
        assert ended.code == 0, ended
        return ended.out

    def json(self, *words: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(self.ok("--output", "json", *words))
        return found


def _config(path: Path, port: int, user: str = "root", password: str = "paddleflow") -> Path:
    path.write_text(
        f"[user]\nname = {user}\npassword = {password}\n"
        f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {port}\n"
    )
    return path


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    server = Server(tmp_path_factory.mktemp("server") / "state").wait_ready()
    try:
        yield server.port
        server.end_jobs()
    finally:
        server.stop()


@pytest.fixture
def shell(port: int, tmp_path: Path) -> Shell:
    return Shell(config=_config(tmp_path / "root.ini", port), cwd=tmp_path)


def test_version(shell: Shell) -> None:
    told = json.loads(shell.ok("version"))
    assert told["client"].startswith("PaddleFlow-")
    assert told["server"]["gitVersion"]


def test_users_and_grants(shell: Shell, port: int, tmp_path: Path) -> None:
    assert shell.ok("user", "add", "alice", "secret1") == "user[alice] add success\n"
    assert shell("user", "add", "alice", "secret1").code == 1
    assert "alice" in shell.ok("user", "list")
    assert shell.ok("user", "set", "alice", "secret2") == "user[alice] update success\n"

    alice = Shell(config=_config(tmp_path / "alice.ini", port, "alice", "secret2"), cwd=tmp_path)
    assert shell.ok("queue", "create", "granted", "default", "1", "1Gi") == "queue[granted] create success \n"
    assert alice("queue", "show", "granted").code == 4
    assert shell.ok("queue", "grant", "alice", "granted") == "queue[granted] add username[alice] success\n"
    assert shell.json("queue", "grantlist", "-u", "alice") == [{"user name": "alice", "queue name": "granted"}]
    assert "granted" in alice.ok("queue", "list")
    assert shell.ok("queue", "ungrant", "alice", "granted") == "queue[granted] delete username[alice] success\n"
    assert shell.ok("queue", "delete", "granted") == "queue[granted] delete success \n"

    assert alice.ok("user", "set", "alice", "secret3") == "user[alice] update success\n"
    assert alice("queue", "list").code == 0, "who changes their own password goes on working"

    wrong = Shell(config=_config(tmp_path / "wrong.ini", port, "alice", "wrong1"), cwd=tmp_path)
    assert wrong("queue", "list").code == 4
    assert shell.ok("user", "delete", "alice") == "user[alice] delete success\n"


def test_queues(shell: Shell) -> None:
    assert shell.ok("queue", "create", "small", "default", "2", "2Gi", "--mincpu", "1", "--minmem", "1Gi") == (
        "queue[small] create success \n"
    )
    assert shell.ok("queue", "update", "small", "--maxcpu", "3") == "queue[small] update success \n"
    shown = shell.json("queue", "show", "small")[0]
    assert shown["status"] == "open"
    assert shown["max resources"]["cpu"] == "3"  # type: ignore[index]
    assert "small" in [one["name"] for one in shell.json("queue", "list")]
    assert "queue info: \n" in shell.ok("queue", "show", "small")
    assert shell.ok("queue", "delete", "small") == "queue[small] delete success \n"
    assert shell("queue", "show", "small").code == 5


def test_flavours(shell: Shell) -> None:
    line = "flavour create gpu -c 4 -m 8Gi -s nvidia.com/gpu=1"
    assert shell.ok(*line.split()) == "flavour[gpu] create success \n"
    assert shell.ok("flavour", "update", "gpu", "-c", "6") == "update [gpu] success\n"
    shown = shell.json("flavour", "show", "gpu")[0]
    assert (shown["cpu"], shown["mem"]) == ("6", "8Gi")
    assert shell.ok("flavour", "list").splitlines()[-1] == "marker: None"
    assert shell.ok("flavour", "delete", "gpu") == "flavour[gpu] delete success \n"
    assert shell("flavour", "show", "gpu").code == 5


def test_filesystems(shell: Shell) -> None:
    data = shell.cwd / "data"
    data.mkdir()
    assert shell.ok("fs", "create", "mine", f"local://{str(data).lstrip('/')}") == "fs[mine] create success\n"
    assert shell.json("fs", "show", "mine")[0]["type"] == "local"
    assert "mine" in shell.ok("fs", "list")
    assert shell.ok("fs", "delete", "mine") == "fs[mine] delete success\n"
    assert shell("fs", "show", "mine").code == 5


def test_clusters(shell: Shell) -> None:
    name = str(shell.json("cluster", "list")[0]["cluster name"])
    assert "credential value:" in shell.ok("cluster", "show", name)
    assert name in shell.ok("cluster", "resource")
    assert shell("cluster", "statistic").code == 0
    changed = shell.ok("cluster", "update", name, "-d", "the one at hand")
    assert re.fullmatch(rf"cluster\[{name}\] update success, id\[.+\]\n", changed)
    assert shell.json("cluster", "show", name)[0]["description"] == "the one at hand"


def test_submit_watch_and_logs(shell: Shell) -> None:
    ended = shell("job", "submit", "-n", "hello", "--watch", "--", "sh", "-c", "echo one; echo two; pwd")
    assert ended.code == 0, ended
    job_id, *log = ended.out.splitlines()
    assert log == ["one", "two", str(shell.cwd)]
    assert f"{job_id} succeeded" in ended.err
    assert shell.ok("job", "logs", job_id) == f"one\ntwo\n{shell.cwd}\n"
    assert shell.ok("job", "logs", job_id, "--tail", "1") == f"{shell.cwd}\n"
    assert shell.ok("job", "logs", job_id, "--tail", "2", "-f") == f"two\n{shell.cwd}\n"
    assert "one" in shell.ok("log", "job", "-j", job_id, "-f", "standalone")
    assert shell("job", "watch", job_id).code == 0
    assert shell("statistics", "job", job_id).code == 0
    assert job_id in shell.ok("job", "why", job_id)
    assert job_id in [one["job id"] for one in shell.json("job", "list", "-fl", "id,status")]
    assert "job config and runtime info: \n" in shell.ok("job", "show", job_id)
    assert shell.ok("job", "delete", job_id) == f"job[{job_id}] delete success \n"
    assert shell("job", "show", job_id).code == 5


SMALL = ("-c", "250m", "-m", "64Mi")


def test_a_team_runs_and_every_line_says_whose_it_is(shell: Shell) -> None:
    say = 'echo "$PF_TASK_ROLE $PF_TASK_INDEX of $PF_WORLD_SIZE"'
    ended = shell("job", "run", "-F", "pytorch", "-W", "2", *SMALL, "--", "sh", "-c", say)
    assert ended.code == 0, ended
    job_id, *log = ended.out.splitlines()
    lines = ["[worker-0] worker 0 of 2", "[worker-1] worker 1 of 2"]
    assert sorted(log) == lines
    assert f"{job_id} succeeded" in ended.err
    assert shell.ok("job", "logs", job_id).splitlines() == lines
    assert shell.ok("job", "logs", job_id, "--task", "worker-1") == "worker 1 of 2\n"
    shown = shell.json("job", "show", job_id)[0]
    assert shown["framework"] == "pytorch"
    assert len(shown["distributed runtime"]["runtimes"]) == 2  # type: ignore[index,call-overload]
    assert job_id in shell.ok("job", "eta", job_id)


def test_a_team_that_fails_is_started_again(shell: Shell) -> None:
    once = "test -e marker || { touch marker; exit 3; }; echo fine"
    body = {
        "framework": "pytorch",
        "members": [{"role": "worker", "replicas": 2, "flavour": {"cpu": "250m", "mem": "64Mi"}, "command": once,
                     "env": {"PF_WORK_DIR": str(shell.cwd)}}],
        "runPolicy": {"retries": 5, "backoffSeconds": 0},
    }  # fmt: skip
    file = shell.cwd / "team.json"
    file.write_text(json.dumps(body))
    said = shell.ok("job", "create", "distributed", str(file))
    job_id = said[said.index("[") + 1 : said.index("]")]
    assert shell("job", "watch", job_id).code == 0
    assert "retries used" in str(shell.json("job", "show", job_id)[0]["message"])


def test_a_tree_of_queues(shell: Shell) -> None:
    shell.ok("queue", "create", "house", "default", "2", "2Gi", "--mincpu", "1", "--weight", "2")
    shell.ok("queue", "create", "room", "default", "1", "1Gi", "--mincpu", "500m", "--parent", "house")
    shown = shell.json("queue", "show", "house")[0]
    assert (shown["status"], shown["weight"], shown["children"]) == ("closed", 2, ["room"])
    assert shown["children min resources"] == {"cpu": "500m", "memory": "0"}
    assert shell("queue", "create", "attic", "default", "1", "1Gi", "--mincpu", "1", "--parent", "house").code == 1
    assert shell("queue", "delete", "house").code == 1
    shell.ok("queue", "update", "room", "--parent", "")
    assert shell.json("queue", "show", "room")[0]["parent"] == "root"
    assert shell.ok("queue", "stop", "room") == "queue[room] stop success \n"
    assert shell("job", "submit", "-q", "room", "--", "true").code == 1
    assert shell.ok("queue", "open", "room") == "queue[room] open success \n"
    told = shell.ok("queue", "what-if", "--queue", "room:maxcpu=2", "--add-nodes", "1:cpu=4,mem=8Gi")
    assert told.strip()
    for name in ("room", "house"):
        shell.ok("queue", "delete", name)


def test_failed_job_ends_the_watch_with_its_own_code(shell: Shell) -> None:
    assert shell("job", "submit", "--watch", "--", "false").code == 10


def test_stop_and_update(shell: Shell) -> None:
    job_id = shell.ok("job", "submit", "-l", "team=a", "--", "sleep", "600").strip()
    assert shell.ok("job", "update", job_id, "-l", "team=b") == f"jobid[{job_id}] update success\n"
    assert shell("job", "delete", job_id).code == 1
    assert shell.ok("job", "stop", job_id) == f"jobid[{job_id}] stop success\n"
    assert shell("job", "watch", job_id).code == 11
    assert shell.json("job", "list", "-l", "team=b", "-fl", "id")[0]["job id"] == job_id


def test_ctrl_c_leaves_the_job_running(shell: Shell) -> None:
    words = shell.words("job", "submit", "--watch", "--", "sh", "-c", "echo up; exec sleep 600")
    with started(words, cwd=shell.cwd) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        job_id = watching.stdout.readline().strip()
        assert watching.stdout.readline() == "up\n"
        watching.send_signal(signal.SIGINT)
        assert f"{job_id} keeps running" in watching.stderr.read()
        assert watching.wait(DEADLINE_S) == 130
    assert shell.json("job", "list", "-s", "running", "-fl", "id")[0]["job id"] == job_id
    assert shell.ok("job", "stop", job_id) == f"jobid[{job_id}] stop success\n"


def test_job_create_from_json(shell: Shell) -> None:
    file = shell.cwd / "job.json"
    body = {"schedulingPolicy": {"queue": "default-queue"}, "command": "echo from json"}
    file.write_text(json.dumps(body))
    said = shell.ok("job", "create", "single", str(file))
    found = re.fullmatch(r"job create success, id\[(job-[0-9a-f]{16})\]\n", said)
    assert found is not None, said
    assert shell("job", "watch", found[1]).out == "from json\n"


def test_the_same_key_is_the_same_job(port: int) -> None:
    with Client("127.0.0.1", "root", "paddleflow", port) as client:
        client.login("root", "paddleflow")
        first = client.submit_job("true", idempotency_key="once")
        assert client.submit_job("true", idempotency_key="once") == first
        assert [job.status for job in client.watch_job(first[1])][-1] == "succeeded"
        told = [event.kind for event in client.events(0, subject=first[1], follow=False)]
        assert (told[0], told[-1]) == ("JobSubmitted", "JobFinished")


def test_card_time(shell: Shell) -> None:
    line = ["statistics", "card-time", "-q", "default-queue", "-s", "2024-01-01 00:00:00", "-e", "2024-01-02 00:00:00"]
    assert shell(*line).code == 0


def test_a_job_finds_the_programs_and_the_home_of_its_caller(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "mine"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "at $HOME of $VIRTUAL_ENV, $1"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    ended = shell("job", "submit", "--watch", "-e", "HOME=/elsewhere", "--", "mine", "with care")
    assert (ended.code, f"at /elsewhere of {tmp_path}, with care\n" in ended.out) == (0, True), ended
    assert "at /home/me of" in shell.ok("job", "submit", "--watch", "--", "mine", "x")


def test_no_server_is_exit_code_3(tmp_path: Path) -> None:
    nobody = Shell(config=_config(tmp_path / "c.ini", reserve_port()), cwd=tmp_path)
    ended = nobody("queue", "list")
    assert (ended.code, ended.out) == (3, "")
    waiting, problem = ended.err.splitlines()
    assert waiting.startswith("waiting for a server at http://127.0.0.1:")
    assert problem.startswith("error: cannot reach")
