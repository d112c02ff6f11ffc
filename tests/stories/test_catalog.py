"""Stories of stored pipelines and their versions."""

from __future__ import annotations

import hashlib

import pytest

from paddleflow.domain.commands import (
    CreateFilesystem,
    CreatePipeline,
    CreateSchedule,
    DeletePipeline,
    DeletePipelineVersion,
    StopSchedule,
    UpdatePipeline,
)
from paddleflow.domain.errors import Conflict, Denied, Duplicate, InUse, Invalid, NotFound
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import PipelineId, ScheduleId, VersionId
from paddleflow.domain.queries import PageRequest, PipelineFilter
from paddleflow.domain.users import Actor
from paddleflow.engine.pipelines import PipelineRequest, RunRequest
from paddleflow.testing.builders import a_node
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform

FIRST = PipelineId("ppl-000001")


def text(name: str = "nightly", command: str = "echo one") -> str:
    return f"""
name: {name}
entry_points:
  main:
    command: {command}
    env: {{PF_JOB_FLAVOUR: flavour1, PF_JOB_QUEUE_NAME: default-queue}}
"""


@pytest.fixture
def platform() -> InMemoryPlatform:
    return InMemoryPlatform([a_node()])


@pytest.fixture
def alice(platform: InMemoryPlatform) -> Actor:
    return platform.a_user("alice", "default-queue")


def create(platform: InMemoryPlatform, actor: Actor = ROOT_ACTOR, **request: str) -> str:
    answer = platform.desk.create_pipeline(actor, PipelineRequest(**{"text": text(), **request}))  # type: ignore[arg-type]
    return str(answer["pipelineID"])


def update(platform: InMemoryPlatform, actor: Actor = ROOT_ACTOR, **request: str | None) -> str:
    wanted = PipelineRequest(**{"text": text(command="echo more"), **request})  # type: ignore[arg-type]
    return str(platform.desk.update_pipeline(actor, FIRST, wanted)["pipelineVersionID"])


def versions(platform: InMemoryPlatform) -> list[str]:
    with platform.store.read() as view:
        return [row.id for row in view.pipelines.page_versions(FIRST, frozenset(), PageRequest()).rows]


def schedule(platform: InMemoryPlatform, version: str, actor: Actor = ROOT_ACTOR) -> ScheduleId:
    command = CreateSchedule(name="daily", pipeline_id=FIRST, version_id=VersionId(version), crontab="@daily")
    return ScheduleId(str(platform.ask(command, actor)["scheduleID"]))


def test_a_pipeline_is_kept_as_it_was_written(platform: InMemoryPlatform) -> None:
    answer = platform.desk.create_pipeline(ROOT_ACTOR, PipelineRequest(text=text(), description="every night"))
    assert answer == {"pipelineID": "ppl-000001", "pipelineVersionID": "1", "name": "nightly"}
    with platform.store.read() as view:
        pipeline = view.pipelines.find(FIRST)
        version = view.pipelines.find_version(FIRST, VersionId("1"))
    assert pipeline and version
    assert (pipeline.name, pipeline.description, pipeline.owner) == ("nightly", "every night", "root")
    assert version.text == text()
    assert version.digest == hashlib.sha256(text().encode()).hexdigest()
    assert (version.fs_id, version.fs_name, version.yaml_path, version.owner) == (None, "", "", "root")


def test_versions_are_counted_up_and_never_given_twice(platform: InMemoryPlatform) -> None:
    create(platform)
    assert [update(platform), update(platform)] == ["2", "3"]
    platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("3")))
    assert update(platform) == "4"
    assert versions(platform) == ["1", "2", "4"]
    with platform.store.read() as view:
        latest = view.pipelines.latest_version(FIRST)
    assert latest is not None and latest.id == "4"


def test_a_new_version_may_bring_a_new_description(platform: InMemoryPlatform) -> None:
    create(platform, description="first")
    update(platform)
    with platform.store.read() as view:
        assert view.pipelines.find(FIRST).description == "first"  # type: ignore[union-attr]
    update(platform, description="second")
    with platform.store.read() as view:
        assert view.pipelines.find(FIRST).description == "second"  # type: ignore[union-attr]


def test_a_name_belongs_to_one_pipeline_of_an_owner(platform: InMemoryPlatform, alice: Actor) -> None:
    create(platform)
    with pytest.raises(Duplicate) as caught:
        create(platform)
    assert caught.value.code == "DuplicatedName"
    assert create(platform, alice) == "ppl-000002", "another owner may use it, and a refusal costs no number"
    platform.ask(DeletePipeline(id=FIRST))
    assert create(platform) == "ppl-000003", "and so may anybody when it is gone"


def test_the_name_in_a_new_version_must_be_the_same(platform: InMemoryPlatform) -> None:
    create(platform)
    with pytest.raises(Invalid, match=r"name\[nightly\].*name\[weekly\].*must be the same"):
        update(platform, text=text("weekly"))
    assert versions(platform) == ["1"]


def test_a_description_has_a_limit(platform: InMemoryPlatform) -> None:
    create(platform, description="d" * 256)
    with pytest.raises(Invalid, match=r"Field\[desc\].*257 characters, the limit is 256"):
        update(platform, description="d" * 257)
    with pytest.raises(Invalid, match=r"Field\[desc\]"):
        create(platform, text=text("other"), description="d" * 257)


def test_what_is_somebody_elses_stays_so(platform: InMemoryPlatform, alice: Actor) -> None:
    create(platform)
    for attempt in (
        lambda: update(platform, alice),
        lambda: platform.ask(DeletePipeline(id=FIRST), alice),
        lambda: platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("1")), alice),
        lambda: create(platform, alice, owner="root"),
        lambda: schedule(platform, "1", alice),
    ):
        with pytest.raises(Denied) as caught:
            attempt()
        assert caught.value.code == "AccessDenied"


def test_root_may_act_for_another(platform: InMemoryPlatform, alice: Actor) -> None:
    create(platform, owner="alice")
    assert update(platform, owner="alice") == "2"
    with platform.store.read() as view:
        owned = view.pipelines.page(PipelineFilter(owners=frozenset({alice.name})), PageRequest()).rows
        version = view.pipelines.find_version(FIRST, VersionId("2"))
    assert [row.id for row in owned] == [FIRST]
    assert version is not None and version.owner == "alice"
    platform.ask(DeletePipeline(id=FIRST), alice)
    with pytest.raises(NotFound) as caught:
        platform.ask(CreatePipeline(owner="nobody", name="nightly", text=text()))
    assert caught.value.code == "UserNotExist"


def test_what_is_not_there_is_not_found(platform: InMemoryPlatform) -> None:
    for attempt in (
        DeletePipeline(id=FIRST),
        DeletePipelineVersion(id=FIRST, version_id=VersionId("1")),
        UpdatePipeline(id=FIRST, name="nightly", text=text()),
    ):
        with pytest.raises(NotFound) as caught:
            platform.ask(attempt)
        assert caught.value.code == "PipelineNotFound"
    create(platform)
    with pytest.raises(NotFound) as caught:
        platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("2")))
    assert caught.value.code == "PipelineNotFound"


def test_the_last_version_goes_only_with_its_pipeline(platform: InMemoryPlatform) -> None:
    create(platform)
    with pytest.raises(Conflict, match="only one left") as caught:
        platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("1")))
    assert caught.value.code == "ActionNotAllowed"
    update(platform)
    platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("1")))
    assert versions(platform) == ["2"]
    platform.ask(DeletePipeline(id=FIRST))
    assert versions(platform) == []


def test_a_running_schedule_holds_its_version(platform: InMemoryPlatform) -> None:
    create(platform)
    update(platform)
    daily = schedule(platform, "1")
    for attempt in (DeletePipeline(id=FIRST), DeletePipelineVersion(id=FIRST, version_id=VersionId("1"))):
        with pytest.raises(InUse, match=r"schedule\[schedule-000001\]") as caught:
            platform.ask(attempt)
        assert caught.value.code == "ActionNotAllowed"
    platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("2")))
    platform.ask(StopSchedule(id=daily))
    platform.ask(DeletePipeline(id=FIRST))


def test_runs_outlive_their_pipeline(platform: InMemoryPlatform) -> None:
    create(platform)
    answer = platform.desk.create_run(ROOT_ACTOR, RunRequest(pipeline_id=FIRST))
    platform.ask(DeletePipeline(id=FIRST))
    platform.settle()
    view = platform.run(answer["runID"])  # type: ignore[arg-type]
    assert (view.run.source, view.run.text) == ("ppl-000001-1", text())


def test_a_file_of_a_filesystem_may_be_the_source(platform: InMemoryPlatform, alice: Actor) -> None:
    with pytest.raises(Invalid, match=r"user\[root\] has no filesystem \[data\]"):
        platform.ask(CreatePipeline(name="nightly", text=text(), fs_name="data", yaml_path="./run.yaml"))
    platform.ask(CreateFilesystem(name="data", url="local:///data"), alice)
    command = CreatePipeline(name="nightly", text=text(), fs_name="data", yaml_path="./run.yaml")
    platform.ask(command, alice)
    with platform.store.read() as view:
        version = view.pipelines.find_version(FIRST, VersionId("1"))
    assert version is not None
    assert (version.fs_id, version.fs_name, version.yaml_path) == ("fs-alice-data", "data", "./run.yaml")


def test_what_happens_is_told(platform: InMemoryPlatform) -> None:
    create(platform)
    update(platform)
    platform.ask(DeletePipelineVersion(id=FIRST, version_id=VersionId("1")))
    platform.ask(DeletePipeline(id=FIRST))
    with platform.store.read() as view:
        told = [(event.kind, event.owner) for event in view.events.of_subject(FIRST, 100)]
    assert told == [
        (EventKind.PIPELINE_CREATED, "root"),
        (EventKind.PIPELINE_UPDATED, "root"),
        (EventKind.PIPELINE_UPDATED, "root"),
        (EventKind.PIPELINE_DELETED, "root"),
    ]
