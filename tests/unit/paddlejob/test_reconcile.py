"""Stories of one job each, on a cluster of the smallest kind."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from paddleflow.paddlejob import Options
from paddleflow.paddlejob.actions import CreatePod, CreateService, DeletePod, PatchPod, PutConfigMap, Record
from tests.unit.paddlejob.makers import Cluster, manifest, template


def running(**given: Any) -> Cluster:
    cluster = Cluster(manifest(**given))
    cluster.start()
    assert cluster.phase == "Running"
    return cluster


def kinds(actions: Any) -> list[type]:
    return [type(each) for each in actions if not isinstance(each, Record)]


def test_all_pods_in_one_pass() -> None:
    cluster = Cluster(manifest(ps=2, worker=3))
    plan = cluster.look()
    assert kinds(plan.actions) == [CreatePod] * 5
    assert list(cluster.pods) == ["wd-ps-0", "wd-ps-1", "wd-worker-0", "wd-worker-1", "wd-worker-2"]
    assert cluster.phase == "Pending"
    assert cluster.status["mode"] == "PS"
    assert cluster.status["observedGeneration"] == 1
    assert not cluster.settle(), "it waits for addresses"


def test_containers_wait_for_all_addresses_and_workers_for_servers() -> None:
    cluster = Cluster(manifest(ps=1, worker=2))
    cluster.settle()
    cluster.schedule("wd-ps-0", "wd-worker-0")
    cluster.settle()
    assert cluster.config_map is None
    cluster.kubelet()
    cluster.settle()
    assert cluster.config_map is not None
    data = cluster.config_map["data"]
    assert "PF_START_PS_0" in data and "PF_START_WORKER_0" not in data
    assert cluster.phase == "Starting"
    cluster.kubelet()
    assert cluster.pods["wd-ps-0"]["status"]["phase"] == "Running"
    assert cluster.pods["wd-worker-0"]["status"]["phase"] == "Pending"
    done = cluster.settle()
    assert PutConfigMap in kinds(done)
    assert sorted(each.name for each in done if isinstance(each, PatchPod)) == ["wd-worker-0", "wd-worker-1"]
    cluster.kubelet()
    cluster.settle()
    assert cluster.phase == "Running"
    assert cluster.status["worker"]["running"] == 2
    assert cluster.condition("Running")["status"] == "True"


def test_by_name_nobody_waits_for_addresses() -> None:
    cluster = Cluster(manifest(worker=2, intranet="Service"))
    plan = cluster.look()
    assert kinds(plan.actions) == [CreateService, CreateService, PutConfigMap, CreatePod, CreatePod]
    assert cluster.config_map is not None
    assert cluster.config_map["data"]["PADDLE_TRAINER_ENDPOINTS"] == "wd-worker-0:36000,wd-worker-1:36000"
    cluster.kubelet()
    assert not [each for each in cluster.settle() if isinstance(each, PatchPod)], "nobody was held"
    assert cluster.phase == "Running"


def test_nothing_is_written_when_nothing_changes() -> None:
    cluster = running(ps=1, worker=2)
    writes = cluster.status_writes
    cluster.now += 1000
    plan = cluster.plan()
    assert not plan.actions and plan.status == cluster.status and plan.requeue_after_s is None
    cluster.settle()
    assert cluster.status_writes == writes


def test_a_job_with_servers_is_completed_with_its_workers_and_servers_are_stopped() -> None:
    cluster = running(ps=1, worker=2, cleanPodPolicy="Never")
    cluster.end("wd-worker-0")
    cluster.settle()
    assert cluster.phase == "Running"
    cluster.end("wd-worker-1")
    cluster.settle()
    assert cluster.phase == "Completed"
    assert list(cluster.pods) == ["wd-worker-0", "wd-worker-1"]
    assert cluster.status["worker"]["succeeded"] == 2
    assert "running" not in cluster.status.get("ps", {})
    assert cluster.status["completionTime"]
    assert cluster.condition("Succeeded")["status"] == "True"


def test_servers_that_end_first_or_badly_do_not_matter_when_workers_succeeded() -> None:
    cluster = running(ps=1, worker=1)
    cluster.end("wd-ps-0", 137)
    cluster.end("wd-worker-0")
    cluster.settle()
    assert cluster.phase == "Completed"


@pytest.mark.parametrize(
    ("policy", "code", "left"),
    [
        ("", 0, 0),
        ("", 1, 1),
        ("OnCompletion", 0, 0),
        ("OnCompletion", 1, 1),
        ("OnFailure", 0, 2),
        ("OnFailure", 1, 0),
        ("Always", 0, 0),
        ("Always", 1, 0),
        ("Never", 0, 2),
        ("Never", 1, 1),
    ],
)
def test_cleaning(policy: str, code: int, left: int) -> None:
    """In the failing jobs the other worker still runs: it is stopped in any case."""
    cluster = running(worker=2, cleanPodPolicy=policy, backoffLimit=0, intranet="Service")
    cluster.end("wd-worker-0", code)
    if not code:
        cluster.end("wd-worker-1")
    cluster.settle()
    assert cluster.phase == ("Failed" if code else "Completed")
    assert len(cluster.pods) == left
    assert bool(cluster.services) == bool(left), "Services go with the cleaning"
    counted = cluster.status["worker"]
    assert counted.get("failed", 0) + counted.get("succeeded", 0) == (1 if code else 2), "the counts outlive the pods"


def test_a_finished_job_does_not_make_pods_again() -> None:
    cluster = running(worker=2, cleanPodPolicy="Never")
    for name in list(cluster.pods):
        cluster.end(name)
    cluster.settle()
    del cluster.pods["wd-worker-0"]
    assert not cluster.settle()
    assert cluster.phase == "Completed"
    assert cluster.status["worker"]["succeeded"] == 2


def test_a_failure_restarts_the_gang_after_a_while() -> None:
    cluster = running(worker=2)
    first = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    cluster.end("wd-worker-1", 3)
    plan = cluster.look()
    assert kinds(plan.actions) == [], "first it is recorded"
    assert (cluster.phase, cluster.status["attempt"], cluster.status["retries"]) == ("Restarting", 1, 1)
    (ending,) = cluster.status["exits"]
    assert (ending["pod"], ending["exitCode"], ending["attempt"]) == ("wd-worker-1", 3, 0)
    assert "worker-1 failed with exit code 3" in cluster.condition("Restarting")["message"]
    cluster.settle()
    assert not cluster.pods
    wait = cluster.plan().requeue_after_s
    assert wait is not None and 0 < wait <= 11
    cluster.now += wait
    cluster.start()
    assert cluster.phase == "Running"
    assert first.isdisjoint(pod["metadata"]["uid"] for pod in cluster.pods.values())
    assert {pod["metadata"]["annotations"]["paddle-attempt"] for pod in cluster.pods.values()} == {"1"}
    assert cluster.condition("Restarting")["status"] == "False"


def test_a_restarted_job_never_starts_with_old_addresses() -> None:
    cluster = running(worker=2)
    old = deepcopy(cluster.config_map)
    cluster.end("wd-worker-1", 3)
    cluster.settle()
    cluster.now += 60
    cluster.settle()
    assert cluster.config_map == old, "the new addresses are not known yet"
    cluster.schedule()
    cluster.kubelet()
    assert {pod["status"]["phase"] for pod in cluster.pods.values()} == {"Pending"}, "the old list is of no use to them"
    cluster.start()
    addresses = {pod["status"]["podIP"] for pod in cluster.pods.values()}
    assert cluster.config_map is not None
    assert set(cluster.config_map["data"]["PADDLE_TRAINERS"].split(",")) == addresses


def test_the_budget_of_retries() -> None:
    cluster = running(worker=1, backoffLimit=2)
    waits = []
    for _ in range(2):
        cluster.end("wd-worker-0", 1)
        cluster.settle()
        waits.append(cluster.plan().requeue_after_s or 0)
        cluster.now += waits[-1]
        cluster.start()
        assert cluster.phase == "Running"
    assert waits[1] > waits[0]
    cluster.end("wd-worker-0", 1)
    cluster.settle()
    assert cluster.phase == "Failed"
    failed = cluster.condition("Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert "exit code 1" in failed["message"] and "2 times" in failed["message"]
    assert len(cluster.status["exits"]) == 3


def test_evictions_are_free() -> None:
    cluster = running(worker=2, backoffLimit=0)
    for _ in range(5):
        cluster.evict("wd-worker-0")
        cluster.settle()
        assert cluster.phase != "Failed"
        cluster.now += 100
        cluster.start()
        assert cluster.phase == "Running"
    assert cluster.status["evictions"] == 5
    assert "retries" not in cluster.status


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_a_pod_that_somebody_deletes_takes_the_gang_with_it(intranet: str) -> None:
    cluster = running(worker=2, intranet=intranet)
    other = cluster.pods["wd-worker-1"]["metadata"]["uid"]
    del cluster.pods["wd-worker-0"]
    cluster.settle()
    cluster.start()
    assert cluster.phase == "Running"
    assert cluster.pods["wd-worker-1"]["metadata"]["uid"] != other
    assert cluster.status["evictions"] == 1


def test_a_pod_that_is_being_deleted_is_lost_not_failed() -> None:
    cluster = running(worker=2, backoffLimit=0)
    cluster.pods["wd-worker-0"]["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    cluster.end("wd-worker-0", 143)
    cluster.settle()
    assert cluster.phase == "Restarting"
    assert list(cluster.pods) == ["wd-worker-0"], "its name is not free yet"
    del cluster.pods["wd-worker-0"]
    cluster.start()
    assert cluster.phase == "Running"


def test_with_servers_by_name_a_worker_comes_back_alone() -> None:
    cluster = running(ps=1, worker=2, intranet="Service")
    others = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items() if name != "wd-worker-0"}
    cluster.end("wd-worker-0", 1)
    cluster.settle()
    assert "wd-worker-0" not in cluster.pods
    assert cluster.status["retries"] == 1
    cluster.now += 11
    cluster.start()
    assert cluster.phase == "Running"
    assert {name: cluster.pods[name]["metadata"]["uid"] for name in others} == others


@pytest.mark.parametrize("how", ["fail", "evict", "delete"])
def test_a_lost_server_takes_the_workers_with_it(how: str) -> None:
    cluster = running(ps=2, worker=1, intranet="Service")
    before = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    if how == "fail":
        cluster.end("wd-ps-1", 1)
    elif how == "evict":
        cluster.evict("wd-ps-1")
    else:
        del cluster.pods["wd-ps-1"]
    cluster.settle()
    assert cluster.status["attempt"] == 1
    assert cluster.status.get("retries", 0) == (how == "fail")
    cluster.now += 11
    cluster.start()
    assert cluster.phase == "Running"
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in cluster.pods.values())


def test_a_new_number_of_workers_beside_servers_starts_all_again() -> None:
    cluster = running(ps=1, worker=2, intranet="Service")
    cluster.job["spec"]["worker"]["replicas"] = 3
    cluster.settle()
    cluster.start()
    assert cluster.phase == "Running"
    assert {pod["metadata"]["annotations"]["paddle-attempt"] for pod in cluster.pods.values()} == {"1"}


def test_failures_that_follow_from_one_are_counted_once() -> None:
    cluster = running(ps=1, worker=3, intranet="Service", backoffLimit=1)
    for name in ("wd-worker-0", "wd-worker-1", "wd-worker-2"):
        cluster.end(name, 1)
        cluster.settle()
        cluster.now += 1
    assert cluster.status["retries"] == 1
    assert len(cluster.status["exits"]) == 3
    cluster.now += 11
    cluster.start()
    assert cluster.phase == "Running"


def test_a_container_that_crashes_again_and_again_ends_the_job() -> None:
    cluster = running(worker=1, intranet="Service")
    status = {"name": "paddle", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    last = {"terminated": {"exitCode": 1}}
    cluster.pods["wd-worker-0"]["status"]["containerStatuses"] = [{**status, "restartCount": 3, "lastState": last}]
    cluster.settle()
    assert cluster.phase == "Running"
    assert "CrashLoopBackOff" in cluster.condition("Running")["message"]
    cluster.pods["wd-worker-0"]["status"]["containerStatuses"][0]["restartCount"] = 4
    cluster.settle()
    assert cluster.phase == "Failed"


@pytest.mark.parametrize(
    ("shape", "code", "restarts", "phase"),
    [
        ({}, 1, 4, "Failed"),
        ({}, 1, 3, "Running"),
        ({}, 101, 9, "Running"),
        ({}, 0, 9, "Running"),
        ({"ps": 1}, 137, 4, "Failed"),
        ({"elastic": 1}, 1, 9, "Running"),
    ],
)
def test_restarts_in_place_are_retries_however_far_apart(shape: Any, code: int, restarts: int, phase: str) -> None:
    """The container runs again each time; an elastic launcher's restarts are not all failures."""
    cluster = running(worker=1, intranet="Service", **shape)
    status = {"name": "paddle", "ready": True, "state": {"running": {}}, "restartCount": restarts}
    status["lastState"] = {"terminated": {"exitCode": code}}
    cluster.pods["wd-worker-0"]["status"]["containerStatuses"] = [status]
    cluster.settle()
    assert cluster.phase == phase


def test_restarts_that_the_operator_before_allowed_do_not_end_a_job() -> None:
    cluster = running(worker=1, intranet="Service")
    del cluster.pods["wd-worker-0"]["metadata"]["annotations"]["paddle-attempt"]
    status = {"name": "paddle", "ready": True, "state": {"running": {}}, "restartCount": 40}
    status["lastState"] = {"terminated": {"exitCode": 1}}
    cluster.pods["wd-worker-0"]["status"]["containerStatuses"] = [status]
    cluster.settle()
    assert cluster.phase == "Running"


def test_a_worker_that_succeeds_in_the_end_was_not_restarted_too_often() -> None:
    cluster = running(worker=2, intranet="Service")
    cluster.end("wd-worker-0")
    cluster.pods["wd-worker-0"]["status"]["containerStatuses"][0] |= {
        "restartCount": 9,
        "lastState": {"terminated": {"exitCode": 1}},
    }
    cluster.settle()
    assert cluster.phase == "Running"


@pytest.mark.parametrize("code", [101, 102])
@pytest.mark.parametrize("shape", [{}, {"ps": 1, "intranet": "Service"}])
def test_who_asks_to_be_started_again_is_and_it_costs_no_retry(code: int, shape: dict[str, Any]) -> None:
    cluster = running(worker=2, backoffLimit=0, **shape)
    cluster.end("wd-worker-0", code)
    cluster.settle()
    assert cluster.phase == "Restarting"
    assert f"asked to be started again, with exit code {code}" in cluster.condition("Restarting")["message"]
    cluster.now += 100
    cluster.start()
    assert cluster.phase == "Running" and "retries" not in cluster.status


def test_a_launcher_that_asks_to_be_started_again_is_not_crashing() -> None:
    cluster = running(worker=2, elastic=1)
    status = {"name": "paddle", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    last = {"terminated": {"exitCode": 101}}
    cluster.pods["wd-worker-0"]["status"]["containerStatuses"] = [{**status, "restartCount": 9, "lastState": last}]
    cluster.settle()
    assert cluster.phase != "Failed"


def test_deadline() -> None:
    cluster = running(worker=1, activeDeadlineSeconds=100)
    wait = cluster.plan().requeue_after_s
    assert wait is not None and 99 <= wait <= 100
    cluster.now += 101
    cluster.settle()
    assert cluster.phase == "Failed"
    assert cluster.condition("Failed")["reason"] == "DeadlineExceeded"
    assert not cluster.pods


def test_time_to_live() -> None:
    cluster = running(worker=1, ttlSecondsAfterFinished=60)
    cluster.end("wd-worker-0")
    cluster.settle()
    wait = cluster.plan().requeue_after_s
    assert wait is not None and 59 <= wait <= 61
    assert not cluster.is_gone
    cluster.now += wait + 1
    cluster.look()
    assert cluster.is_gone


def test_suspend_and_resume() -> None:
    cluster = running(worker=2, activeDeadlineSeconds=1000)
    cluster.job["spec"]["suspend"] = True
    cluster.settle()
    assert cluster.phase == "Suspended" and not cluster.pods
    assert cluster.condition("Suspended")["status"] == "True"
    assert "startTime" not in cluster.status
    assert not cluster.settle()
    cluster.now += 5000
    cluster.job["spec"]["suspend"] = False
    cluster.start()
    assert cluster.phase == "Running"
    assert cluster.condition("Suspended")["status"] == "False"
    assert "retries" not in cluster.status


def test_what_the_user_asked_for_is_no_warning() -> None:
    cluster = running(worker=2)
    cluster.job["spec"]["suspend"] = True
    cluster.settle()
    assert [each.type for each in cluster.events if each.reason == "Suspended"] == ["Normal"]


def test_a_condition_that_says_nothing_of_its_time_is_given_one() -> None:
    cluster = running(worker=1)
    for condition in cluster.status["conditions"]:
        del condition["lastTransitionTime"]
    cluster.settle()
    assert all(each["lastTransitionTime"] for each in cluster.status["conditions"])


def test_a_gang_whose_amounts_are_spelt_otherwise_is_the_same() -> None:
    cluster = Cluster(manifest(worker=2), options=Options(scheduling="volcano"))
    cluster.start()
    assert cluster.pod_group is not None
    cluster.pod_group["spec"]["minResources"] = {"cpu": "2000m", "memory": 2 * 2**30}
    assert not cluster.settle()
    for other in ({"cpu": "2001m", "memory": "2Gi"}, {"cpu": "2"}, {"cpu": "x", "memory": "2Gi"}, None):
        cluster.pod_group["spec"]["minResources"] = other
        assert cluster.settle(), other


def test_a_job_that_is_made_suspended_waits() -> None:
    cluster = Cluster(manifest(worker=2, suspend=True))
    cluster.settle()
    assert cluster.phase == "Suspended" and not cluster.pods
    cluster.job["spec"]["suspend"] = False
    cluster.start()
    assert cluster.phase == "Running"


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_a_new_size_starts_a_fixed_job_again_with_a_true_environment(replicas: int, intranet: str) -> None:
    cluster = running(worker=2, intranet=intranet)
    cluster.job["spec"]["worker"]["replicas"] = replicas
    cluster.settle()
    cluster.start()
    assert cluster.phase == "Running"
    assert len(cluster.pods) == replicas
    assert cluster.config_map is not None
    assert cluster.config_map["data"]["PADDLE_TRAINERS_NUM"] == str(replicas)
    assert len(cluster.services) == (replicas if intranet == "Service" else 0)
    assert "evictions" not in cluster.status and "retries" not in cluster.status
    assert "Resized" in {each.reason for each in cluster.events}


def test_an_address_that_changes_under_a_pod() -> None:
    cluster = running(worker=2)
    cluster.pods["wd-worker-0"]["status"]["podIP"] = "10.9.9.9"
    cluster.settle()
    assert cluster.condition("Restarting")["reason"] == "AddressChanged"


def test_volcano_opens_the_gate() -> None:
    cluster = Cluster(manifest(worker=2), options=Options(scheduling="volcano"))
    cluster.settle()
    assert cluster.pod_group is not None and not cluster.pods
    cluster.pod_group["status"]["phase"] = "Inqueue"
    cluster.settle()
    assert len(cluster.pods) == 2
    cluster.start()
    for name in list(cluster.pods):
        cluster.end(name)
    cluster.settle()
    assert cluster.phase == "Completed" and cluster.pod_group is None


@pytest.mark.parametrize("shape", [{"elastic": 1}, {"ps": 1, "intranet": "Service"}])
def test_a_worker_is_replaced_though_volcano_calls_the_gang_completed(shape: dict[str, Any]) -> None:
    cluster = Cluster(manifest(worker=2, **shape), options=Options(scheduling="volcano"))
    cluster.start()
    cluster.end("wd-worker-0")
    cluster.evict("wd-worker-1")
    assert cluster.pod_group is not None
    cluster.pod_group["status"]["phase"] = "Completed"
    cluster.settle()
    cluster.kubelet()
    cluster.settle()
    assert cluster.pods["wd-worker-1"]["status"]["phase"] == "Running"
    cluster.end("wd-worker-1")
    cluster.settle()
    assert cluster.phase == "Completed"


def test_host_ports_are_written_down_before_anything_is_made() -> None:
    cluster = Cluster(manifest(worker=2, intranet="Host"))
    cluster.look()
    assert not cluster.pods
    port = int(cluster.job["metadata"]["annotations"]["host-port"])
    cluster.start()
    assert cluster.phase == "Running"
    assert cluster.config_map is not None
    assert cluster.config_map["data"]["PADDLE_PORT"] == str(port)
    assert cluster.config_map["data"]["PADDLE_TRAINER_ENDPOINTS"].split(":")[-1] == str(port)


def test_cautions_are_told_once() -> None:
    cluster = Cluster(manifest(worker=1, cleanPodPolicy="OnFailed"))
    cluster.start()
    assert [each.reason for each in cluster.events if each.type == "Warning"] == ["ValueRenamed"]
    assert cluster.condition("Caution")["status"] == "True"


def test_a_deleted_job_lets_go_of_the_old_finalizer() -> None:
    cluster = running(worker=1)
    cluster.job["metadata"] |= {"finalizers": ["finalizers.paddlepaddle.org"], "deletionTimestamp": "now"}
    cluster.settle()
    assert cluster.job["metadata"]["finalizers"] == []
    assert cluster.phase == "Terminating"
    assert len(cluster.pods) == 1, "the garbage collector's"


def test_an_old_record_is_not_acted_on() -> None:
    cluster = running(worker=2)
    old = deepcopy(cluster.status)
    cluster.end("wd-worker-0", 1)
    cluster.settle()
    cluster.now += 11
    cluster.settle()
    cluster.job["status"] = old
    plan = cluster.plan()
    assert not plan.actions and plan.status == old and plan.requeue_after_s is not None


def test_pods_of_the_operator_before_are_taken_over() -> None:
    cluster = running(worker=2)
    for pod in cluster.pods.values():
        del pod["metadata"]["annotations"]["paddle-attempt"]
    assert cluster.config_map is not None
    cluster.config_map["metadata"]["annotations"] = {}
    cluster.job["status"] = {"phase": "Running", "mode": "Collective", "startTime": "2023-11-14T22:13:20Z"}
    uids = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    done = cluster.settle()
    assert not [each for each in done if isinstance(each, CreatePod | DeletePod)]
    assert {pod["metadata"]["uid"] for pod in cluster.pods.values()} == uids
    assert cluster.phase == "Running"
    assert cluster.status["startTime"] == "2023-11-14T22:13:20Z"


def test_why_it_waits_is_said() -> None:
    cluster = Cluster(manifest(worker=2))
    cluster.settle()
    words = "0/3 nodes are available: 3 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    cluster.pods["wd-worker-1"]["status"]["conditions"] = [condition]
    cluster.settle()
    assert cluster.condition("Running") | {"lastTransitionTime": ""} == {
        "type": "Running",
        "status": "False",
        "reason": "Pending",
        "message": f"worker-1: {words}",
        "lastTransitionTime": "",
    }


def test_no_replicas_at_all_is_no_success() -> None:
    given = manifest()
    given["spec"]["worker"] = {"replicas": 0, "template": template()}
    cluster = Cluster(given)
    cluster.settle()
    assert cluster.phase == "Pending"
    assert cluster.condition("Running")["message"] == "no role has a replica"


def membership(cluster: Cluster) -> Any:
    assert cluster.config_map is not None
    return json.loads(cluster.config_map["data"]["membership.json"])


def elastic(replicas: int = 3, **spec: Any) -> Cluster:
    given = manifest(elastic=1, **spec)
    given["spec"]["worker"] = {"replicas": replicas, "requests": 2, "limits": 6, "template": template()}
    cluster = Cluster(given, options=Options(etcd_servers=("etcd:2379",)))
    cluster.start()
    assert cluster.phase == "Running"
    return cluster


def test_an_elastic_job_publishes_its_membership_and_np() -> None:
    cluster = elastic()
    found = membership(cluster)
    assert [each["id"] for each in found["tasks"]] == ["wd-worker-0", "wd-worker-1", "wd-worker-2"]
    assert found["generation"] == 1, "all joined together"
    assert (found["least"], found["most"]) == (2, 6)
    assert found["tasks"][0]["ports"] == [36000, 36001, 36019, 36018]
    assert cluster.np == "3"
    assert cluster.status["elastic"] == "DONE"
    assert {pod["metadata"]["annotations"]["paddle-members"] for pod in cluster.pods.values()} == {"1"}


@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_scaling_keeps_those_who_stay(replicas: int) -> None:
    cluster = elastic()
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.job["spec"]["worker"]["replicas"] = replicas
    cluster.start()
    after = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    stay = [f"wd-worker-{index}" for index in range(min(replicas, 3))]
    assert [after[name] for name in stay] == [before[name] for name in stay]
    assert [each["id"] for each in membership(cluster)["tasks"]] == [f"wd-worker-{index}" for index in range(replicas)]
    assert membership(cluster)["generation"] == 2
    assert cluster.np == str(replicas)
    assert (cluster.phase, cluster.status["mode"], cluster.status["elastic"]) == ("Running", "Collective", "DONE")


def test_an_elastic_job_that_loses_a_worker_goes_on_without_and_gets_another() -> None:
    cluster = elastic()
    cluster.evict("wd-worker-1")
    cluster.settle()
    assert [each["id"] for each in membership(cluster)["tasks"]] == ["wd-worker-0", "wd-worker-2"]
    assert cluster.phase == "Running", "two are enough"
    assert cluster.status["elastic"] == "DOING"
    cluster.start()
    assert [each["id"] for each in membership(cluster)["tasks"]] == ["wd-worker-0", "wd-worker-1", "wd-worker-2"]
    assert "retries" not in cluster.status
    assert cluster.status["evictions"] == 1


def test_an_elastic_job_completes() -> None:
    cluster = elastic()
    for name in list(cluster.pods):
        cluster.end(name)
    cluster.settle()
    assert cluster.phase == "Completed"
    assert not cluster.pods
    assert cluster.status["elastic"] == "DONE"


def test_a_worker_that_finishes_leaves_the_others_in_peace() -> None:
    cluster = elastic()
    before = membership(cluster)
    for name in ("wd-worker-2", "wd-worker-0"):
        cluster.end(name)
        cluster.settle()
        assert membership(cluster) == before
    del cluster.pods["wd-worker-0"]["status"]["podIP"]
    cluster.settle()
    assert membership(cluster) == before, "a pod that is over has no address any more"
    assert cluster.status["elastic"] == "DONE"


def test_nobody_waits_for_the_finished_when_others_come_or_go() -> None:
    cluster = elastic()
    cluster.end("wd-worker-1")
    cluster.settle()
    cluster.evict("wd-worker-2")
    cluster.settle()
    assert [(each["id"], each["rank"]) for each in membership(cluster)["tasks"]] == [("wd-worker-0", 0)]
    cluster.start()
    assert [each["id"] for each in membership(cluster)["tasks"]] == ["wd-worker-0", "wd-worker-2"]


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"tasks": [1]}', '{"tasks": 5, "generation": "x"}'])
def test_a_membership_that_somebody_else_wrote_is_published_over(text: str) -> None:
    cluster = elastic()
    assert cluster.config_map is not None
    cluster.config_map["data"]["membership.json"] = text
    cluster.settle()
    assert len(membership(cluster)["tasks"]) == 3


def test_a_job_that_grows_goes_on_running_and_its_gang_asks_for_no_more() -> None:
    cluster = Cluster(manifest(worker=3, elastic=1), options=Options(scheduling="volcano"))
    cluster.start()
    assert cluster.phase == "Running" and cluster.pod_group is not None
    before = cluster.pod_group["spec"]
    assert before["minMember"] == 3
    cluster.job["spec"]["worker"]["replicas"] = 5
    cluster.settle()
    assert len(cluster.pods) == 5 and cluster.phase == "Running", "three train"
    assert cluster.status["elastic"] == "DOING"
    assert cluster.pod_group["spec"] == before
    cluster.start()
    assert (cluster.phase, cluster.status["worker"]["running"]) == ("Running", 5)
    assert not cluster.settle()
    cluster.job["spec"]["worker"]["replicas"] = 2
    cluster.start()
    assert (cluster.phase, cluster.pod_group["spec"]["minMember"]) == ("Running", 2)


def test_a_job_that_loses_a_worker_it_cannot_do_without_starts_again() -> None:
    cluster = Cluster(manifest(worker=3, elastic=1))
    cluster.start()
    cluster.evict("wd-worker-1")
    cluster.settle()
    assert cluster.phase == "Restarting"
    cluster.start()
    assert cluster.phase == "Running"


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
@pytest.mark.parametrize("begins", [False, True])
def test_a_job_that_turns_elastic_or_back_starts_again_with_the_right_pods(begins: bool, intranet: str) -> None:
    cluster = running(worker=2, elastic=int(begins), intranet=intranet)
    before = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    cluster.job["spec"]["elastic"] = int(not begins)
    cluster.settle()
    cluster.start()
    assert cluster.phase == "Running"
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in cluster.pods.values())
    assert cluster.config_map is not None
    assert ("membership.json" in cluster.config_map["data"]) is not begins
    mounted = [pod["spec"]["containers"][0].get("volumeMounts") for pod in cluster.pods.values()]
    assert all(map(bool, mounted)) is not begins
    assert "Resized" in {each.reason for each in cluster.events if each.type == "Normal"}
    assert "evictions" not in cluster.status and "retries" not in cluster.status


def test_a_job_that_turns_elastic_before_it_has_started() -> None:
    cluster = Cluster(manifest(worker=2))
    cluster.settle()
    cluster.job["spec"]["worker"]["limits"] = 8
    cluster.start()
    assert (cluster.phase, cluster.status["attempt"]) == ("Running", 1)
    assert len(membership(cluster)["tasks"]) == 2
