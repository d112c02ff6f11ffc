"""Jobs of several tasks on one host: they find each other, learn who comes and goes, and ports survive every crash."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from paddleflow.adapters.local import layout
from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import Invalid, Unavailable
from paddleflow.domain.ids import DEFAULT_CLUSTER, JobId, NodeName
from paddleflow.domain.jobs import BindMount, Membership, Placement, TaskStatus
from paddleflow.domain.resources import GPU, Resources
from tests.e2e.local_host import PYTHON, LocalHost, local_host, worker
from tests.port_blocks import free_block
from tests.programs import started
from tests.waiting import DEADLINE_S, wait_for

TEAM = JobId("job-team")
WORKERS = [worker(TEAM, index) for index in range(3)]

# Worker 0 listens where the membership says and greets everybody else by the rank they name; the others call there.
MEETING = """
import json, os, socket, sys, time
tasks = json.load(open(os.environ["PF_MEMBERSHIP_FILE"]))["tasks"]
me = int(sys.argv[1])
first = (tasks[0]["host"], tasks[0]["ports"][0])
if me == 0:
    with socket.create_server(first) as server:
        heard = []
        for _ in tasks[1:]:
            caller, _ = server.accept()
            heard.append(int(caller.makefile().readline()))
            caller.sendall(b"welcome\\n")
    print(sorted(heard))
else:
    while True:
        try:
            call = socket.create_connection(first)
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    call.sendall(b"%d\\n" % me)
    print(call.makefile().readline().strip())
"""

# Reads the membership as fast as it can and leaves at once when it is torn or goes backwards.
READER = """
import json, os
newest = 0
print("reading", flush=True)
while True:
    with open(os.environ["PF_MEMBERSHIP_FILE"]) as file:
        seen = json.load(file)
    assert seen["generation"] >= newest, (seen["generation"], newest)
    assert len(seen["tasks"]) == seen["generation"] % 3 + 1, seen
    newest = seen["generation"]
    if newest >= 300:
        break
"""

LISTENER = """
import signal, socket, sys
server = socket.create_server(("", int(sys.argv[1])))
print("up", flush=True)
signal.pause()
"""

# A server reduced to one reservation, which it may not survive.
RESERVER = """
import os, signal, sys
from pathlib import Path
from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions

root, moment, first, count, *tasks = sys.argv[1:]
ports = range(int(first), int(first) + int(count))
runtime = LocalRuntime(LocalRuntimeOptions(root=Path(root), port_range=ports))
if moment == "before-it-counts":
    os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if moment == "half-released":
    release, unlink = runtime._reservations.release, os.unlink
    def die_after_the_first(path):
        unlink(path)
        os.kill(os.getpid(), signal.SIGKILL)
    os.unlink = die_after_the_first
    for task in tasks:
        release(runtime._folder("job-team", task))
print("ready", flush=True)
sys.stdin.readline()
for task, address in runtime.addresses("job-team", tasks, 2).items():
    print(task, *address.ports)
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LocalHost]:
    with local_host(tmp_path / "root", port_range=free_block()) as host:
        yield host


def membership(host: LocalHost, generation: int, size: int) -> Membership:
    tasks = [worker(TEAM, index) for index in range(size)]
    found = host.runtime.addresses(TEAM, tasks, 2)
    node = host.runtime.nodes()[0].name
    return Membership(
        job_id=TEAM,
        generation=generation,
        least=2,
        most=4,
        tasks=tuple(
            (Placement(task_id=task, role="worker", index=index, node=node), found[task])
            for index, task in enumerate(tasks)
        ),
    )


def reserver(
    host: LocalHost, moment: str, ports: range, *indexes: int
) -> AbstractContextManager[subprocess.Popen[str]]:
    tasks = [worker(TEAM, index) for index in indexes]
    words = [sys.executable, "-c", RESERVER, str(host.root), moment, str(ports[0]), str(len(ports)), *tasks]
    return started(words, stderr=None)


def test_tasks_find_each_other(host: LocalHost) -> None:
    host.runtime.publish(membership(host, 1, 3))
    for index in range(3):
        host.runtime.launch(host.launch_of(TEAM, PYTHON, "-c", MEETING, str(index), index=index))
    assert {host.end_of(TEAM, index).message for index in range(3)} == {"exit code 0"}
    assert [host.log(TEAM, index) for index in range(3)] == ["[1, 2]\n", "welcome\n", "welcome\n"]


def test_the_membership_says_all_a_task_needs(host: LocalHost) -> None:
    published = membership(host, 4, 2)
    host.runtime.publish(published)
    _, log = host.shell(TEAM, 'cat "$PF_MEMBERSHIP_FILE"', env={"PF_MEMBERSHIP_FILE": "/etc/hostname"})
    node = host.runtime.nodes()[0].name
    assert json.loads(log) == {
        "jobID": TEAM,
        "generation": 4,
        "least": 2,
        "most": 4,
        "tasks": [
            {
                "id": WORKERS[rank],
                "role": "worker",
                "index": rank,
                "rank": rank,
                "host": "127.0.0.1",
                "ports": list(published.tasks[rank][1].ports),
                "node": node,
            }
            for rank in range(2)
        ],
    }


def test_a_reader_sees_whole_generations_that_only_rise(host: LocalHost) -> None:
    host.runtime.publish(membership(host, 1, 2))
    host.start(host.launch_of(TEAM, PYTHON, "-c", READER), until_it_says="reading")
    for generation in range(2, 301):
        host.runtime.publish(membership(host, generation, generation % 3 + 1))
        host.runtime.publish(membership(host, generation - 1, (generation - 1) % 3 + 1))
    assert host.end_of(TEAM).message == "exit code 0", host.log(TEAM)


def test_publishing_the_same_again_does_not_touch_the_file(host: LocalHost) -> None:
    host.runtime.publish(membership(host, 1, 2))
    file = Path(layout.membership_path(str(host.root), TEAM))
    before = file.stat()
    host.restart()
    host.runtime.publish(membership(host, 1, 2))
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("scribble", ["", "{", "[]", '{"generation": "x"}', "\udcff"])
def test_a_membership_that_a_task_has_spoilt_is_published_again(host: LocalHost, scribble: str) -> None:
    host.runtime.publish(membership(host, 3, 2))
    file = Path(layout.membership_path(str(host.root), TEAM))
    good = file.read_bytes()
    file.write_bytes(scribble.encode(errors="surrogateescape"))
    host.runtime.publish(membership(host, 3, 2))
    assert file.read_bytes() == good


def test_the_membership_is_seen_through_mounts(host: LocalHost, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    top = f"/pf-{secrets.token_hex(8)}/storage"
    script = """
    until [ -e "$PF_MEMBERSHIP_FILE" ]; do sleep 0.01; done
    echo one
    until grep -q '"generation": 2' "$PF_MEMBERSHIP_FILE"; do sleep 0.01; done
    """
    mounts = (
        BindMount(source=str(source), target=top),
        BindMount(source=str(source), target=f"{tmp_path}/made/up", read_only=True),
    )
    launch = host.launch_of(TEAM, "/bin/sh", "-c", script, mounts=mounts)
    host.start(launch)
    host.runtime.publish(membership(host, 1, 2))
    wait_for(lambda: host.log(TEAM) == "one\n", "that it sees the first membership")
    host.runtime.publish(membership(host, 2, 3))
    assert host.end_of(TEAM).status is TaskStatus.SUCCEEDED


def test_one_worker_leaves_with_its_grace_and_the_others_hear_no_signal(host: LocalHost) -> None:
    script = "trap 'echo saving; sleep 0.1; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    for index in range(3):
        host.start(host.launch_of(TEAM, "/bin/sh", "-c", script, index=index), until_it_says="ready")
    host.runtime.stop(TEAM, [WORKERS[2]], grace_s=60)
    assert host.end_of(TEAM, 2).message == "stopped by request"
    assert host.log(TEAM, 2).endswith("saving\nsaved\n")
    assert [host.log(TEAM, index) for index in range(2)] == ["ready\n", "ready\n"]
    running = {report.task_id for report in host.runtime.survey() if report.status is TaskStatus.RUNNING}
    assert running == set(WORKERS[:2])


def test_ports_are_the_same_after_a_restart(host: LocalHost) -> None:
    before = dict(host.runtime.addresses(TEAM, WORKERS, 2))
    host.restart()
    others = host.runtime.addresses(JobId("job-next"), [worker("job-next")], 4)
    assert host.runtime.addresses(TEAM, WORKERS, 2) == before
    mine = {port for address in before.values() for port in address.ports}
    assert not mine & set(others[worker("job-next")].ports)


def test_a_port_that_somebody_listens_on_is_stepped_around(tmp_path: Path) -> None:
    ports = free_block(4)
    with local_host(tmp_path / "root", port_range=ports) as host, socket.socket() as somebody:
        somebody.bind(("127.0.0.1", ports[1]))
        somebody.listen()
        found = host.runtime.addresses(TEAM, [WORKERS[0]], 3)
        assert sorted(found[WORKERS[0]].ports) == [ports[0], ports[2], ports[3]]
        with pytest.raises(Unavailable, match=f"{ports[0]}-{ports[-1]}"):
            host.runtime.addresses(TEAM, [WORKERS[1]], 1)


def test_a_port_the_task_itself_listens_on_stays_its_own(host: LocalHost) -> None:
    before = host.runtime.addresses(TEAM, [WORKERS[0]], 1)
    port = str(before[WORKERS[0]].ports[0])
    host.start(host.launch_of(TEAM, PYTHON, "-c", LISTENER, port), until_it_says="up")
    assert host.runtime.addresses(TEAM, [WORKERS[0]], 1) == before


def test_ports_given_back_are_not_given_to_the_next_one_at_once(host: LocalHost) -> None:
    before = host.runtime.addresses(TEAM, [WORKERS[0]], 2)
    host.runtime.remove(TEAM)
    after = host.runtime.addresses(TEAM, [WORKERS[0]], 2)
    assert not set(before[WORKERS[0]].ports) & set(after[WORKERS[0]].ports)


def test_two_roots_begin_at_different_ports(tmp_path: Path) -> None:
    begins = set()
    for number in range(4):
        with local_host(tmp_path / f"root-{number}") as host:
            begins.add(host.runtime.addresses(TEAM, [WORKERS[0]], 1)[WORKERS[0]].ports)
    assert len(begins) > 1


@pytest.mark.parametrize("moment", ["before-it-counts", "half-released"])
def test_a_server_killed_in_a_reservation_leaks_no_port(tmp_path: Path, moment: str) -> None:
    ports = free_block(4)
    with local_host(tmp_path / "root", port_range=ports) as host:
        if moment == "half-released":
            host.runtime.addresses(TEAM, WORKERS[:2], 2)
        with reserver(host, moment, ports, 0) as server:
            answer, _ = server.communicate("go\n", timeout=DEADLINE_S)
        assert server.returncode == -9
        assert [line for line in answer.splitlines() if line != "ready"] == []
        assert list((host.root / layout.RESERVED).iterdir()) != []
        host.restart()
        if moment == "half-released":
            host.runtime.remove(TEAM)
        found = host.runtime.addresses(JobId("job-next"), [worker("job-next")], 4)
        assert sorted(found[worker("job-next")].ports) == list(ports)
        host.runtime.remove(JobId("job-next"))
        assert list((host.root / layout.RESERVED).iterdir()) == []


def test_two_servers_reserving_at_once_agree(host: LocalHost) -> None:
    ports = free_block()
    answers: dict[str, set[str]] = {}
    with ExitStack() as running:
        servers = [
            running.enter_context(reserver(host, "never", ports, *indexes)) for indexes in ((0, 1, 2), (2, 3, 1))
        ]
        for server in servers:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
        for server in servers:
            assert server.stdin is not None
            server.stdin.write("go\n")
            server.stdin.flush()
        for server in servers:
            told, _ = server.communicate(timeout=DEADLINE_S)
            assert server.returncode == 0
            for line in told.splitlines():
                task, _, numbers = line.partition(" ")
                answers.setdefault(task, set()).add(numbers)
    assert {task: len(numbers) for task, numbers in answers.items()} == {worker(TEAM, index): 1 for index in range(4)}
    every = [port for numbers in answers.values() for port in next(iter(numbers)).split()]
    assert len(set(every)) == len(every) == 8


@pytest.mark.parametrize("ports", [range(0), range(80, 2000), range(65000, 70000), range(20000, 21000, 2)])
def test_a_range_that_is_none_is_refused(tmp_path: Path, ports: range) -> None:
    with pytest.raises(Invalid, match="port_range"):
        LocalHost(tmp_path / "root", port_range=ports)
    assert not (tmp_path / "root").exists()


def test_simulated_nodes_show_a_task_the_gpus_it_was_given(tmp_path: Path) -> None:
    nodes = tuple(
        Node(
            name=NodeName(f"sim-{number}"),
            cluster=DEFAULT_CLUSTER,
            capacity=Resources.of(cpu="8", memory="16Gi", **{GPU: "4"}),
        )
        for number in (1, 2)
    )
    given = [("sim-1", (0, 1)), ("sim-2", (0, 1)), ("sim-2", (3,)), ("sim-1", ())]
    with local_host(tmp_path / "root", nodes=nodes) as host:
        assert [node.name for node in host.runtime.nodes()] == ["sim-1", "sim-2"]
        for index, (node, gpus) in enumerate(given):
            launch = host.launch_of(
                TEAM, "/bin/sh", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"', index=index, node=NodeName(node), gpus=gpus
            )
            host.runtime.launch(launch)
        assert {host.end_of(TEAM, index).message for index in range(4)} == {"exit code 0"}
        assert [host.log(TEAM, index) for index in range(4)] == ["[0,1]\n", "[0,1]\n", "[3]\n", "[]\n"]
        with pytest.raises(Invalid, match="sim-3"):
            host.runtime.launch(host.launch_of("job-else", "true", node=NodeName("sim-3")))
