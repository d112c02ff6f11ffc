"""Answers that go on: events in order and resumed, logs followed to the end, and a server that can still stop."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from paddleflow.server.routes import events
from tests.http.served import LOG_CAP, Caller, Served
from tests.waiting import wait_for


class Reader:
    """The body of a chunked answer, as it arrives."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rb")
        self._sock = sock
        self.status = self._file.readline()
        while self._file.readline().strip():
            pass

    def chunk(self) -> bytes:
        size = int(self._file.readline() or b"0", 16)
        content = self._file.read(size)
        self._file.readline()
        return content

    def rest(self) -> bytes:
        whole = b""
        while chunk := self.chunk():
            whole += chunk
        return whole

    def close(self) -> None:
        self._file.close()
        self._sock.close()


class Events:
    def __init__(self, caller: Caller, headers: dict[str, str] | None = None, **query: object) -> None:
        self._reader = Reader(caller.stream("/event", headers, **query))
        assert b" 200 " in self._reader.status
        self._waiting: list[dict[str, Any]] = []

    def next(self) -> dict[str, Any]:
        while not self._waiting:
            text = self._reader.chunk().decode()
            assert text, "the stream ended"
            for block in text.split("\n\n"):
                fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
                if fields:
                    event = json.loads(fields["data"])
                    assert (int(fields["id"]), fields["event"]) == (event["seq"], event["kind"])
                    self._waiting.append(event)
        return self._waiting.pop(0)

    def close(self) -> None:
        self._reader.close()


def story(events: Events, job: str, last: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    while not told or told[-1]["kind"] != last:
        event = events.next()
        if event["subject"] == job:
            told.append(event)
    return told


def test_events_come_in_order_and_resume(served: Served, alice: Caller, bobby: Caller) -> None:
    live = Events(alice)
    job = alice.submit()
    bobby.submit()
    served.finish(job)
    told = story(live, job, "JobFinished")
    live.close()
    assert [event["kind"] for event in told] == ["JobSubmitted", "JobAdmitted", "JobStarted", "JobFinished"]
    assert set(told[0]) == {"seq", "kind", "subject", "owner", "at", "data"}
    assert {event["owner"] for event in told} == {"alice"}
    numbers = [event["seq"] for event in told]
    assert numbers == sorted(numbers)
    for resumed in (Events(alice, after=numbers[1]), Events(alice, {"Last-Event-ID": str(numbers[1])}, after=0)):
        assert [event["seq"] for event in story(resumed, job, "JobFinished")] == numbers[2:]
        resumed.close()
    only = Events(alice, after=0, subject=job, kinds="JobStarted,JobFinished")
    assert [only.next()["kind"] for _ in range(2)] == ["JobStarted", "JobFinished"]
    only.close()


def test_events_as_a_list(served: Served, alice: Caller) -> None:
    before = alice.get("/event", follow="false").json["lastSeq"]
    job = alice.submit()
    served.finish(job)
    answer = alice.get("/event", follow="false", after=before, subject=job).json
    assert [event["kind"] for event in answer["eventList"]] == [
        "JobSubmitted", "JobAdmitted", "JobStarted", "JobFinished",
    ]  # fmt: skip
    assert answer["lastSeq"] >= answer["eventList"][-1]["seq"]
    assert answer["isTruncated"] is False
    assert alice.get("/event", follow="false", after=answer["lastSeq"], subject=job).json["eventList"] == []
    for bad in ({"after": "x"}, {"after": -1}, {"kinds": "Nonsense"}, {"follow": "maybe"}):
        refused = alice.get("/event", **bad)
        assert (refused.status, refused.code) == (400, "InvalidURI")


def test_a_log_is_followed_to_its_end(served: Served, alice: Caller) -> None:
    job = alice.submit()
    task = served.task_of(job)
    served.runtime.write_log(task, b"first\n")  # type: ignore[arg-type]
    reader = Reader(alice.stream(f"/job/{job}/log", follow="true"))
    assert reader.chunk() == b"first\n"
    served.runtime.write_log(task, b"second\n")  # type: ignore[arg-type]
    assert reader.chunk() == b"second\n"
    served.runtime.write_log(task, b"last words\n")  # type: ignore[arg-type]
    served.finish(job)
    assert reader.rest() == b"last words\n"
    reader.close()
    whole = alice.get(f"/job/{job}/log")
    assert whole.headers["content-type"].startswith("text/plain")
    assert whole.body == b"first\nsecond\nlast words\n"
    assert alice.get(f"/job/{job}/log", start=6).body == b"second\nlast words\n"
    assert alice.get(f"/job/{job}/log", start=-6, follow="true").body == b"words\n"
    assert alice.get(f"/job/{job}/log", task=task, start=0).body == whole.body
    missing = alice.get(f"/job/{job}/log", task="other")
    assert (missing.status, missing.code) == (404, "RecordNotFound")


def test_a_log_larger_than_one_read(served: Served, alice: Caller) -> None:
    job = alice.submit()
    content = b"".join(b"%08d\n" % number for number in range(100_000))
    served.runtime.write_log(served.task_of(job), content)  # type: ignore[arg-type]
    assert alice.get(f"/job/{job}/log").body == content
    served.finish(job)
    assert alice.get(f"/job/{job}/log", follow="true").body == content


def test_a_log_over_its_cap_says_what_is_left_out(served: Served, alice: Caller) -> None:
    job = alice.submit()
    task = served.task_of(job)
    content = b"".join(b"%08d\n" % number for number in range(200_000))
    served.runtime.write_log(task, content)  # type: ignore[arg-type]
    begin, end = LOG_CAP // 2, len(content) - LOG_CAP // 2

    def notice(lost: int) -> bytes:
        return b"\n[paddleflow: %d bytes are left out here, the log is over its cap or the disk was full]\n" % lost

    answer = alice.get(f"/job/{job}/log")
    assert answer.body == content[:begin] + notice(end - begin) + content[end:]
    assert answer.headers["x-log-size"] == str(len(content))
    assert answer.headers["x-log-gaps"] == f"{begin}-{end}:{len(notice(end - begin))}"
    within = alice.get(f"/job/{job}/log", start=end - 7)
    assert within.body == notice(7) + content[end:]
    assert within.headers["x-log-gaps"] == f"{end - 7}-{end}:{len(notice(7))}"
    after = alice.get(f"/job/{job}/log", start=-100)
    assert (after.body, after.headers.get("x-log-gaps")) == (content[-100:], None)

    first = alice.get("/log/job", jobID=job, lineLimit=1_000_000).json["taskList"][0]["logInfo"]
    assert first == {"logContent": answer.body.decode(), "hasNextPage": False, "truncated": True}
    last = alice.get("/log/job", jobID=job, readFromTail="true", lineLimit=2).json["taskList"][0]["logInfo"]
    assert last == {"logContent": "00199998\n00199999\n", "hasNextPage": True, "truncated": True}

    reader = Reader(alice.stream(f"/job/{job}/log", follow="true", start=begin - 9))
    assert reader.chunk() == content[begin - 9 : begin]
    assert reader.chunk() == notice(end - begin)
    served.runtime.write_log(task, b"last words\n")  # type: ignore[arg-type]
    served.finish(job)
    assert reader.rest().endswith(b"00199999\nlast words\n")
    reader.close()


def test_a_log_may_be_followed_before_the_job_starts(served: Served, root: Caller) -> None:
    queue = {"name": "narrow", "namespace": "default", "maxResources": {"cpu": "1", "mem": "1Gi"}}
    assert root.post("/queue", queue).status == 200
    policy = {"schedulingPolicy": {"queue": "narrow"}}
    first, second = root.submit(**policy), root.submit(**policy)
    reader = Reader(root.stream(f"/job/{second}/log", follow="true"))
    served.finish(first)
    served.runtime.write_log(served.task_of(second), b"hello\n")  # type: ignore[arg-type]
    served.finish(second)
    assert reader.rest() == b"hello\n"
    reader.close()


def test_many_followers_take_no_threads(served: Served, alice: Caller) -> None:
    """More followers than worker threads: were each to hold one, the next call would never be answered."""
    job = alice.submit()
    followers = [Events(alice) for _ in range(60)]
    logs = [Reader(alice.stream(f"/job/{job}/log", follow="true")) for _ in range(20)]
    other = alice.submit()
    for follower in followers:
        assert story(follower, other, "JobSubmitted")
        follower.close()
    served.finish(job)
    for log in logs:
        assert log.rest() == b""
        log.close()


def test_a_follower_does_not_hold_up_the_end(fresh: Served) -> None:
    job = fresh.root.submit()
    fresh.task_of(job)
    events = Reader(fresh.root.stream("/event"))
    log = Reader(fresh.root.stream(f"/job/{job}/log", follow="true"))
    assert events.chunk()
    assert fresh.stop_http(), "the server did not stop while streams were open"
    events.rest()
    assert log.rest() == b""
    events.close()
    log.close()


def test_a_follower_that_leaves_is_forgotten(served: Served, alice: Caller) -> None:
    feed = served.platform.feed
    before = set(feed._listeners)  # some of other tests, which may still be on their way out
    events = Events(alice)
    ours = wait_for(lambda: set(feed._listeners) - before, "the follower is there")
    events.close()
    wait_for(lambda: not ours & set(feed._listeners), "the follower is gone")


def test_a_quiet_stream_beats_until_its_token_is_revoked(
    served: Served, root: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    caller = served.a_user("fleeting")
    reader = Reader(caller.stream("/event"))
    assert reader.chunk() == b": following\n\n"
    assert reader.chunk() == b": heartbeat\n\n"
    assert root.delete("/user/fleeting").status == 200
    assert set(reader.rest().split(b"\n\n")) <= {b"", b": heartbeat"}
    reader.close()
