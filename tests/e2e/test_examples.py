"""The example pipelines, all of them, on one real server: each as YAML by the command line and as Python by running its
file, as a reader would. What they leave behind is read, not only how they end."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow import Client
from paddleflow.documents import load
from paddleflow.sdk.run_views import DagInfo, JobInfo, RunInfo, View
from tests.e2e.example_plans import plan_of, python_document, python_plan, settled
from tests.e2e.reader import Reader, serving
from tests.e2e.servers import RUN_DEADLINE_S, Server

pytestmark = pytest.mark.timeout(600)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pipelines"
NAMES = sorted(folder.parent.name for folder in EXAMPLES.glob("*/run.yaml"))


class Place:
    """A server, and a copy of the examples as its filesystem."""

    def __init__(self, place: Path, server: Server, client: Client) -> None:
        self.root = place / "examples"
        self.client = client
        self._reader = Reader(place / "home", server)
        shutil.copytree(EXAMPLES, self.root, ignore=shutil.ignore_patterns(".pipeline", "runs", "published"))
        self.command("fs", "create", "examples", f"local://{self.root}")
        self.command("fs", "create", "reference", f"local://{self.root}/multiple-fs/reference")

    def python(self, *argv: str, folder: str = ".", expect: int = 0) -> str:
        """What a program of this environment prints, started in a folder of the examples."""
        done = self._reader.start([sys.executable, *argv], self.root / folder)
        assert done.returncode == expect, done.stdout
        return done.stdout

    def command(self, *words: str, folder: str = ".", expect: int = 0) -> str:
        return self.python("-m", "paddleflow", *words, folder=folder, expect=expect)

    def run_yaml(self, name: str, *words: str, expect: int = 0) -> RunInfo:
        printed = self.command("run", "create", "-yr", "run.yaml", "--watch", *words, folder=name, expect=expect)
        (run_id,) = re.findall(r"create success with run id\[(.+)\]", printed)
        return self.ended(run_id)

    def run_python(self, name: str) -> RunInfo:
        return self.ended(self.python("run.py", folder=name).strip())

    def ended(self, run_id: str) -> RunInfo:
        _, run = self.client.wait_run(run_id, timeout=RUN_DEADLINE_S)
        return run

    def read(self, view: View, name: str) -> str:
        path: str = view.artifacts["output"][name]
        return (self.root / path).read_text()

    def made(self, run: RunInfo, step: str, name: str) -> str:
        """The content of an output of a step at the top."""
        (view,) = run.runtime[step]
        return self.read(view, name)

    def left(self, name: str, run: RunInfo, file: str) -> str:
        """A file the steps of a run have written beside their artifacts."""
        return (self.root / name / "runs" / run.run_id / file).read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("examples")
    with serving(folder / "state") as server, Client("127.0.0.1", "root", "paddleflow", server.port) as client:
        client.login("root", "paddleflow")
        yield Place(folder, server, client)


@pytest.fixture(params=["yaml", "python"])
def face(request: pytest.FixtureRequest) -> str:
    """Every example has two: run.yaml and run.py."""
    return str(request.param)


def run_example(place: Place, name: str, face: str, status: str = "succeeded") -> RunInfo:
    expect = 0 if status == "succeeded" else 1
    run = place.run_yaml(name, expect=expect) if face == "yaml" else place.run_python(name)
    assert run.status == status, run.run_msg
    return run


def statuses(run: RunInfo) -> dict[str, list[str]]:
    return {name: [view.status for view in views] for name, views in run.runtime.items()}


def reused(run: RunInfo) -> dict[str, str]:
    """Which run each step at the top took its result from; empty: it was computed."""
    return {name: view.cache_run_id for name, (view,) in run.runtime.items() if isinstance(view, JobInfo)}


# What needs no server


def test_there_are_all_we_promise() -> None:
    promised = {"basic", "artifacts", "cache", "loop", "condition", "sub-dag", "components", "multiple-fs", "schedule"}
    promised |= {"failure-and-post-process", "retry-and-timeout", "functions", "training"}
    assert set(NAMES) == promised
    listed = (EXAMPLES / "README.md").read_text()
    assert [name for name in NAMES if f"[{name}]({name}/run." not in listed] == []


@pytest.mark.parametrize("name", NAMES)
def test_both_files_say_how_to_run_them(name: str) -> None:
    for file in ("run.yaml", "run.py"):
        top = "\n".join((EXAMPLES / name / file).read_text().splitlines()[:25])
        assert "python run.py" in top
        assert "paddleflow run create -yr run.yaml" in top or "paddleflow pipeline create -yr run.yaml" in top


@pytest.mark.parametrize("name", NAMES)
def test_the_twins_have_the_same_plan(name: str) -> None:
    folder = EXAMPLES / name
    written = plan_of((folder / "run.yaml").read_text())
    assert settled(written) == settled(python_plan(folder))


def test_twins_that_differ_are_told_apart() -> None:
    text = (EXAMPLES / "sub-dag" / "run.yaml").read_text()
    as_written = settled(plan_of(text))
    for here, there in (
        ('words: "{{choose.chosen}}"', 'words: "{{split.words}}"'),
        ("least: 4", "least: 5"),
        ("{{PF_PARENT.least}}", "3"),
        ("[rain, sun]", "[sun, rain]"),
        ("words.py count {{words}}", "words.py count {{counts}}"),
    ):
        assert here in text
        assert settled(plan_of(text.replace(here, there))) != as_written


def test_the_compiled_functions_are_up_to_date() -> None:

    folder = EXAMPLES / "functions"
    written = load((folder / "run.yaml").read_text()).value
    assert written == python_document(folder), "make run.yaml anew: its first lines say how"


# On the server


def test_basic(place: Place, face: str) -> None:
    run = run_example(place, "basic", face)
    assert place.left("basic", run, "report") == "10 numbers make 55 points\n"


def test_basic_with_another_value(place: Place) -> None:
    run = place.run_yaml("basic", "-p", "count=100")
    assert place.left("basic", run, "report") == "100 numbers make 5050 points\n"


def test_artifacts(place: Place, face: str, tmp_path: Path) -> None:
    run = run_example(place, "artifacts", face)
    table = run.runtime["summary"][0].artifacts["output"]["table"]
    place.command("run", "download", run.run_id, table, "-o", str(tmp_path / "table"))
    assert (tmp_path / "table").read_text() == (
        "9 values\nmonday: 3 values, at most 36\ntuesday: 3 values, at most 49\nwednesday: 3 values, at most 64\n"
    )
    days = place.root / run.runtime["split"][0].artifacts["output"]["days"]
    assert sorted(day.name for day in days.iterdir()) == ["monday", "tuesday", "wednesday"]


def test_cache(place: Place) -> None:
    first = place.run_yaml("cache")
    assert reused(first) == {"words": "", "count": ""}
    assert place.made(first, "count", "number") == "8\n"
    again = place.run_yaml("cache")
    assert reused(again) == {"words": first.run_id, "count": first.run_id}
    twin = place.run_python("cache")
    assert reused(twin) == {"words": first.run_id, "count": first.run_id}
    assert place.made(twin, "count", "number") == "8\n"
    assert first.run_id in place.command("run", "why-cached", twin.run_id, "words")

    with (place.root / "cache" / "data" / "words.txt").open("a") as file:
        file.write("question\n")
    changed = place.run_python("cache")
    assert reused(changed) == {"words": "", "count": first.run_id}
    told = place.command("run", "why-cached", changed.run_id, "words")
    assert "fs_scope" in told
    assert first.run_id in told


def test_loop(place: Place, face: str) -> None:
    run = run_example(place, "loop", face)
    assert place.made(run, "gather", "all").splitlines() == [
        *("letter a", "letter b", "letter c"),
        *("square 4", "square 9"),
        *("hello ann", "hello bob"),
    ]
    assert [len(run.runtime[name]) for name in ("letters", "squares", "greet")] == [3, 2, 2]


def test_loop_over_other_items(place: Place) -> None:
    run = place.run_yaml("loop", "-p", "squares.sides=[10, 20]")
    assert [line for line in place.made(run, "gather", "all").splitlines() if "square" in line] == [
        *("square 100", "square 400")
    ]


def test_condition(place: Place, face: str) -> None:
    run = run_example(place, "condition", face)
    assert place.made(run, "after", "happened").split() == ["celebrated", "gold", "silver"]
    assert place.left("condition", run, "celebrated") == "60 reached\n"
    found = statuses(run)
    assert found["repeat"] == ["skipped"]
    assert found["prizes"] == ["skipped", "succeeded", "succeeded"]


def test_condition_the_other_way(place: Place) -> None:
    run = place.run_yaml("condition", "-p", "limit=95")
    assert place.made(run, "after", "happened").split() == ["gold", "silver", "to-be-repeated"]
    assert statuses(run)["celebrate"] == ["skipped"]


def test_sub_dag(place: Place, face: str) -> None:
    run = run_example(place, "sub-dag", face)
    assert place.made(run, "total", "total").splitlines() == ["falls 2", "hills 2", "over 1", "rain 2", "rises 1"]
    rounds = run.runtime["each-text"]
    assert [view.loop_item for view in rounds] == ["rain", "sun"]
    (sun,) = (view for view in rounds if view.loop_item == "sun")
    assert isinstance(sun, DagInfo)
    (count,) = sun.entry_points["count"]
    assert place.read(count, "counts") == "hills 1\nover 1\nrises 1\n"


def test_components(place: Place, face: str) -> None:
    run = run_example(place, "components", face)
    assert place.made(run, "winner", "name") == "ann\n"
    means = []
    for (player,) in (run.runtime["ann"], run.runtime["bob"]):
        assert isinstance(player, DagInfo)
        (mean,) = player.entry_points["mean"]
        means.append(place.read(mean, "mean"))
    assert means == ["2.4\n", "1.6\n"]


def test_failure_and_post_process(place: Place, face: str) -> None:
    name = "failure-and-post-process"
    run = run_example(place, name, face, status="failed")
    assert statuses(run) == {
        "prepare": ["succeeded"],
        "broken": ["failed"],
        "report": ["cancelled"],
        "independent": ["succeeded"],
    }
    assert place.made(run, "independent", "text") == "done all the same\n"
    assert run.post_process["tidy-up"].status == "succeeded"
    assert place.left(name, run, "tidy") == f"tidied up after {run.run_id}\n"

    repaired = place.root / name / "repaired"
    repaired.touch()
    try:
        _, new = place.client.retry_run(run.run_id)
        again = place.ended(new)
    finally:
        repaired.unlink()
    assert again.status == "succeeded", again.run_msg
    # What was prepared the first time is what the result is made of: it was not done again.
    assert place.made(again, "report", "text") == f"the result is {place.made(run, 'prepare', 'data')}"
    assert place.left(name, again, "tidy") == f"tidied up after {again.run_id}\n"


def test_multiple_filesystems(place: Place, face: str) -> None:
    run = run_example(place, "multiple-fs", face)
    published = place.root / "multiple-fs" / "published" / f"{run.run_id}.txt"
    assert published.read_text() == "eins zwei drei\ndrei eins\n"
    assert [file.name for file in (place.root / "multiple-fs" / "reference").iterdir()] == ["words.txt"]


def test_schedule_by_hand(place: Place) -> None:
    made = place.command("pipeline", "create", "-yr", "run.yaml", folder="schedule")
    pipeline_id, version = (part.split("]")[0] for part in made.split("[")[2:4])
    made = place.command("schedule", "create", "by_hand", pipeline_id, version, "@every 1s", "-c", "1", "-cp", "skip")
    follow_schedule(place, made.split("[")[-1].split("]")[0])


def test_schedule_from_python(place: Place) -> None:
    follow_schedule(place, place.python("run.py", folder="schedule").strip())


def follow_schedule(place: Place, schedule_id: str) -> None:
    """Two runs that the schedule starts are followed to their end; then it is stopped."""
    journal = place.root / "schedule" / "runs" / "journal"
    seen: set[str] = set()
    try:
        for event in place.client.events(kinds=("RunFinished",)):
            _, run = place.client.show_run(event.subject)
            if run.schedule_id != schedule_id or run.status == "skipped":
                continue
            assert run.status == "succeeded", run.run_msg
            line = f"run {run.run_id} of root\n"
            assert place.made(run, "write", "entry") == line
            assert journal.read_text().count(line) == 1
            seen.add(run.run_id)
            if len(seen) == 2:
                break
    finally:
        place.command("schedule", "stop", schedule_id)
    # Asked for by name: a slow machine lets many a tick go by, and each has left a row.
    _, found = place.client.show_schedule(schedule_id, run_filter=",".join(seen))
    assert found["scheduleInfo"].status == "terminated"
    assert seen == {run.run_id for run in found["runList"]}


def test_retry_and_timeout(place: Place, face: str) -> None:
    run = run_example(place, "retry-and-timeout", face, status="failed")
    assert statuses(run) == {"flaky": ["succeeded"], "hangs": ["failed"]}
    assert place.made(run, "flaky", "attempts") == "attempt\n" * 3
    (hung,) = run.runtime["hangs"]
    assert isinstance(hung, JobInfo)
    assert "1 s" in hung.job_message


def test_functions(place: Place, face: str) -> None:
    run = run_example(place, "functions", face)
    assert json.loads(place.made(run, "measure", "result")) == [4, 8]
    assert place.made(run, "report", "page") == "Squares\nabove 4: 10, mean 12.2\nabove 8: 8, mean 13.25\n"


def test_training(place: Place, face: str) -> None:
    run = run_example(place, "training", face)
    table = [line.split() for line in place.made(run, "evaluate", "table").splitlines()]
    assert [row[:2] for row in table] == [["model", "0"], ["model", "1"], ["model", "2"]]
    best = max(float(row[2]) for row in table)
    assert best >= 0.95
    assert float(place.made(run, "evaluate", "accuracy")) == best
    published = place.root / "training" / "published"
    card = json.loads((published / "latest.json").read_text())
    assert card == {"run": run.run_id, "by": "root", "accuracy": best, "model": f"{run.run_id}.npz"}
    kept = place.root / run.runtime["evaluate"][0].artifacts["output"]["best"]
    assert (published / card["model"]).read_bytes() == kept.read_bytes()


def test_a_model_that_is_not_good_enough_is_not_published(place: Place) -> None:
    run = place.run_yaml("training", "-p", "least_accuracy=0.999", "-p", "train.epochs=20")
    assert statuses(run)["publish"] == ["skipped"]
    assert not (place.root / "training" / "published" / f"{run.run_id}.npz").exists()
