"""Names, marks and networks of the objects a job is made of."""

from __future__ import annotations

from paddleflow.paddlejob import Options, parse
from paddleflow.paddlejob.gangs import is_gang, pod_group_of, task_resources
from paddleflow.paddlejob.network import choose_host_port, service_of
from paddleflow.paddlejob.pods import pod_of
from tests.unit.paddlejob.makers import manifest, set_env, template

VOLCANO = Options(scheduling="volcano")


def test_a_pod_has_the_names_and_marks_users_know() -> None:
    given = manifest(ps=1, worker=2)
    given["spec"]["worker"]["template"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    job = parse(given)
    pod = pod_of(job, job.roles["worker"], 1, 0, Options())
    meta = pod["metadata"]
    assert meta["name"] == pod["spec"]["hostname"] == pod["spec"]["subdomain"] == "wd-worker-1"
    assert meta["labels"] == {
        "team": "a",
        "paddle-res-name": "wd-worker-1",
        "paddle-res-type": "worker",
        "paddle-job-name": "wd",
    }
    assert meta["annotations"] == {"note": "b", "paddle-resource": "worker", "paddle-attempt": "0"}
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("PaddleJob", "job-uid", True)
    assert "schedulerName" not in pod["spec"] and "initContainers" not in pod["spec"]


def test_the_template_is_not_touched() -> None:
    given = manifest(worker=1, intranet="Host")
    given["metadata"]["annotations"] = {"host-port": "35020"}
    before = template()
    job = parse(given)
    pod_of(job, job.roles["worker"], 0, 0, VOLCANO)
    assert job.roles["worker"].template == before


def test_service_mode_by_name() -> None:
    job = parse(manifest(worker=2, intranet="Service"))
    pod = pod_of(job, job.roles["worker"], 0, 0, Options())
    assert set_env(pod)["POD_IP"] == "wd-worker-0"
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 36000}]
    service = service_of(job, "worker", "wd-worker-0")
    assert service["metadata"]["name"] == "wd-worker-0"
    spec = service["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    assert spec["selector"] == {"paddle-res-name": "wd-worker-0"}
    assert [(each["name"], each["port"]) for each in spec["ports"]] == [(f"p-{n}", 36000 + n) for n in range(20)]


def test_host_mode_declares_its_port_so_that_the_scheduler_keeps_pods_apart() -> None:
    given = manifest(worker=2, intranet="Host")
    given["metadata"]["annotations"] = {"host-port": "35020"}
    job = parse(given)
    spec = pod_of(job, job.roles["worker"], 0, 0, Options())["spec"]
    assert spec["hostNetwork"] is True
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["containers"][0]["ports"] == [{"containerPort": 35020, "hostPort": 35020}]


def test_an_init_container_only_where_asked_and_with_limits() -> None:
    job = parse(manifest(worker=2, intranet="Service"))
    options = Options(init_image="busybox:1")
    (init,) = pod_of(job, job.roles["worker"], 0, 0, options)["spec"]["initContainers"]
    assert init["name"] == "coord-paddle"
    assert init["command"][-2:] == ["wd-worker-0", "wd-worker-1"]
    assert init["resources"]["limits"] == init["resources"]["requests"]
    by_address = parse(manifest(worker=2))
    assert "initContainers" not in pod_of(by_address, by_address.roles["worker"], 0, 0, options)["spec"]


def test_gang_marks() -> None:
    job = parse(manifest(worker=2, schedulingPolicy={"queue": "gold"}))
    pod = pod_of(job, job.roles["worker"], 0, 0, VOLCANO)
    assert pod["spec"]["schedulerName"] == "volcano"
    marks = pod["metadata"]["annotations"]
    assert marks["scheduling.k8s.io/group-name"] == marks["volcano.sh/job-name"] == "wd"
    assert (marks["volcano.sh/task-spec"], marks["volcano.sh/job-version"]) == ("worker", "0")
    assert marks["volcano.sh/queue-name"] == "gold"


def test_another_scheduler_in_a_template_means_no_gang() -> None:
    given = manifest(ps=1, worker=2)
    assert is_gang(parse(given), VOLCANO)
    assert not is_gang(parse(given), Options())
    given["spec"]["ps"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    assert not is_gang(parse(given), VOLCANO)
    given["spec"]["ps"]["template"]["spec"]["schedulerName"] = "volcano"
    assert is_gang(parse(given), VOLCANO)


def test_the_pod_group_asks_for_all() -> None:
    group = pod_group_of(parse(manifest(ps=1, worker=2)))
    assert group["metadata"]["name"] == "wd"
    assert group["spec"] == {"minMember": 3, "minResources": {"cpu": "3", "memory": "3Gi"}}


def test_the_pod_group_as_the_policy_says() -> None:
    policy = {"minAvailable": 1, "queue": "q", "priorityClass": "high", "minResources": {"cpu": 2}}
    spec = pod_group_of(parse(manifest(worker=2, schedulingPolicy=policy)))["spec"]
    assert spec == {"minMember": 1, "minResources": {"cpu": "2"}, "queue": "q", "priorityClassName": "high"}


def test_the_gang_of_an_elastic_job_is_its_least_size() -> None:
    given = manifest(elastic=1)
    given["spec"]["worker"] = {"replicas": 4, "requests": 2, "limits": 8, "template": template()}
    spec = pod_group_of(parse(given))["spec"]
    assert spec["minMember"] == 2
    assert spec["minResources"] == {"cpu": "2", "memory": "2Gi"}


def test_limits_stand_in_for_requests() -> None:
    given = manifest(worker=1)
    containers = given["spec"]["worker"]["template"]["spec"]["containers"]
    containers[0]["resources"] = {"limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}
    containers.append({"name": "side", "resources": {"limits": {"memory": "1Gi"}}})
    found = task_resources(parse(given).roles["worker"]).spell()
    assert found == {"cpu": "1", "nvidia.com/gpu": "1", "memory": "1Gi"}


def test_port_blocks_do_not_overlap_and_stay_in_the_range() -> None:
    options = Options(port_range=(35000, 35199))
    taken: set[int] = set()
    for number in range(10):
        port = choose_host_port(f"uid-{number}", options, frozenset(taken))
        assert port is not None and port >= 35000 and port + 19 <= 35199
        assert all(abs(port - each) >= 20 for each in taken)
        taken.add(port)
    assert choose_host_port("one more", options, frozenset(taken)) is None
    assert choose_host_port("uid-3", options, frozenset()) == choose_host_port("uid-3", options, frozenset())
    crooked = choose_host_port("uid-3", options, frozenset({35005}))
    assert crooked is not None and abs(crooked - 35005) >= 20
