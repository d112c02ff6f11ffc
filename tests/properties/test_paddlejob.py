"""Whatever happens to a PaddleJob's pods and specification, in whatever order, its operator keeps its promises.

A history is a list of things done to a cluster that holds one job: the kubelet works, pods end or are taken away,
people edit and delete, time passes, the operator looks, sometimes with an old picture, sometimes ended in the middle of
its actions.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.resources import Resources
from paddleflow.paddlejob import Options, Plan
from paddleflow.paddlejob.actions import Action, CreatePod, DeletePod, Record
from paddleflow.paddlejob.edl import Claim, fair_shares, targets
from paddleflow.paddlejob.records import read_record
from tests.unit.paddlejob.makers import Cluster, manifest

FINAL = ("Completed", "Failed")
LEAVING = "2023-11-14T22:13:20Z"

shapes = st.fixed_dictionaries(
    {
        "ps": st.integers(0, 2),
        "worker": st.integers(1, 3),
        "intranet": st.sampled_from(["PodIP", "Service", "Host"]),
        "cleanPodPolicy": st.sampled_from(["", "Always", "Never", "OnFailure", "OnCompletion"]),
        "backoffLimit": st.integers(0, 2),
        "elastic": st.sampled_from([0, 0, 1]),
    },
    optional={"activeDeadlineSeconds": st.integers(50, 500), "ttlSecondsAfterFinished": st.integers(10, 100)},
)
number = st.integers(0, 9)
calamities = st.tuples(st.sampled_from(["succeed", "fail", "fail", "evict", "delete", "leave"]), number)
happenings = st.one_of(
    st.tuples(st.just("start"), st.just(0)),
    st.tuples(st.sampled_from(["look", "look", "kubelet", "volcano", "vanish", "old look"]), st.just(0)),
    calamities,
    calamities,
    st.tuples(st.just("half a look"), number),
    st.tuples(st.just("time"), st.sampled_from([1, 15, 400])),
    st.one_of(
        st.tuples(st.just("resize"), st.integers(0, 4)),
        st.tuples(st.just("turn elastic"), st.integers(0, 1)),
        st.tuples(st.sampled_from(["suspend", "resume", "resume", "untie ports", "all succeed"]), st.just(0)),
    ),
)
histories = st.lists(happenings, min_size=8, max_size=20).map(lambda rest: [("start", 0), *rest])


class Audited(Cluster):
    """Believes nothing: every plan is held against what was recorded before. Pods take their time to go."""

    def do(self, action: Action) -> None:
        if isinstance(action, DeletePod):
            pod = self.pods.get(action.name)
            if pod is not None and pod["metadata"]["uid"] == action.uid:
                pod["metadata"]["deletionTimestamp"] = LEAVING
        else:
            super().do(action)

    def audit(self, plan: Plan) -> None:
        recorded = self.status
        places = self._wanted()
        for action in plan.actions:
            if isinstance(action, CreatePod):
                name = action.body["metadata"]["name"]
                assert recorded.get("phase") not in FINAL, "a job that is over makes no pods"
                assert name in places and name not in self.pods, "never more pods than wanted"
                attempts = {pod["metadata"]["annotations"]["paddle-attempt"] for pod in self.pods.values()}
                assert attempts <= {str(recorded.get("attempt", 0))}, "one attempt ends before the next begins"
            if isinstance(action, DeletePod):
                self._audit_deletion(action, recorded)
        if recorded.get("phase") in FINAL:
            assert plan.status["phase"] == recorded["phase"], "an end is for ever"
            for role in ("ps", "worker"):
                before, after = recorded.get(role) or {}, plan.status.get(role) or {}
                assert {key: before.get(key) for key in ("failed", "succeeded")} == {
                    key: after.get(key) for key in ("failed", "succeeded")
                }
        limit = self.job["spec"]["backoffLimit"]
        assert plan.status.get("retries", 0) <= limit, "the budget is kept"
        assert plan.status.get("attempt", 0) >= recorded.get("attempt", 0)

    def _audit_deletion(self, action: DeletePod, recorded: dict[str, Any]) -> None:
        """What a failure was is recorded before the pod that tells of it goes, unless a restart made it moot."""
        pod = self.pods[action.name]
        attempt = int(pod["metadata"]["annotations"]["paddle-attempt"])
        failed = pod["status"]["phase"] == "Failed" and action.name in self._wanted()
        if failed and recorded.get("phase") not in FINAL and attempt == recorded.get("attempt", 0):
            assert action.uid in {each["uid"] for each in recorded.get("exits", ())}

    def _wanted(self) -> set[str]:
        spec = self.job["spec"]
        sizes = {role: spec[role]["replicas"] for role in ("ps", "worker") if role in spec}
        return {f"wd-{role}-{index}" for role, replicas in sizes.items() for index in range(replicas)}

    def look(self) -> Plan:
        self.audit(self.plan())
        return super().look()


def happen(cluster: Audited, what: str, which: int, old: dict[str, Any]) -> None:  # noqa: PLR0912 - a table
    names = sorted(cluster.pods)
    name = names[which % len(names)] if names else None
    alive = name is not None and cluster.pods[name]["status"]["phase"] in ("Pending", "Running")
    if what == "start":
        come_to_rest(cluster, rounds=6)
    elif what == "all succeed":
        for each in names:
            if cluster.pods[each]["status"]["phase"] == "Running":
                cluster.end(each)
    elif what == "look":
        old.clear()
        old.update(deepcopy(cluster.status))
        cluster.look()
    elif what == "half a look":
        plan = cluster.plan()
        cluster.audit(plan)
        for action in plan.actions[:which]:
            cluster.do(action)
    elif what == "old look":
        # Made from an earlier record: its actions may still be carried out, its status is refused.
        now = cluster.job.get("status")
        cluster.job["status"] = deepcopy(old)
        plan = cluster.plan()
        cluster.job["status"] = now
        for action in plan.actions:
            taken = isinstance(action, CreatePod) and action.body["metadata"]["name"] in cluster.pods
            if isinstance(action, CreatePod | DeletePod | Record) and not taken:
                cluster.do(action)
    elif what == "kubelet":
        cluster.kubelet()
    elif what == "volcano" and cluster.pod_group is not None:
        cluster.pod_group["status"]["phase"] = "Inqueue"
    elif what == "succeed" and name and cluster.pods[name]["status"]["phase"] == "Running":
        cluster.end(name)
    elif what == "fail" and name and alive:
        cluster.end(name, 1 + which)
    elif what == "evict" and name and alive:
        cluster.evict(name)
    elif what == "delete" and name:
        del cluster.pods[name]
    elif what == "leave" and name:
        cluster.pods[name]["metadata"]["deletionTimestamp"] = LEAVING
    elif what == "vanish":
        for gone in [each for each, pod in cluster.pods.items() if "deletionTimestamp" in pod["metadata"]]:
            del cluster.pods[gone]
    elif what == "time":
        cluster.now += which
    elif what == "resize":
        cluster.job["spec"]["worker"]["replicas"] = which
    elif what == "turn elastic":
        cluster.job["spec"]["elastic"] = which
    elif what == "untie ports":
        cluster.job["metadata"].pop("annotations", None)
    elif what in ("suspend", "resume"):
        cluster.job["spec"]["suspend"] = what == "suspend"


def finished(cluster: Audited) -> set[str]:
    remembered = read_record(cluster.status).succeeded
    return {f"wd-{role}-{index}" for role, indexes in remembered.items() for index in indexes}


def come_to_rest(cluster: Audited, rounds: int = 40) -> None:
    """Nothing bad happens any more; all that waits is given its time and room."""
    for _ in range(rounds):
        before = deepcopy((cluster.pods, cluster.pod_group, cluster.status))
        happen(cluster, "vanish", 0, {})
        cluster.settle()
        if cluster.pod_group is not None:
            cluster.pod_group["status"]["phase"] = "Running"
        cluster.kubelet()
        if cluster.plan().requeue_after_s is not None and cluster.phase not in ("Running", *FINAL):
            cluster.now += 400
        elif before == (cluster.pods, cluster.pod_group, cluster.status):
            break
    cluster.settle()


@settings(max_examples=100)
@given(shape=shapes, history=histories, scheduling=st.sampled_from(["", "volcano"]))
def test_every_history_comes_to_a_good_rest(shape: dict[str, Any], history: list[Any], scheduling: str) -> None:
    options = Options(scheduling=scheduling, etcd_servers=("etcd:2379",))
    cluster = Audited(manifest(**shape), options=options)
    old: dict[str, Any] = {}
    for what, which in history:
        happen(cluster, what, which, old)
    come_to_rest(cluster)
    if cluster.is_gone:
        assert cluster.phase in FINAL
        return
    wanted = cluster._wanted()
    spec = cluster.job["spec"]
    if cluster.phase in FINAL:
        ended = {pod["status"]["phase"] for pod in cluster.pods.values()}
        assert ended <= {"Succeeded", "Failed"}, "nobody holds anything for a job that is over"
        assert cluster.pod_group is None
    elif spec.get("suspend"):
        assert cluster.phase == "Suspended" and not cluster.pods and cluster.pod_group is None
    else:
        assert set(cluster.pods) | finished(cluster) == wanted, "who has finished is not started again"
        assert cluster.phase == ("Running" if wanted else "Pending")
        by_address = spec["intranet"] != "Service"
        if cluster.config_map is not None and by_address and wanted and not (spec["elastic"] and not spec.get("ps")):
            listed = set(cluster.config_map["data"].get("PADDLE_TRAINERS", "").split(",")) - {""}
            addresses = {pod["status"].get("podIP") for name, pod in cluster.pods.items() if "-worker-" in name}
            assert finished(cluster) or listed == addresses, "everybody's address is the one its peers know"


claims = st.builds(
    lambda least, more, size, cpu, gpu: {"least": least, "most": least + more, "size": size, "cpu": cpu, "gpu": gpu},
    st.integers(1, 4),
    st.integers(0, 12),
    st.integers(0, 16),
    st.integers(1, 4),
    st.integers(0, 2),
)


def spelt(drawn: list[dict[str, int]], *, alike: bool = False) -> list[Claim]:
    return [
        Claim(
            key=f"job-{position}",
            each=Resources({"cpu": 1000} if alike else {"cpu": 1000 * each["cpu"], "nvidia.com/gpu": each["gpu"]}),
            size=each["size"],
            least=each["least"],
            most=each["most"],
        )
        for position, each in enumerate(drawn)
    ]


@settings(max_examples=300)
@given(drawn=st.lists(claims, max_size=6), cores=st.integers(0, 60), gpus=st.integers(0, 20), others=st.integers(0, 30))
def test_shares_stay_in_bounds_and_in_the_cluster(
    drawn: list[dict[str, int]], cores: int, gpus: int, others: int
) -> None:
    asked = spelt(drawn)
    capacity = Resources({"cpu": cores * 1000, "nvidia.com/gpu": gpus})
    taken = Resources({"cpu": others * 1000})
    shares = fair_shares(asked, capacity, taken)
    for claim in asked:
        assert claim.least <= shares[claim.key] <= claim.most
    if any(shares[claim.key] > claim.least for claim in asked):
        cpu = sum(claim.each.cpu_milli * shares[claim.key] for claim in asked if shares[claim.key] > claim.least)
        assert cpu + taken.cpu_milli <= capacity.cpu_milli * 0.97


@settings(max_examples=300)
@given(drawn=st.lists(claims, min_size=1, max_size=6), cores=st.integers(0, 60))
def test_shares_of_like_workers_are_max_min_fair(drawn: list[dict[str, int]], cores: int) -> None:
    asked = spelt(drawn, alike=True)
    shares = fair_shares(asked, Resources({"cpu": cores * 1000}), Resources(), 1.0)
    for poor in asked:
        for rich in asked:
            if shares[poor.key] < poor.most and shares[rich.key] > rich.least:
                assert rich.fulfilment(shares[rich.key] - 1) <= poor.fulfilment(shares[poor.key])


@settings(max_examples=200)
@given(drawn=st.lists(claims, max_size=6), cores=st.integers(0, 60))
def test_the_rule_comes_to_rest_at_the_fair_shares(drawn: list[dict[str, int]], cores: int) -> None:
    """On one node there is no fragmentation, and everybody gets what is due."""
    asked = spelt(drawn, alike=True)
    capacity = Resources({"cpu": cores * 1000})
    for _ in range(4):
        used = sum(claim.size for claim in asked) * 1000
        room = Resources({"cpu": max(capacity.cpu_milli - used, 0)})
        changed = {each.key: each.workers for each in targets(asked, capacity, Resources(), [room], 1.0)}
        asked = [
            Claim(
                key=each.key,
                each=each.each,
                size=changed.get(each.key, each.size),
                least=each.least,
                most=each.most,
            )
            for each in asked
        ]
    assert not changed
    assert {each.key: each.size for each in asked} == fair_shares(asked, capacity, Resources(), 1.0)
