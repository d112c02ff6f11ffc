"""Schedules on raw HTTP."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.http.served import Answer, Caller
from tests.http.test_pipelines import made

Unique = Callable[[str], str]

SCHEDULE = {
    *("scheduleID", "name", "desc", "pipelineID", "pipelineVersionID", "username", "fsConfig", "crontab", "timeZone"),
    *("options", "startTime", "endTime", "createTime", "updateTime", "nextRunTime", "scheduleMsg", "status"),
}


def create(caller: Caller, name: str, ppl_id: str, /, **more: object) -> Answer:
    body = {"name": name, "pipelineID": ppl_id, "pipelineVersionID": "1", "crontab": "0 0 1 1 *", **more}
    return caller.post("/schedule", body)


def test_a_schedule_is_made_stopped_and_deleted(alice: Caller, unique: Unique) -> None:
    name, ppl_id = unique("yearly"), made(alice, unique("ticked"))
    answer = create(
        alice,
        name,
        ppl_id,
        desc="once a year",
        endTime="2999-01-01 00:00:00",
        concurrency=2,
        concurrencyPolicy="skip",
        expireInterval=60,
        catchup=False,
        timeZone="Europe/Berlin",
    )
    assert answer.status == 201, answer.body
    assert set(answer.json) == {"scheduleID"}
    schedule_id = answer.json["scheduleID"]
    detail = alice.get(f"/schedule/{schedule_id}").json
    assert set(detail) == SCHEDULE | {"runs"}
    assert detail["runs"] == {"maxKeys": 50, "isTruncated": False, "runList": []}
    assert detail["options"] == {
        "catchup": False,
        "expireInterval": 60,
        "concurrency": 2,
        "concurrencyPolicy": "skip",
    }
    assert (detail["name"], detail["desc"], detail["crontab"]) == (name, "once a year", "0 0 1 1 *")
    assert (detail["username"], detail["fsConfig"]) == ("alice", {"username": "alice"})
    assert (detail["status"], detail["timeZone"]) == ("running", "Europe/Berlin")
    assert (detail["startTime"], detail["endTime"]) == ("", "2999-01-01 00:00:00")
    assert detail["nextRunTime"]

    assert alice.delete(f"/pipeline/{ppl_id}").status == 403, "a running schedule uses it"
    early = alice.delete(f"/schedule/{schedule_id}")
    assert (early.status, early.code) == (403, "ActionNotAllowed")
    stopped = alice.put(f"/schedule/{schedule_id}")
    assert (stopped.status, stopped.body) == (200, b"")
    assert alice.get(f"/schedule/{schedule_id}").json["status"] == "terminated"
    assert alice.put(f"/schedule/{schedule_id}").code == "ActionNotAllowed"
    assert alice.delete(f"/schedule/{schedule_id}").status == 200
    gone = alice.get(f"/schedule/{schedule_id}")
    assert (gone.status, gone.code) == (404, "ScheduleNotFound")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "x"},
        {"name": "1st"},
        {"crontab": "every day"},
        {"crontab": ""},
        {"startTime": "soon"},
        {"startTime": "1999-01-01 00:00:00"},
        {"startTime": "2999-01-02 00:00:00", "endTime": "2999-01-01 00:00:00"},
        {"concurrency": -1},
        {"concurrency": 10**30},
        {"expireInterval": -1},
        {"concurrencyPolicy": "hope"},
        {"timeZone": "Atlantis/Capital"},
        {"desc": "x" * 257},
        {"catchup": "yes"},
        {"username": "root"},
    ],
    ids=str,
)
def test_what_cannot_be_scheduled_is_refused(alice: Caller, unique: Unique, change: dict[str, object]) -> None:
    ppl_id = made(alice, unique("refused"))
    answer = create(alice, unique("never"), ppl_id, **change)
    assert answer.status == 400, answer.body
    assert answer.message
    assert alice.get("/schedule", pplFilter=ppl_id).json["scheduleList"] == []


def test_a_pipeline_that_is_not_there_is_not_scheduled(alice: Caller, unique: Unique) -> None:
    assert create(alice, unique("lost"), "ppl-999999").code == "PipelineNotFound"
    ppl_id = made(alice, unique("short"))
    assert create(alice, unique("lost"), ppl_id, pipelineVersionID="9").code == "PipelineNotFound"


def test_schedules_are_private(alice: Caller, bobby: Caller, unique: Unique) -> None:
    ppl_id = made(alice, unique("owned"))
    name = unique("owned")
    schedule_id = create(alice, name, ppl_id).json["scheduleID"]
    assert create(alice, name, ppl_id).code == "DuplicatedName"
    for answer in (
        bobby.get(f"/schedule/{schedule_id}"),
        bobby.put(f"/schedule/{schedule_id}"),
        bobby.delete(f"/schedule/{schedule_id}"),
        bobby.get("/schedule", userFilter="alice"),
        create(bobby, unique("theirs"), ppl_id),
    ):
        assert (answer.status, answer.code) == (403, "AccessDenied")


def test_lists_are_filtered_and_paged(alice: Caller, root: Caller, unique: Unique) -> None:
    ppl_id = made(alice, unique("many"))
    names = [unique("nightly") for _ in range(3)]
    ids = [create(alice, name, ppl_id).json["scheduleID"] for name in names]
    assert alice.put(f"/schedule/{ids[1]}").status == 200

    def found(caller: Caller, **query: object) -> list[str]:
        answer = caller.get("/schedule", **query)
        assert answer.status == 200, answer.body
        rows = answer.json["scheduleList"]
        assert all(set(row) == SCHEDULE for row in rows)
        return [row["scheduleID"] for row in rows]

    assert found(alice, pplFilter=ppl_id) == ids
    assert found(root, userFilter="alice", pplFilter=ppl_id, pplVersionFilter="1,2") == ids
    assert found(alice, pplFilter=ppl_id, pplVersionFilter="2") == []
    assert found(alice, pplFilter=ppl_id, statusFilter="terminated,failed") == [ids[1]]
    assert found(alice, nameFilter=f"{names[0]},{names[2]}") == [ids[0], ids[2]]
    assert found(alice, scheduleFilter=ids[2]) == [ids[2]]
    assert alice.get("/schedule", statusFilter="asleep").code == "InvalidURI"
    page = alice.get("/schedule", pplFilter=ppl_id, maxKeys=2).json
    assert found(alice, pplFilter=ppl_id, maxKeys=2, marker=page["nextMarker"]) == ids[2:]
    shown = alice.get(f"/schedule/{ids[0]}", statusFilter="asleep")
    assert shown.code == "InvalidURI"
