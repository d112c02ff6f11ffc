"""The client's calls about schedules over real HTTP."""

from __future__ import annotations

import inspect

import pytest

from paddleflow import Client
from paddleflow.sdk.errors import InvalidError
from tests.sdk.recorded_server import RecordedServer, ok
from tests.sdk.run_answers import SCHEDULE, brief_json

SIGNATURES = {
    "create_schedule": "name, pipeline_id, pipeline_version_id, crontab, desc, start_time, end_time, concurrency, "
    "concurrency_policy, expire_interval, catchup, username, time_zone",
    "list_schedule": "user_filter, ppl_filter, ppl_version_filter, schedule_filter, name_filter, status_filter, "
    "marker, max_keys",
    "show_schedule": "schedule_id, run_filter, status_filter, marker, max_keys",
    "stop_schedule": "schedule_id",
    "delete_schedule": "schedule_id",
}


@pytest.mark.parametrize(("method", "arguments"), SIGNATURES.items())
def test_methods_take_the_arguments_scripts_pass(method: str, arguments: str) -> None:
    names = list(inspect.signature(getattr(Client, method)).parameters)
    assert ", ".join(names[1:]) == arguments


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("create_schedule", ("", "ppl-1", "1", "@daily"), "InvalidName"),
        ("create_schedule", ("n", "", "1", "@daily"), "InvalidPipelineID"),
        ("create_schedule", ("n", "ppl-1", "", "@daily"), "InvalidPipelineVersionID"),
        ("create_schedule", ("n", "ppl-1", "1", ""), "InvalidCrontab"),
        ("show_schedule", ("",), "InvalidScheduleID"),
        ("stop_schedule", ("",), "InvalidScheduleID"),
        ("delete_schedule", (" ",), "InvalidScheduleID"),
    ],
)
def test_what_is_empty_is_refused(client: Client, method: str, arguments: tuple[str, ...], code: str) -> None:
    with pytest.raises(InvalidError) as caught:
        getattr(client, method)(*arguments)
    assert caught.value.get_code() == code


@pytest.mark.parametrize("catchup", [False, True])
def test_create_sends_catchup_either_way(server: RecordedServer, client: Client, catchup: bool) -> None:
    server.on("POST", "/schedule", ok({"scheduleID": "schedule-000001"}, 201))
    made = client.create_schedule("nightly", "ppl-000001", "1", "0 3 * * *", concurrency=0, catchup=catchup)
    assert made == (True, "schedule-000001")
    assert server.asked[-1].body == {
        "name": "nightly",
        "pipelineID": "ppl-000001",
        "pipelineVersionID": "1",
        "crontab": "0 3 * * *",
        "concurrency": 0,
        "catchup": catchup,
    }


def test_create_leaves_catchup_to_the_server(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/schedule", ok({"scheduleID": "schedule-000001"}, 201))
    client.create_schedule("nightly", "ppl-000001", "1", "@daily", time_zone="Europe/Berlin")
    assert "catchup" not in server.asked[-1].body
    assert server.asked[-1].body["timeZone"] == "Europe/Berlin"


def test_reading_stopping_and_deleting(server: RecordedServer, client: Client) -> None:
    path = "/schedule/schedule-000001"
    server.on("GET", "/schedule", ok({"scheduleList": [SCHEDULE], "nextMarker": "m"}))
    server.on("GET", path, ok({**SCHEDULE, "runs": {"runList": [brief_json("skipped")], "nextMarker": "n"}}))
    server.on("PUT", path, ok())
    server.on("DELETE", path, ok())
    _, listed = client.list_schedule(ppl_filter="ppl-000001")
    (one,) = listed["scheduleList"]
    assert one.time_zone == "Europe/Berlin"
    assert (one.next_run_time, one.options["concurrencyPolicy"], listed["nextMarker"]) == (
        "2024-01-02 03:00:00",
        "skip",
        "m",
    )
    _, shown = client.show_schedule("schedule-000001", status_filter="skipped")
    assert shown["scheduleInfo"] == one
    assert ([run.status for run in shown["runList"]], shown["nextMarker"]) == (["skipped"], "n")
    assert client.stop_schedule("schedule-000001") == (True, None)
    assert (server.asked[-1].query, server.asked[-1].body) == ({}, None)
    assert client.delete_schedule("schedule-000001") == (True, None)
