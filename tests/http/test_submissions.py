"""What a submission may say, and what it is told when it may not say that: the wire model alone."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.api.submissions import (
    AnyJobRequest,
    DistributedJobRequest,
    JobRequest,
    SingleJobRequest,
    WorkflowJobRequest,
)
from paddleflow.api.what_if import WhatIfRequest
from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import Elasticity, Framework, JobKind, RunPolicy
from paddleflow.server.bodies import validated

TEAM = {"framework": "paddle", "members": [{"role": "worker", "replicas": 2, "command": "x"}]}


def distributed(**changes: Any) -> SubmitJob:
    return validated(DistributedJobRequest, {**TEAM, **changes}).to_command()


def single(**changes: Any) -> SubmitJob:
    return validated(SingleJobRequest, {"command": "x", **changes}).to_command()


def test_a_team_is_understood_whole() -> None:
    command = distributed(
        Name="train",
        schedulingPolicy={"queue": "q", "priority": "HIGH"},
        members=[
            {"role": "pserver", "labels": {"a": "b"}, "annotations": {"c": "d"}, "nodeSelector": {"zone": "1"}},
            {"role": "pworker", "replicas": 3, "schedulingPolicy": {"queue": "q", "priority": "low"}},
        ],
        elastic={"role": "pworker", "min": 1, "max": 4, "sizes": [1, 2, 4], "rescaleCostSeconds": 5},
        runPolicy={"retries": 3, "backoffSeconds": 1, "deadlineSeconds": 60, "ttlSeconds": 0, "graceSeconds": 5.5,
                   "requeue": False},
    )  # fmt: skip
    spec = command.spec
    assert (command.name, command.queue, command.priority) == ("train", "q", "HIGH")
    assert (spec.kind, spec.framework) == (JobKind.DISTRIBUTED, Framework.PADDLE)
    first, second = spec.members
    assert (first.role, first.replicas, first.labels, first.annotations) == ("pserver", 1, {"a": "b"}, {"c": "d"})
    assert first.node_selector == {"zone": "1"}
    assert (second.role, second.replicas) == ("worker", 3), "pworker is another word for worker"
    assert spec.elastic == Elasticity(role="worker", least=1, most=4, sizes=(1, 2, 4), rescale_cost_s=5)
    assert spec.policy == RunPolicy(retries=3, backoff_s=1, deadline_s=60, ttl_s=0, grace_s=5.5, requeue=False)


def test_what_is_left_out_is_as_usual() -> None:
    for command in (single(), distributed()):
        assert command.spec.policy == RunPolicy()
        assert command.spec.elastic is None
    workflow = validated(WorkflowJobRequest, {"extensionTemplate": {"a": 1}, "runPolicy": {"retries": 1}}).to_command()
    assert (workflow.spec.members, workflow.spec.policy.retries) == ((), 1)


@pytest.mark.parametrize(
    ("changes", "retries", "ttl_s"),
    [
        ({"env": {"PF_JOB_RESTART_POLICY": "OnFailure"}}, 6, None),
        ({"env": {"PF_JOB_RESTART_POLICY": "Always"}}, 6, None),
        ({"env": {"PF_JOB_RESTART_POLICY": "Never"}}, 0, None),
        ({"env": {"PF_JOB_RESTART_POLICY": "Always"}, "runPolicy": {"retries": 0}}, 0, None),
        ({"annotations": {"paddleflow/job-ttl-seconds": "90"}}, 0, 90),
        ({"annotations": {"paddleflow/job-ttl-seconds": "90"}, "runPolicy": {"ttlSeconds": 5}}, 0, 5),
    ],
)
def test_older_words_are_understood(changes: dict[str, Any], retries: int, ttl_s: float | None) -> None:
    policy = single(**changes).spec.policy
    assert (policy.retries, policy.ttl_s) == (retries, ttl_s)


def test_a_member_may_ask_for_restarts_in_the_older_way() -> None:
    members = [{"role": "worker"}, {"role": "worker", "env": {"PF_JOB_RESTART_POLICY": "OnFailure"}}]
    assert distributed(members=members).spec.policy.retries == 6


WORKER = {"role": "worker", "replicas": 2}


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"elastic": {"max": 2}}, "elastic.min", "at least 1"),
        ({"elastic": {"min": 0, "max": 2}}, "elastic.min", "0 is not at least 1"),
        ({"elastic": {"min": 3, "max": 2}}, "elastic.max", "2 is below elastic.min 3"),
        ({"elastic": {"min": 3}}, "elastic.max", "give at least that"),
        ({"elastic": {"min": 1, "max": 10**300}}, "elastic.max", "4096"),
        ({"elastic": {"min": 1, "max": 2, "rescaleCostSeconds": -1}}, "elastic.rescaleCostSeconds", "between 0 and"),
        ({"runPolicy": {"retries": -1}}, "runPolicy.retries", "between 0 and 100"),
        ({"runPolicy": {"retries": 101}}, "runPolicy.retries", "101"),
        ({"runPolicy": {"retries": 10**300}}, "runPolicy.retries", "..."),
        ({"runPolicy": {"backoffSeconds": 86401}}, "runPolicy.backoffSeconds", "86400"),
        ({"runPolicy": {"deadlineSeconds": 0}}, "runPolicy.deadlineSeconds", "above zero"),
        ({"runPolicy": {"deadlineSeconds": 1e300}}, "runPolicy.deadlineSeconds", "between"),
        ({"runPolicy": {"ttlSeconds": -1}}, "runPolicy.ttlSeconds", "between 0"),
        ({"runPolicy": {"graceSeconds": 3601}}, "runPolicy.graceSeconds", "3600"),
        ({"annotations": {"paddleflow/job-ttl-seconds": "1h"}}, "annotations.paddleflow/job-ttl-seconds", "[1h]"),
        ({"framework": "mxnet"}, "framework", "mxnet jobs cannot be run"),
        ({"framework": "aitj"}, "framework", "choose from"),
        ({"framework": "Paddle"}, "framework", "is not one of"),
        ({"members": [WORKER, {**WORKER, "replicas": 0}]}, "members[1].replicas", "0 is not at least 1"),
        ({"members": [{**WORKER, "replicas": 4097}]}, "members", "4097 replicas"),
        ({"members": [{**WORKER, "schedulingPolicy": {"queue": "other"}}]}, "members[0].schedulingPolicy.queue",
         "[other] is not the job's queue [default-queue]"),
    ],
)  # fmt: skip
def test_refusals_name_the_field(changes: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        distributed(**changes)
    assert (caught.value.code, caught.value.details["field"]) == ("JobCreateFailed", field)
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("model", "body", "field"),
    [
        (SingleJobRequest, {"runPolicy": {"retries": "3"}}, "runPolicy.retries"),
        (SingleJobRequest, {"runPolicy": {"retries": 1.5}}, "runPolicy.retries"),
        (SingleJobRequest, {"runPolicy": {"requeue": "yes"}}, "runPolicy.requeue"),
        (DistributedJobRequest, {"elastic": {"min": True}}, "elastic.min"),
        (DistributedJobRequest, {"members": [{"nodeSelector": {"a": 1}}]}, "members.0.nodeSelector.a"),
    ],
)
def test_types_are_strict(model: type[JobRequest], body: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        validated(model, body)
    assert caught.value.details["field"] == field


def test_only_a_distributed_job_has_sizes() -> None:
    with pytest.raises(Invalid, match="a single job has one size"):
        single(elastic={"min": 1, "max": 2})


def test_a_job_of_either_kind() -> None:
    one = validated(AnyJobRequest, {"command": "x", "flavour": {"cpu": 2}}).to_command()
    assert (one.spec.kind, one.spec.members[0].command) == (JobKind.SINGLE, "x")
    team = validated(AnyJobRequest, TEAM).to_command()
    assert (team.spec.kind, len(team.spec.members)) == (JobKind.DISTRIBUTED, 1)


def test_a_question_is_understood_whole() -> None:
    body = {
        "queues": [{"name": "q", "maxResources": {"cpu": "4"}, "weight": 2}, {"name": "r"}],
        "nodes": [{"count": 2, "cpu": 8, "mem": "1Gi", "labels": {"a": "b"}}, {"cpu": 1, "clusterName": "c"}],
        "removeNodes": ["n1"],
        "job": TEAM,
    }
    question = validated(WhatIfRequest, body).to_query()
    first, second = question.queues
    assert (first.name, first.weight, first.min_resources) == ("q", 2, None)
    assert first.max_resources is not None
    assert first.max_resources.spell() == {"cpu": "4"}
    assert (second.name, second.max_resources, second.weight) == ("r", None, None)
    assert [(node.name, node.cluster) for node in question.nodes] == [
        ("what-if-1", "default-cluster"), ("what-if-2", "default-cluster"), ("what-if-3", "c"),
    ]  # fmt: skip
    assert question.nodes[0].labels == {"a": "b"}
    assert question.without_nodes == ("n1",)
    assert question.job is not None
    assert question.job.spec.kind is JobKind.DISTRIBUTED
    assert validated(WhatIfRequest, {}).to_query().job is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"queues": [{}]}, "queues[0].name"),
        ({"queues": [{"name": "q", "weight": 0}]}, "queues[0].weight"),
        ({"queues": [{"name": "q", "minResources": {"cpu": "x"}}]}, "queues[0].minResources"),
        ({"nodes": [{"cpu": 1}, {}]}, "nodes[1]"),
        ({"nodes": [{"cpu": 1, "count": 0}]}, "nodes[0].count"),
        ({"nodes": [{"cpu": 1, "count": 10_000}, {"cpu": 1}]}, "nodes[1].count"),
        ({"job": {"framework": "mxnet"}}, "framework"),
    ],
)
def test_bad_questions_name_the_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        validated(WhatIfRequest, body).to_query()
    assert caught.value.details["field"] == field
