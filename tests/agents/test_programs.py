"""The programs that run inside tasks, as the processes they are."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from paddleflow.adapters.local.processes import find_process, session_members
from tests.ports import reserve_port
from tests.waiting import DEADLINE_S, wait_for

SECRET = "known to this job"


class Processes:
    """Agents under way; whatever is left of them at the end of a test goes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[tuple[subprocess.Popen[bytes], int]] = []
        """Each with the time it began, as its number may be somebody else's later."""

    def start(self, program: str, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"paddleflow.agents.{program}", *words],
            env={"PATH": os.environ["PATH"], "TMPDIR": str(self._directory), **(env or {})},
            cwd=self._directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        seen = find_process(process.pid)
        assert seen is not None, "nobody has waited for it yet"
        self._started.append((process, seen.start_ticks))
        return process

    def run(self, program: str, *words: str, env: Mapping[str, str] | None = None, given: bytes = b"") -> Finished:
        process = self.start(program, *words, env=env)
        output, errors = process.communicate(given, timeout=DEADLINE_S)
        return Finished(process.returncode, output.decode(), errors.decode())

    def clear(self) -> None:
        for process, began in self._started:
            process.kill()
            # What it has started leads groups of its own, in the session that was made for it.
            for one in session_members(process.pid, began):
                with suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
            process.communicate()


class Finished:
    def __init__(self, code: int, output: str, errors: str) -> None:
        self.code, self.output, self.errors = code, output, errors


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.clear()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def catches(pid: int, number: int) -> bool:
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    return bool(int(status["SigCgt"], 16) >> (number - 1) & 1)


def listener(port: int) -> list[str]:
    """A service that listens until it is told to stop."""
    text = f"import socket,signal; s=socket.create_server(('127.0.0.1',{port})); signal.pause()"
    return [sys.executable, "-c", text]


# Remote execution.


class Worker:
    def __init__(self, processes: Processes, secret: str = SECRET) -> None:
        self._processes = processes
        self.port = reserve_port()
        env = {"PF_TASK_ENDPOINT": f"127.0.0.1:{self.port}", "PF_JOB_SECRET": secret, "WHO": "the worker"}
        self.process = processes.start("remote_exec", "serve", env=env)

    def environment(self, secret: str = SECRET) -> dict[str, str]:
        workers = [{"name": "w-0", "host": "127.0.0.1", "port": self.port, "slots": 1}]
        return {"PF_JOB_SECRET": secret, "PF_MPI_WORKERS": json.dumps(workers), "WHO": "the caller"}

    def call(self, *words: str, given: bytes = b"", secret: str = SECRET) -> Finished:
        return self._processes.run("remote_exec", "run", "w-0", *words, env=self.environment(secret), given=given)


def test_a_line_runs_over_there(processes: Processes) -> None:
    worker = Worker(processes)
    done = worker.call("echo", '"$WHO"; cat; echo problem >&2; exit 7', given=b"and the input\n")
    assert done.output == "the worker\nand the input\n"
    assert done.errors == "problem\n"
    assert done.code == 7


def test_much_output_arrives_whole_and_a_signal_is_told(processes: Processes) -> None:
    worker = Worker(processes)
    done = worker.call("head -c 3000000 /dev/zero | tr '\\0' x; kill -KILL $$")
    assert len(done.output) == 3_000_000
    assert done.code == 128 + signal.SIGKILL


def test_who_does_not_know_the_secret_is_turned_away(processes: Processes, tmp_path: Path) -> None:
    worker = Worker(processes)
    done = worker.call("touch", str(tmp_path / "came-in"), secret="a guess")
    assert done.code == 255
    assert not (tmp_path / "came-in").exists()
    assert worker.call("echo still here").output == "still here\n"


def test_a_caller_does_not_talk_to_somebody_else(processes: Processes, tmp_path: Path) -> None:
    """After a worker's end another program may listen at its port."""
    worker = Worker(processes, secret="another job")
    done = worker.call("touch", str(tmp_path / "came-in"))
    assert done.code == 255
    assert not (tmp_path / "came-in").exists()


def test_strangers_and_silence_do_no_harm(processes: Processes) -> None:
    worker = Worker(processes)
    wait_for(lambda: is_listening(worker.port), "the worker listening")
    silent = socket.create_connection(("127.0.0.1", worker.port))
    with socket.create_connection(("127.0.0.1", worker.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert worker.call("echo fine").output == "fine\n"
    silent.close()


@pytest.mark.parametrize("words", [("serve",), ("run", "w-0", "ls")])
def test_nothing_without_a_secret(processes: Processes, words: tuple[str, ...]) -> None:
    done = processes.run("remote_exec", *words, env={"PF_TASK_ENDPOINT": f"127.0.0.1:{reserve_port()}"})
    assert done.code == 1
    assert "PF_JOB_SECRET is not set" in done.errors


def test_an_unknown_worker_is_named(processes: Processes) -> None:
    done = processes.run("remote_exec", "run", "nobody", "ls", env=Worker(processes).environment())
    assert done.code == 1
    assert "[nobody] is no worker of this job; its workers are: w-0" in done.errors


def test_a_command_ends_with_its_caller(processes: Processes, tmp_path: Path) -> None:
    worker = Worker(processes)
    noted = tmp_path / "pid"
    caller = processes.start("remote_exec", "run", "w-0", f"echo $$ > {noted}; sleep 600", env=worker.environment())
    pid = int(wait_for(noted.read_text, "the command's start"))
    caller.terminate()
    wait_for(lambda: not is_running(pid), "the command's end")


def test_a_worker_ends_when_told_and_takes_its_commands_along(processes: Processes, tmp_path: Path) -> None:
    worker = Worker(processes)
    noted = tmp_path / "pid"
    caller = processes.start("remote_exec", "run", "w-0", f"echo $$ > {noted}; sleep 600", env=worker.environment())
    pid = int(wait_for(noted.read_text, "the command's start"))
    worker.process.terminate()
    assert worker.process.wait(DEADLINE_S) == 0
    assert caller.wait(DEADLINE_S) == 255
    assert not is_running(pid)


def test_the_master_tells_mpirun_where_the_workers_are(processes: Processes) -> None:
    env = {"PF_MPI_WORKERS": json.dumps([{"name": "w-0", "host": "h", "port": 1, "slots": 3}])}
    words = ("sh", "-c", 'cat "$OMPI_MCA_orte_default_hostfile"; echo "$OMPI_MCA_plm_rsh_agent"')
    done = processes.run("mpi_master", "--", *words, env=env)
    assert done.output == f"w-0 slots=3\n{sys.executable} -m paddleflow.agents.remote_exec run\n"


def test_what_the_user_set_for_mpirun_stays(processes: Processes) -> None:
    env = {"PF_MPI_WORKERS": "[]", "OMPI_MCA_plm_rsh_agent": "ssh"}
    assert processes.run("mpi_master", "--", "printenv", "OMPI_MCA_plm_rsh_agent", env=env).output == "ssh\n"


# Waiting, and a service beside the command.


def test_after_becomes_the_command_when_somebody_listens(processes: Processes) -> None:
    port = reserve_port()
    waiting = processes.start("after", f"127.0.0.1:{port}", "--", "echo", "a  b", "$HOME")
    with socket.create_server(("127.0.0.1", port)):
        output, _ = waiting.communicate(timeout=DEADLINE_S)
    assert output == b"a  b $HOME\n"
    assert waiting.returncode == 0


@pytest.mark.parametrize("program", ["after", "beside", "scratch", "elastic", "mpi_master"])
def test_a_wrong_call_says_how_to_call(processes: Processes, program: str) -> None:
    done = processes.run(program, "--")
    assert done.code == 1
    assert f"usage: {program} " in done.errors


def test_a_missing_program_is_named(processes: Processes) -> None:
    done = processes.run("scratch", "--", "no-such-program")
    assert done.code == 1
    assert "cannot start no-such-program: No such file or directory" in done.errors


def beside(port: int, service: list[str], *command: str) -> list[str]:
    return ["--service", json.dumps(service), "--ready", f"127.0.0.1:{port}", "--", *command]


@pytest.mark.parametrize("code", [0, 3])
def test_the_command_runs_beside_the_service_and_ends_both(processes: Processes, code: int) -> None:
    port = reserve_port()
    text = f"import socket,sys; socket.create_connection(('127.0.0.1',{port})); print('met'); sys.exit({code})"
    done = processes.run("beside", *beside(port, listener(port), sys.executable, "-c", text))
    assert done.output == "met\n"
    assert done.code == code
    assert not is_listening(port)


def test_a_service_that_cannot_start_ends_the_task(processes: Processes) -> None:
    port = reserve_port()
    done = processes.run("beside", *beside(port, ["sh", "-c", "exit 9"], "echo", "never"))
    assert done.code == 1
    assert done.output == ""
    assert "ended with exit code 9 before the command could start" in done.errors


def test_a_service_that_ends_early_takes_the_command_along(processes: Processes) -> None:
    port = reserve_port()
    text = f"import socket; s=socket.create_server(('127.0.0.1',{port})); s.accept(); s.accept()"
    meet = f"import socket,signal; s=socket.create_connection(('127.0.0.1',{port})); signal.pause()"
    service = [sys.executable, "-c", text]
    done = processes.run("beside", *beside(port, service, sys.executable, "-c", meet))
    assert done.code == 128 + signal.SIGTERM
    assert "the command is stopped" in done.errors


def test_a_request_to_stop_reaches_the_command_once(processes: Processes, tmp_path: Path) -> None:
    port = reserve_port()
    heard = tmp_path / "heard"
    text = f'trap "echo term >> {heard}; exit 5" TERM; echo up > {tmp_path}/up; while :; do sleep 0.05; done'
    running = processes.start("beside", *beside(port, listener(port), "sh", "-c", text))
    wait_for((tmp_path / "up").exists, "the command's start")
    os.killpg(running.pid, signal.SIGTERM)
    assert running.wait(DEADLINE_S) == 5
    assert heard.read_text() == "term\n"


def test_scratch_is_short_private_and_gone_afterwards(processes: Processes) -> None:
    done = processes.run("scratch", "--", "sh", "-c", 'echo "$1"; stat -c %a "$1"; : > "$1/left"', "sh", "{scratch}")
    directory, mode = done.output.split()
    assert len(directory) < 20
    assert mode == "700"
    assert not Path(directory).exists()


# Following a membership.


class Job:
    """The membership of an elastic job, and one of its tasks."""

    def __init__(self, processes: Processes, directory: Path) -> None:
        self._processes = processes
        self._file = directory / "membership.json"
        self.starts = directory / "starts"
        self._generation = 0

    def publish(self, *ids: str) -> None:
        self._generation += 1
        tasks = [
            {"id": each, "role": "worker", "index": rank, "rank": rank, "host": "127.0.0.1", "ports": [1, 2, 3, 4]}
            for rank, each in enumerate(ids)
        ]
        document = {"generation": self._generation, "least": 1, "most": 4, "tasks": tasks}
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(document))
        fresh.replace(self._file)

    def follow(self, me: str, rest: str, contract: str = "trainer", **more: str) -> subprocess.Popen[bytes]:
        note = f'echo "$PADDLE_TRAINER_ID/$PADDLE_TRAINERS_NUM $PADDLE_RANK/$PADDLE_NNODES" >> {self.starts}; {rest}'
        env = {"PF_TASK_ID": me, "PF_MEMBERSHIP_FILE": str(self._file), **more}
        return self._processes.start("elastic", "--contract", contract, "--", "sh", "-c", note, env=env)

    def started(self, times: int) -> Callable[[], bool]:
        return lambda: self.starts.exists() and len(self.starts.read_text().splitlines()) >= times


@pytest.fixture
def job(processes: Processes, tmp_path: Path) -> Job:
    return Job(processes, tmp_path)


FOREVER = "exec sleep 600"


def test_a_command_is_started_again_at_every_change(job: Job) -> None:
    job.publish("w-0", "w-1")
    running = job.follow("w-1", FOREVER)
    wait_for(job.started(1), "the first start")
    job.publish("w-0", "w-1", "w-2")
    wait_for(job.started(2), "the second start")
    job.publish("w-1", "w-2")
    wait_for(job.started(3), "the third start")
    assert job.starts.read_text().splitlines() == ["1/2 1/2", "1/3 1/3", "0/2 0/2"]
    running.terminate()
    assert running.wait(DEADLINE_S) == 128 + signal.SIGTERM


def test_the_launcher_s_contract_leaves_out_the_endpoints(job: Job) -> None:
    job.publish("w-0", "w-1")
    assert job.follow("w-0", '[ -z "${PADDLE_TRAINER_ENDPOINTS+set}" ]', "launcher").wait(DEADLINE_S) == 0
    assert job.starts.read_text() == "/ 0/2\n"


def test_a_variable_the_user_set_empty_is_not_there(job: Job) -> None:
    job.publish("w-0")
    check = '[ -z "${PADDLE_TRAINER_ENDPOINTS+set}" ] && [ -n "$PADDLE_PORT" ]'
    assert job.follow("w-0", check, PADDLE_TRAINER_ENDPOINTS="").wait(DEADLINE_S) == 0


def test_a_task_waits_until_it_is_a_member_and_ends_when_it_is_none(job: Job) -> None:
    running = job.follow("w-1", FOREVER)
    job.publish("w-0")
    job.publish("w-0", "w-1")
    wait_for(job.started(1), "the start")
    job.publish("w-0")
    assert running.wait(DEADLINE_S) == 0
    assert job.starts.read_text() == "1/2 1/2\n"


def test_success_is_the_task_s_success(job: Job) -> None:
    job.publish("w-0")
    assert job.follow("w-0", "exit 0").wait(DEADLINE_S) == 0


def test_a_failure_that_a_new_membership_explains_is_none(job: Job) -> None:
    job.publish("w-0", "w-1")
    running = job.follow("w-0", '[ "$PADDLE_TRAINERS_NUM" = 1 ] || exit 4')
    wait_for(job.started(1), "the start")
    job.publish("w-0")
    assert running.wait(DEADLINE_S) == 0
    assert job.starts.read_text() == "0/2 0/2\n0/1 0/1\n"


def test_a_stop_while_waiting_for_the_first_membership(job: Job) -> None:
    running = job.follow("w-0", FOREVER)
    wait_for(lambda: catches(running.pid, signal.SIGTERM), "the program listening for signals")
    running.terminate()
    assert running.wait(DEADLINE_S) == 128 + signal.SIGTERM
    assert not job.starts.exists()
