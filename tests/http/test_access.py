"""Who may call what: a table walked over every route the app has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from paddleflow.adapters.identity import KeyedIdentity
from paddleflow.domain.ids import UserName
from paddleflow.ports.identity import TokenClaims
from paddleflow.server.app import EndpointRoute
from paddleflow.server.routing import Access
from tests.http.pipelines import TWO_STEPS, encoded, start
from tests.http.served import KEY, PREFIX, Caller, Served

BODIES: dict[str, object] = {
    "create_user": {"username": "someone", "password": "secret1"},
    "set_password": {"password": "secret9"},
    "create_grant": {"userName": "alice", "resourceType": "queue", "resourceID": "default-queue"},
    "create_queue": {"name": "q", "namespace": "default"},
}


def routes_of(served: Served) -> Iterator[tuple[str, str, str, str]]:
    for route in served.app.routes:
        assert isinstance(route, EndpointRoute), f"{route} was not declared as an endpoint"
        access = route.declared.access
        assert access in tuple(Access), f"{route.path} does not say who may call it"
        for method in sorted(route.methods or ()):
            yield route.name, method, route.path, str(access)


def target_of(path: str, **names: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "thing"), path)


def test_every_route_declares_its_access(served: Served) -> None:
    declared = list(routes_of(served))
    assert len(declared) > 40
    public = {path for _, _, path, access in declared if access == "public"}
    assert public == {f"{PREFIX}/login", "/healthz", "/readyz", "/metrics", "/openapi.json"}


def test_no_route_answers_without_a_valid_token(served: Served, alice: Caller) -> None:
    now = datetime.now(UTC)
    gone = served.a_user("departed")
    assert served.root.delete("/user/departed").status == 200
    foreign = KeyedIdentity(b"f" * 32, token_life=timedelta(hours=1))
    claims = TokenClaims(user=UserName("alice"), epoch=0)
    head, body, tag = alice.token.split(".")
    cases = {
        "none": ("", "AuthWithoutToken"),
        "forged": (f"{head}.{body}.{tag[:-4]}AAAA", "AuthInvalidToken"),
        "nonsense": ("x", "AuthInvalidToken"),
        "expired": (served.identity.sign(claims, now - timedelta(days=2)), "AuthInvalidToken"),
        "foreign": (foreign.sign(claims, now), "AuthInvalidToken"),
        "deleted user": (gone.token, "AuthInvalidToken"),
    }
    for name, method, path, access in routes_of(served):
        if access == "public":
            continue
        for case, (token, code) in cases.items():
            caller = Caller(served.port, token=token)
            mounted = {"x-pf-mount-token": token} if token else {}
            answer = caller.call(method, target_of(path), BODIES.get(name, {}), prefix="", headers=mounted)
            assert (answer.status, answer.code) == (400, code), f"{method} {path} with token: {case}"


def test_root_only_routes_refuse_others(served: Served, alice: Caller) -> None:
    for name, method, path, access in routes_of(served):
        if access == "root":
            answer = alice.call(method, target_of(path), BODIES.get(name, {}), prefix="")
            assert answer.status == 403, f"{method} {path}: {answer.body!r}"
            assert answer.code in ("OnlyRootAllowed", "AccessDenied")


@pytest.fixture
def secrets_of_alice(served: Served, alice: Caller) -> Iterator[dict[str, str]]:
    job = alice.submit(name="alicejob", env={"SECRET": "hidden-words"}, command="echo hidden-words")
    served.runtime.write_log(served.task_of(job), b"hidden-words\n")  # type: ignore[arg-type]
    assert alice.post("/fs", {"name": "private", "url": "local:///mnt/hidden-words"}).status == 201
    mount = alice.post("/fsMount", {"fsName": "private", "mountpoint": "/hidden-words"}).json["mountID"]
    snapshot = alice.post("/fs/private/snapshot", {"name": "hidden-words"}).json["snapshotID"]
    assert alice.post("/flavour", {"name": "alices", "cpu": "1", "mem": "1Gi"}).status == 200
    text = TWO_STEPS.replace('command: "true"', "command: echo hidden-words")
    run = start(alice, text)
    pipeline = alice.post("/pipeline", {"yamlRaw": encoded(text)}).json["pipelineID"]
    rule = {"name": "private", "pipelineID": pipeline, "pipelineVersionID": "1", "crontab": "0 0 1 1 *"}
    schedule = alice.post("/schedule", rule).json["scheduleID"]
    yield {
        "jobID": job, "fsName": "private", "flavourName": "alices", "username": "alice", "queueName": "closed-one",
        "runID": run, "pipelineID": pipeline, "pipelineVersionID": "1", "scheduleID": schedule,
        "mountID": mount, "snapshotID": snapshot,
    }  # fmt: skip
    for stopped in (f"/schedule/{schedule}", f"/run/{run}?action=stop"):
        assert alice.put(stopped).status == 200, "nobody else has stopped it"
    assert alice.delete(f"/schedule/{schedule}").status == 200
    assert alice.delete(f"/pipeline/{pipeline}").status == 200
    served.finish(job)
    assert alice.delete(f"/fsMount/{mount}").status == 200
    assert alice.delete("/fs/private").status == 200
    alice.delete("/flavour/alices")


def test_owner_routes_refuse_other_users(served: Served, bobby: Caller, secrets_of_alice: dict[str, str]) -> None:
    queue = {"name": "closed-one", "namespace": "default", "maxResources": {"cpu": "1", "mem": "1Gi"}}
    assert served.root.post("/queue", queue).status == 200
    window = "startTime=2026-01-01+00:00:00&endTime=2027-01-01+00:00:00"
    queries = {
        "/log/job": f"jobID={secrets_of_alice['jobID']}",
        "/statistics/cardTime/{queueName}": window,
        "/fs/{fsName}": "username=alice",
        "/fs/{fsName}/snapshot": "username=alice",
        "/fs/{fsName}/snapshot/{snapshotID}": "username=alice",
        "/fsMount": "username=alice&fsName=private",
        "/fsCache/{fsName}": "username=alice",
        "/fsCache/stats/{fsName}": "username=alice",
        "/link/{fsName}": "username=alice&fsPath=/linked",
        "/run/{runID}": "action=stop",
        "/run/{runID}/why-cached": "step=first",
        "/artifact": f"username=alice&fsname=private&runID={secrets_of_alice['runID']}&path=x",
        "/artifact/lineage": "username=alice&fsname=private&path=x",
        "/artifact/files": f"runID={secrets_of_alice['runID']}&path=x",
        "/artifact/download": f"runID={secrets_of_alice['runID']}&path=x",
    }
    bodies: dict[str, object] = {
        "set_password": {"password": "secret9"},
        "update_filesystem": {"name": "private", "url": "local:///mnt/x"},
        "update_pipeline": {"yamlRaw": encoded(TWO_STEPS)},
        "query_card_time": {
            "queueNames": ["closed-one"], "startTime": "2026-01-01 00:00:00", "endTime": "2027-01-01 00:00:00",
        },
    }  # fmt: skip
    walked = 0
    for name, method, path, access in routes_of(served):
        if access != "owner":
            continue
        walked += 1
        query = queries.get(path.removeprefix(PREFIX), "")
        for action in ("stop", "modify") if name == "update_job" else ("",):
            full = "&".join(part for part in (query, f"action={action}" if action else "") if part)
            target = target_of(path, **secrets_of_alice) + (f"?{full}" if full else "")
            answer = bobby.call(method, target, bodies.get(name, {}), prefix="")
            assert answer.status in (403, 404), f"{method} {target}: {answer.status} {answer.body!r}"
            assert b"hidden-words" not in answer.body
    assert walked >= 30
    job = served.root.get(f"/job/{secrets_of_alice['jobID']}").json
    assert job["status"] == "running"
    served.login("alice", "secret1")


def test_lists_show_only_what_is_ones_own(served: Served, bobby: Caller, secrets_of_alice: dict[str, str]) -> None:
    assert secrets_of_alice["jobID"] not in bobby.get("/job", maxKeys=1000).body.decode()
    assert bobby.get("/fs", username="alice").json["fsList"] == []
    assert [row["name"] for row in bobby.get("/queue").json["queueList"]] == ["default-queue"]
    events = bobby.get("/event", after=0, follow="false").json["eventList"]
    assert {event["owner"] for event in events} <= {"bobby"}
    everything = served.root.get("/job", maxKeys=1000).body.decode()
    assert secrets_of_alice["jobID"] in everything


def test_nobody_speaks_for_another(bobby: Caller, root: Caller) -> None:
    for key in ("userName", "username", "USERNAME"):
        answer = bobby.post("/fs", {"name": "x", "url": "local:///mnt/x", key: "alice"})
        assert (answer.status, answer.code) == (400, "AuthIllegalUser")
    assert bobby.get("/fs", userName="alice").code == "AuthIllegalUser"
    assert bobby.get("/fs", userName="bobby").status == 200
    assert root.get("/fs", userName="alice").status == 200
    other = bobby.get("/fs/x", username="alice")
    assert (other.status, other.code) == (403, "AccessDenied")


def test_a_user_made_again_is_another_user(served: Served) -> None:
    old = served.a_user("phoenix")
    assert served.root.delete("/user/phoenix").status == 200
    new = served.a_user("phoenix")
    assert new.get("/version").status == 200
    assert old.get("/version").code == "AuthInvalidToken"


def test_no_secret_reaches_a_log_or_an_answer(
    served: Served, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    password = "unspeakable1"
    answers = [
        served.root.post("/user", {"username": "discreet", "password": password}),
        served.root.post("/user", {"username": "discreet", "password": password}),
        served.root.post("/user", {"username": "other", "password": [password]}),
        served.root.post("/user", {"username": 5, "password": password}),
        served.root.call("POST", "/login", raw=f'{{"username":"root","password":"{password}"'.encode()),
        served.root.post("/login", {"username": "root", "password": password}),
    ]
    told = b"".join(answer.body for answer in answers).decode() + caplog.text + "".join(capfd.readouterr())
    assert password not in told
    assert served.root.token not in told
    assert KEY.decode() not in told
