"""Pipelines in the shapes people have written for years, brought as they are: a folder of scripts on a filesystem, a
run.yaml beside them, or a run.py that finds the server by the configuration in its owner's home."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from paddleflow import Client
from paddleflow.sdk.run_views import DagInfo, JobInfo, RunInfo, View
from tests.e2e.servers import RUN_DEADLINE_S, Server

pytestmark = pytest.mark.timeout(600)


class Desk:
    """A server, a filesystem named ``desk``, a queue named ``ovens``, and a home directory that knows the server."""

    def __init__(self, place: Path, server: Server, client: Client) -> None:
        self.root = place / "desk"
        self.home = place / "home"
        self.client = client
        self.root.mkdir()
        config = self.home / ".paddleflow" / "paddleflow.ini"
        config.parent.mkdir(parents=True)
        config.write_text(
            "[user]\nname = root\npassword = paddleflow\n"
            f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {server.port}\n"
        )
        client.add_fs("desk", f"local://{self.root}")
        client.add_queue("ovens", "default", "default-cluster", {"cpu": "2", "mem": "2Gi"})

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def python(self, *argv: str) -> str:
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=self.root,
            env={**os.environ, "HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=RUN_DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def create(self, *words: str) -> RunInfo:
        said = self.python("-m", "paddleflow", "run", "create", *words)
        found = re.search(r"create success with run id\[(run-\d+)\]", said)
        assert found, said
        return self.ended(found[1])

    def raw(self, text: str, **request: str) -> RunInfo:
        _, run_id = self.client.create_run(run_yaml_raw=textwrap.dedent(text).encode(), **request)
        return self.ended(run_id)

    def ended(self, run_id: str) -> RunInfo:
        _, run = self.client.wait_run(run_id, timeout=RUN_DEADLINE_S)
        return run

    def log(self, view: View, run: RunInfo) -> str:
        assert isinstance(view, JobInfo)
        _, logs = self.client.show_log(run.run_id, view.job_id)
        return "".join(each.log_content for each in logs["runLog"])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    place = tmp_path_factory.mktemp("desk")
    # Their pipelines name images, which mean something where they come from.
    config = place / "server.yaml"
    config.write_text("local: {images: ignore}\n")
    server = Server(place / "state", None, "--config", str(config))
    try:
        server.wait_ready()
        with Client("127.0.0.1", "root", "paddleflow", server.port) as client:
            client.login("root", "paddleflow")
            yield Desk(place, server, client)
    finally:
        server.stop()


def statuses(views: Mapping[str, list[View]]) -> dict[str, list[str]]:
    return {name: [view.status for view in each] for name, each in views.items()}


def only(run: RunInfo, name: str) -> JobInfo:
    """The one job of a step at the top."""
    (view,) = run.runtime[name]
    assert isinstance(view, JobInfo)
    return view


BAKERY = {
    "bakery/mix.sh": 'mkdir -p "$1" && echo "flour for $CUSTOMER" > "$1/dough"\n',
    "bakery/bake.sh": 'mkdir -p "$3" && { echo "$1 minutes"; cat "$2/dough"; } > "$3/bread"\n',
    "bakery/run.yaml": """
        name: bakery
        docker_env: some/image:1.0
        parallelism: 1
        entry_points:
          mix:
            command: bash bakery/mix.sh {{bowl}}
            docker_env: other/image:2.0
            env: {PF_JOB_TYPE: vcjob, PF_JOB_MODE: Pod, PF_JOB_QUEUE: old, PF_JOB_QUEUE_NAME: ovens,
                  PF_JOB_FLAVOUR: flavour1, PF_JOB_PRIORITY: high, CUSTOMER: "no-{{PF_USER_NAME}}"}
            parameters: {bowl: "./bowls/{{ PF_RUN_ID }}"}
          bake:
            command: bash bakery/bake.sh {{minutes}} {{dough}} {{shelf}}
            deps: mix
            parameters: {minutes: 40, shelf: "./shelves/{{PF_RUN_ID}}", dough: "{{mix.bowl}}"}
    """,
}


@pytest.mark.parametrize(
    "words", [("-yr", "bakery/run.yaml"), ("-yp", "./bakery/run.yaml"), ("-yp", "bakery/run.yaml")]
)
def test_scripts_on_the_filesystem_find_each_other_by_relative_paths(desk: Desk, words: tuple[str, ...]) -> None:
    desk.write(BAKERY)
    run = desk.create("-f", "desk", *words, "-p", "bake.minutes=55")
    assert (run.status, run.name) == ("succeeded", "bakery"), run.run_msg
    bread = desk.root / "shelves" / run.run_id / "bread"
    assert bread.read_text() == "55 minutes\nflour for no-root\n"
    mix = only(run, "mix")
    assert (mix.name, mix.docker_env) == (f"{run.run_id}-mix", "other/image:2.0")
    _, job = desk.client.show_job(mix.job_id)
    assert job.queue == "ovens"


ALBUM = """
    from paddleflow.pipeline import Artifact, ContainerStep, DAG, ExtraFS, FSOptions, MainFS
    from paddleflow.pipeline import FailureOptions, FAIL_CONTINUE, Parameter, Pipeline, PF_RUN_ID

    def tool(name):
        return ExtraFS(name="desk", sub_path="album/" + name, mount_path="/pf-album/" + name, read_only=True)

    def shoot(count):
        return ContainerStep(
            name="shoot",
            parameters={"count": Parameter(default=count, type=int), "title": f"of {PF_RUN_ID}"},
            outputs={"films": Artifact()},
            extra_fs=tool("camera"),
            command="cd /pf-album/camera && sh shoot.sh {{count}}",
        )

    def develop(films, title):
        step = ContainerStep(name="develop", loop_argument=films, outputs={"print": Artifact()})
        step.command = f"echo print {step.loop_argument.item} {title} > {step.outputs['print']}"
        return step

    @Pipeline(name="album", docker_env="any", parallelism=3, failure_options=FailureOptions(FAIL_CONTINUE))
    def album(count=2):
        shot = shoot(count)
        with DAG(name="lab"):
            developed = develop(shot.outputs["films"], shot.parameters["title"])
            dry = ContainerStep(name="dry", command="echo dry > {{line}}", outputs={"line": Artifact()})
            dry.after(developed)
        bind = ContainerStep(
            name="bind",
            inputs={"prints": developed.outputs["print"], "line": dry.outputs["line"]},
            outputs={"book": Artifact()},
            command='cat $(echo "$PF_INPUT_ARTIFACT_PRINTS" | tr , " ") {{line}} > $PF_OUTPUT_ARTIFACT_BOOK',
        )
        bind.condition = f"{shot.parameters['count']} > 1"

    if __name__ == "__main__":
        ppl = album(count=3)
        ppl.fs_options = FSOptions(MainFS(name="desk", sub_path="albums", mount_path="/pf-album/main"))
        ppl.set_post_process(ContainerStep(name="tidy", command="echo tidy"))
        ppl.compile("album.yaml")
        print(ppl.run())
"""


def test_a_program_that_describes_runs_and_prints_a_pipeline(desk: Desk) -> None:
    shoot = 'echo "[$(seq -s , 1 $1)]" > $PF_OUTPUT_ARTIFACT_FILMS; touch no 2> /dev/null && exit 9 || true\n'
    desk.write({"album/camera/shoot.sh": shoot, "album/run.py": ALBUM})
    said = ast.literal_eval(desk.python("album/run.py"))
    assert said[0] is True
    run = desk.ended(said[1])
    assert run.status == "succeeded", run.run_msg
    bind = only(run, "bind")
    book = desk.root / bind.artifacts["output"]["book"]
    assert book.read_text() == "".join(f"print {n} of {run.run_id}\n" for n in (1, 2, 3)) + "dry\n"
    runtime_name = hashlib.md5(b"album.entry_points.bind", usedforsecurity=False).hexdigest()
    assert bind.artifacts["output"]["book"] == f"albums/.pipeline/{run.run_id}/album/bind-0-{runtime_name}/book"
    prints = bind.artifacts["input"]["prints"].split(",")
    expected = [f"album.entry_points.lab.develop{suffix}" for suffix in ("", "-1", "-2")]
    assert [path.split("/")[-2] for path in prints] == [
        f"develop-{seq}-{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}"
        for seq, name in enumerate(expected)
    ]
    assert run.post_process["tidy"].status == "succeeded"
    again = desk.create("-yr", "album.yaml", "-p", "count=1")
    assert (again.status, only(again, "bind").status) == ("succeeded", "skipped")


KITCHEN = """
    name: kitchen
    docker_env: any
    fs_options: {main_fs: {name: desk}}
    entry_points:
      buy: {command: "echo '[3, -4]' > {{basket}}", artifacts: {output: [basket]}}
      lunch:
        deps: buy
        reference: {component: meal}
        artifacts: {input: {food: "{{buy.basket}}"}}
      dinner:
        deps: buy,lunch
        reference: {component: meal}
        parameters: {salt: 5}
        artifacts: {input: {food: "{{buy.basket}}"}}
    components:
      meal:
        loop_argument: "{{food}}"
        parameters: {salt: {type: int, default: 1}}
        artifacts: {input: {food: ""}, output: {plate: "{{cook.pan}}"}}
        entry_points:
          taste: {command: "echo tasting", parameters: {what: "{{PF_PARENT.PF_LOOP_ARGUMENT}}"}}
          cook:
            deps: taste
            reference: {component: pan}
            parameters: {what: "{{PF_PARENT.PF_LOOP_ARGUMENT}}", salt: "{{PF_PARENT.salt}}"}
          garnish:
            deps: cook
            condition: "{{what}} > 0"
            parameters: {what: "{{PF_PARENT.PF_LOOP_ARGUMENT}}"}
            command: echo parsley
      pan:
        command: echo "{{PF_STEP_NAME}} {{what}} with {{salt}}" | tee {{pan}}
        parameters: {what: "", salt: 0}
        artifacts: {output: [pan]}
"""


def test_components_are_called_twice_and_a_part_of_one_call_can_be_disabled(desk: Desk) -> None:
    run = desk.raw(KITCHEN, disabled="lunch.taste,dinner.garnish")
    assert run.status == "succeeded", run.run_msg
    seen = {}
    for meal in ("lunch", "dinner"):
        for course in run.runtime[meal]:
            assert isinstance(course, DagInfo)
            cooked = course.entry_points["cook"][0]
            seen[meal, course.dag_name, desk.log(cooked, run)] = statuses(course.entry_points)
    lunch = {"taste": ["skipped"], "cook": ["succeeded"]}
    dinner = {"taste": ["succeeded"], "cook": ["succeeded"], "garnish": ["skipped"]}
    assert seen == {
        ("lunch", "lunch", "cook 3 with 1\n"): {**lunch, "garnish": ["succeeded"]},
        ("lunch", "lunch", "cook -4 with 1\n"): {**lunch, "garnish": ["skipped"]},
        ("dinner", "dinner", "cook 3 with 5\n"): dinner,
        ("dinner", "dinner", "cook -4 with 5\n"): dinner,
    }


LIBRARY = """
    name: library
    docker_env: any
    cache: {enable: true, max_expired_time: 600, fs_scope: [{name: desk, path: "library/code,library/notes.txt"}]}
    entry_points:
      read:
        cache: {max_expired_time: 300, fs_scope: [{name: desk, path: library/shelf}]}
        command: cat library/notes.txt > {{page}}
        artifacts: {output: [page]}
      talk:
        cache: {enable: false}
        deps: read
        command: cat {{page}}
        artifacts: {input: {page: "{{read.page}}"}}
"""


def test_a_result_is_used_again_until_one_of_the_watched_paths_changes(desk: Desk) -> None:
    desk.write({"library/code/a.py": "1", "library/notes.txt": "first\n", "library/shelf": "s", "library/other": "o"})
    first = desk.raw(LIBRARY, fs_name="desk")
    desk.write({"library/other": "changed"})
    second = desk.raw(LIBRARY, fs_name="desk")
    read = only(second, "read")
    assert (read.status, read.cache_run_id) == ("succeeded", first.run_id)
    assert read.artifacts == only(first, "read").artifacts
    assert not only(second, "talk").cache_run_id
    desk.write({"library/notes.txt": "second\n"})
    third = desk.raw(LIBRARY, fs_name="desk")
    assert not only(third, "read").cache_run_id
    assert desk.log(only(third, "talk"), third) == "second\n"


RELAY = """
    name: relay
    docker_env: any
    parallelism: 1
    failure_options: {strategy: continue}
    entry_points:
      one: {command: echo one}
      two: {command: echo two, deps: one}
      stumble: {command: echo falls; exit  3}
      after: {command: echo never, deps: "stumble , two,"}
    post_process:
      home: {command: echo home}
"""


def test_one_branch_fails_the_other_goes_on_and_the_post_process_comes_last(desk: Desk) -> None:
    run = desk.raw(RELAY)
    assert run.status == "failed"
    assert run.run_msg == "update status to failed because some step or dag run failed: entry_points.stumble"
    assert statuses(run.runtime) == {
        "one": ["succeeded"],
        "two": ["succeeded"],
        "stumble": ["failed"],
        "after": ["cancelled"],
    }
    assert run.post_process["home"].status == "succeeded"
