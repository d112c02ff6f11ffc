"""The variables containers find, for both contracts and every way to meet."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.paddlejob import Options, parse
from paddleflow.paddlejob.environment import shared_variables
from paddleflow.paddlejob.pods import pod_of, restart_policy
from tests.unit.paddlejob.makers import Cluster, manifest, set_env, template

ADDRESSES = {"ps": ["10.0.0.1", "10.0.0.2"], "worker": ["10.0.0.3", "10.0.0.4"]}
LAUNCH = ["python", "-m", "paddle.distributed.launch", "train.py"]


def test_servers_and_workers_by_address() -> None:
    found = shared_variables(parse(manifest(ps=2, worker=2, withGloo=1)), ADDRESSES)
    assert found == {
        "TRAINER_PORTS_NUM": "20",
        "PADDLE_PORT": "36000",
        "PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:36000,10.0.0.2:36000",
        "PADDLE_TRAINER_ENDPOINTS": "10.0.0.3:36000,10.0.0.4:36000",
        "PADDLE_TRAINERS": "10.0.0.3,10.0.0.4",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": "3",
        "PADDLE_GLOO_HTTP_ENDPOINT": "10.0.0.1:36018",
    }


def test_workers_alone_get_both_contracts() -> None:
    found = shared_variables(parse(manifest(worker=2)), {"worker": ADDRESSES["worker"]})
    assert found["PADDLE_TRAINER_ENDPOINTS"] == "10.0.0.3:36000,10.0.0.4:36000"
    assert found["PADDLE_MASTER"] == "10.0.0.3:36019"
    assert found["PADDLE_NNODES"] == "2"
    assert not [key for key in found if "GLOO" in key or "PSERVER" in key]


@pytest.mark.parametrize(
    ("choice", "has_list", "has_meeting_point"),
    [("both", True, True), ("static", True, False), ("launcher", False, True)],
)
def test_a_job_can_choose_its_contract(choice: str, has_list: bool, has_meeting_point: bool) -> None:
    given = manifest(worker=2)
    given["metadata"]["annotations"] = {"paddle-environment": choice}
    job = parse(given)
    found = shared_variables(job, {"worker": ADDRESSES["worker"]})
    assert ("PADDLE_TRAINER_ENDPOINTS" in found, "PADDLE_MASTER" in found) == (has_list, has_meeting_point)
    env = set_env(pod_of(job, job.roles["worker"], 1, 0, Options()))
    assert ("PADDLE_TRAINER_ENDPOINTS" in env, "PADDLE_MASTER" in env) == (has_list, has_meeting_point)
    assert ("PADDLE_RANK" in env) == has_meeting_point


def test_ipv6_endpoints_have_brackets_and_a_launcher_does_not_get_them() -> None:
    hosts = {"worker": ["fd00::1", "fd00::2"]}
    given = manifest(worker=2)
    assert shared_variables(parse(given), hosts)["PADDLE_TRAINER_ENDPOINTS"] == "[fd00::1]:36000,[fd00::2]:36000"
    given["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = LAUNCH
    found = shared_variables(parse(given), hosts)
    assert "PADDLE_TRAINER_ENDPOINTS" not in found
    assert found["PADDLE_MASTER"] == "[fd00::1]:36019"


def test_a_list_too_long_for_the_kernel_is_left_out() -> None:
    hosts = {"worker": [f"10.{number // 65536}.{number // 256 % 256}.{number % 256}" for number in range(9000)]}
    found = shared_variables(parse(manifest(worker=9000)), hosts)
    assert "PADDLE_TRAINER_ENDPOINTS" not in found
    assert found["PADDLE_TRAINERS_NUM"] == "9000"
    assert max(map(len, found.values())) < 128 * 1024


def test_a_launcher_in_a_job_with_servers_gets_a_meeting_point_at_a_server() -> None:
    given = manifest(ps=2, worker=2)
    given["spec"]["worker"]["template"]["spec"]["containers"][0]["args"] = LAUNCH
    job = parse(given)
    assert shared_variables(job, ADDRESSES)["PADDLE_MASTER"] == "10.0.0.1:36019"
    assert shared_variables(job, ADDRESSES)["PADDLE_NNODES"] == "4"
    assert set_env(pod_of(job, job.roles["ps"], 0, 0, Options()))["PADDLE_SERVER_NUM"] == "1"
    assert set_env(pod_of(job, job.roles["worker"], 0, 0, Options()))["PADDLE_TRAINER_NUM"] == "1"


@pytest.mark.parametrize(("role", "training_role"), [("ps", "PSERVER"), ("worker", "TRAINER"), ("heter", "HETER")])
def test_every_container_knows_who_it_is(role: str, training_role: str) -> None:
    job = parse(manifest(ps=1, worker=1, heter=3))
    env = set_env(pod_of(job, job.roles[role], 2, 4, Options()))
    assert env["PADDLE_TRAINER_ID"] == "2"
    assert env["TRAINING_ROLE"] == env["PADDLE_TRAINING_ROLE"] == training_role
    assert env["POD_IP"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert env["PADDLE_HETER_ENDPOINTS"]["configMapKeyRef"]["optional"] is True
    assert env["PF_STARTED"] == {"configMapKeyRef": {"name": "wd", "key": f"PF_START_{role.upper()}_4"}}


def with_env(*env: dict[str, Any], **spec: Any) -> Any:
    given = manifest(**spec)
    given["spec"]["worker"] = {"replicas": 2, "template": template(env=list(env))}
    return parse(given)


def test_what_the_user_sets_empty_is_not_there() -> None:
    job = with_env({"name": "PADDLE_TRAINER_ENDPOINTS", "value": ""}, {"name": "POD_IP"}, {"name": "MINE", "value": ""})
    env = set_env(pod_of(job, job.roles["worker"], 0, 0, Options()))
    assert "PADDLE_TRAINER_ENDPOINTS" not in env and "POD_IP" not in env
    assert env["MINE"] == ""
    assert "PADDLE_TRAINERS" in env


def test_whose_value_stands() -> None:
    job = with_env(
        {"name": "PADDLE_PORT", "value": "9000"},
        {"name": "PADDLE_TRAINER_ID", "value": "77"},
        {"name": "PADDLE_MASTER", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    )
    env = set_env(pod_of(job, job.roles["worker"], 1, 0, Options()))
    assert env["PADDLE_PORT"] == "9000"
    assert env["PADDLE_TRAINER_ID"] == "1"
    assert env["PADDLE_MASTER"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_ranks_of_workers_and_heter_trainers_are_different() -> None:
    job = parse(manifest(worker=2, heter=2))
    pods = [pod_of(job, role, index, 0, Options()) for role, index, _ in job.places()]
    assert [set_env(pod)["PADDLE_RANK"] for pod in pods] == ["0", "1", "2", "3"]


def test_a_list_that_is_too_long_is_left_out_and_said_once() -> None:
    cluster = Cluster(manifest("x" * 40, worker=3000, intranet="Service"))
    cluster.settle()
    assert cluster.config_map is not None
    data = cluster.config_map["data"]
    assert "PADDLE_TRAINER_ENDPOINTS" not in data and "PADDLE_MASTER" in data
    told = [each.message for each in cluster.events if each.reason == "ListTooLong"]
    assert len(told) == 1 and "PADDLE_TRAINER_ENDPOINTS, PADDLE_TRAINERS:" in told[0]
    assert cluster.condition("Caution")["message"] == told[0]


def test_an_elastic_job_with_etcd() -> None:
    given = manifest(elastic=1)
    given["spec"]["worker"] = {"replicas": 3, "requests": 2, "limits": 5, "template": template()}
    job = parse(given)
    options = Options(etcd_servers=("http://etcd-0:2379", "etcd-1:2379"))
    pod = pod_of(job, job.roles["worker"], 0, 0, options)
    env = set_env(pod)
    assert env["PADDLE_ELASTIC_JOB_ID"] == "team-wd"
    assert env["PADDLE_ELASTIC_NP"] == env["PADDLE_NNODES"] == "2:5"
    assert env["PADDLE_ELASTIC_TIMEOUT"] == "60"
    assert env["PADDLE_ELASTIC_SERVER"] == "etcd-0:2379,etcd-1:2379"
    assert env["PADDLE_MASTER"] == "etcd://etcd-0:2379,etcd-1:2379"
    assert env["PADDLE_TRAINERS_NUM"] == "3"
    assert not [each for each in env.values() if isinstance(each, dict) and "configMapKeyRef" in each]


def test_an_elastic_job_has_its_membership_mounted() -> None:
    job = parse(manifest(worker=3, elastic=1))
    pod = pod_of(job, job.roles["worker"], 2, 0, Options())
    env = set_env(pod)
    assert env["PADDLE_ELASTIC_NP"] == "3"
    assert "PADDLE_ELASTIC_SERVER" not in env
    assert env["PF_TASK_ID"] == "wd-worker-2"
    (mount,) = pod["spec"]["containers"][0]["volumeMounts"]
    assert env["PF_MEMBERSHIP_FILE"] == f"{mount['mountPath']}/membership.json"
    assert pod["spec"]["volumes"] == [{"name": mount["name"], "configMap": {"name": "wd"}}]


@pytest.mark.parametrize(
    ("role", "given", "spec", "expected"),
    [
        ("worker", None, {}, "Never"),
        ("worker", None, {"intranet": "Service"}, "OnFailure"),
        ("ps", None, {"intranet": "Service"}, "Never"),
        ("worker", "Never", {"intranet": "Service"}, "Never"),
        ("worker", "OnFailure", {}, "OnFailure"),
        ("worker", "Never", {"elastic": 1}, "OnFailure"),
    ],
)
def test_restart_policies(role: str, given: str | None, spec: dict[str, Any], expected: str) -> None:
    sizes = {"worker": 2} if "elastic" in spec else {"ps": 1, "worker": 2}
    written = manifest(**sizes, **spec)
    if given:
        written["spec"][role]["template"]["spec"]["restartPolicy"] = given
    job = parse(written)
    assert restart_policy(job, job.roles[role]) == expected
