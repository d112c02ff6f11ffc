"""What a manifest means, and what is refused by which field."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.paddlejob import Observed, Options, Refused, parse, reconcile
from paddleflow.paddlejob.edl import claim_of
from paddleflow.paddlejob.environment import container_environment
from paddleflow.paddlejob.jobs import CleanPolicy, Intranet, Mode
from paddleflow.paddlejob.parse import with_older_spec
from tests.unit.paddlejob.makers import manifest, template


def without_template(**role: Any) -> dict[str, Any]:
    return {"template": template(), **role}


@pytest.mark.parametrize(
    ("sizes", "mode"),
    [
        ({"ps": 2, "worker": 2}, Mode.PS),
        ({"worker": 2}, Mode.COLLECTIVE),
        ({"worker": 1}, Mode.SINGLE),
        ({"worker": 1, "elastic": 1}, Mode.COLLECTIVE),
        ({"heter": 3}, Mode.SINGLE),
    ],
)
def test_the_mode(sizes: dict[str, Any], mode: Mode) -> None:
    assert parse(manifest(**sizes)).mode is mode


def test_defaults() -> None:
    job = parse(manifest(worker=2))
    assert (job.intranet, job.clean_policy, job.backoff_limit) == (Intranet.POD_IP, CleanPolicy.ON_COMPLETION, 3)
    assert not job.is_elastic and not job.is_suspended and not job.cautions
    assert job.ttl_s is None and job.active_deadline_s is None


@pytest.mark.parametrize(
    ("spec", "policy", "caution"),
    [
        ({"cleanPodPolicy": "OnFailed"}, CleanPolicy.ON_FAILURE, "ValueRenamed"),
        ({"cleanPodPolicy": "None"}, CleanPolicy.NEVER, "ValueRenamed"),
        ({"cleanPodPolicy": "All"}, CleanPolicy.ALWAYS, "ValueRenamed"),
        ({"cleanPolicy": "Never"}, CleanPolicy.NEVER, "FieldRenamed"),
        ({"cleanPodPolicy": "Always", "cleanPolicy": "Never"}, CleanPolicy.ALWAYS, None),
        ({"cleanPodPolicy": ""}, CleanPolicy.ON_COMPLETION, None),
        ({"cleanPodPolicy": "OnFailure"}, CleanPolicy.ON_FAILURE, None),
    ],
)
def test_policies_and_their_other_spellings(spec: dict[str, Any], policy: CleanPolicy, caution: str | None) -> None:
    job = parse(manifest(worker=1, **spec))
    assert job.clean_policy is policy
    assert [each.reason for each in job.cautions] == ([caution] if caution else [])


@pytest.mark.parametrize(
    ("spec", "is_elastic"),
    [
        ({"elastic": 1}, True),
        ({"elastic": 0}, False),
        ({}, False),
        ({"worker": without_template(replicas=2, requests=1, limits=4)}, True),
        ({"worker": without_template(replicas=2, limits=0)}, False),
        ({"worker": without_template(replicas=2, limits=4), "elastic": 0}, False),
    ],
)
def test_what_makes_a_job_elastic(spec: dict[str, Any], is_elastic: bool) -> None:
    base = manifest(worker=2)
    base["spec"] |= spec
    assert parse(base).is_elastic is is_elastic


@pytest.mark.parametrize(
    ("worker", "least"),
    [
        ({"replicas": 3}, 3),
        ({"replicas": 3, "limits": 8}, 1),
        ({"replicas": 3, "requests": 2, "limits": 8}, 2),
        ({"replicas": 3, "requests": 2}, 2),
        ({"replicas": 3, "requests": 0, "limits": 8}, 1),
        ({"replicas": 1, "requests": 2, "limits": 8}, 1),
        ({"replicas": 0, "limits": 8}, 0),
    ],
)
def test_the_fewest_an_elastic_job_works_with_are_the_same_everywhere(worker: dict[str, int], least: int) -> None:
    given = manifest(elastic=1)
    given["spec"]["worker"] = without_template(**worker)
    job = parse(given)
    assert job.least == least
    claim = claim_of(job, 0)
    if claim is not None:
        assert min(claim.least, claim.size) == least
        env = container_environment(job, job.roles["worker"], 0, 0, Options())
        (told,) = [each["value"] for each in env if each["name"] == "PADDLE_ELASTIC_NP"]
        assert told == f"{claim.least}:8"


def test_a_job_with_servers_is_not_elastic_and_is_told_so() -> None:
    job = parse(manifest(ps=1, worker=2, elastic=1))
    assert not job.is_elastic
    assert [each.reason for each in job.cautions] == ["NotElastic"]


def test_a_sample_set_is_tolerated() -> None:
    job = parse(manifest(worker=1, sampleSetRef={"name": "imagenet", "mountPath": "/data"}))
    assert [each.reason for each in job.cautions] == ["SampleSetIgnored"]


def test_reserved_variables_are_named_and_empty_ones_are_not_a_mistake() -> None:
    given = manifest()
    env = [{"name": "PADDLE_TRAINER_ID", "value": "7"}, {"name": "POD_IP", "value": ""}, {"name": "MINE", "value": "1"}]
    given["spec"]["worker"] = {"replicas": 1, "template": template(env=env)}
    (caution,) = parse(given).cautions
    assert caution.reason == "ReservedEnvironment"
    assert "PADDLE_TRAINER_ID" in caution.message and "POD_IP" not in caution.message


@pytest.mark.parametrize(("elastic", "named"), [(0, []), (1, ["PADDLE_ELASTIC_NP", "PF_TASK_ID"])])
def test_variables_of_elastic_jobs_are_reserved_in_those_only(elastic: int, named: list[str]) -> None:
    given = manifest(elastic=elastic)
    env = [{"name": "PADDLE_ELASTIC_NP", "value": "7"}, {"name": "PF_TASK_ID", "value": "me"}]
    given["spec"]["worker"] = {"replicas": 1, "template": template(env=env)}
    job = parse(given)
    words = " ".join(each.message for each in job.cautions)
    assert [name for name in ("PADDLE_ELASTIC_NP", "PF_TASK_ID") if name in words] == named
    given_env = container_environment(job, job.roles["worker"], 0, 0, Options())
    found = {each["name"]: each.get("value") for each in given_env}
    assert (found["PADDLE_ELASTIC_NP"], found["PF_TASK_ID"]) == (("1", "wd-worker-0") if elastic else ("7", "me"))


@pytest.mark.parametrize(("asked", "reasons"), [(3, []), (4, ["NeverStarts"])])
def test_a_gang_that_can_never_start_is_told(asked: int, reasons: list[str]) -> None:
    job = parse(manifest(ps=1, worker=2, schedulingPolicy={"minAvailable": asked}))
    assert [each.reason for each in job.cautions] == reasons


ROLE = {"replicas": 1, "template": template()}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec"),
        ({"worker": {"template": template()}}, "spec.worker.replicas"),
        ({"worker": []}, "spec.worker"),
        ({"worker": without_template(replicas=-1)}, "spec.worker.replicas"),
        ({"worker": without_template(replicas=10_001)}, "spec.worker.replicas"),
        ({"worker": without_template(replicas=True)}, "spec.worker.replicas"),
        ({"worker": without_template(replicas="2")}, "spec.worker.replicas"),
        ({"worker": without_template(replicas=2, requests=3, limits=2)}, "spec.worker.requests"),
        ({"worker": {"replicas": 1}}, "spec.worker.template.spec.containers"),
        ({"worker": {"replicas": 1, "template": {"spec": {"containers": []}}}}, "spec.worker.template.spec.containers"),
        (
            {"worker": {"replicas": 1, "template": {"spec": {"containers": ["x"]}}}},
            "spec.worker.template.spec.containers[0]",
        ),
        (
            {"worker": {"replicas": 1, "template": {"spec": {"containers": [{"env": {"A": "1"}}]}}}},
            "spec.worker.template.spec.containers[0].env",
        ),
        (
            {
                "worker": {
                    "replicas": 1,
                    "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}},
                }
            },
            "spec.worker.template.spec.containers.resources",
        ),
        ({"worker": ROLE, "intranet": "Pigeon"}, "spec.intranet"),
        ({"worker": ROLE, "cleanPodPolicy": "Sometimes"}, "spec.cleanPodPolicy"),
        ({"worker": ROLE, "cleanPolicy": "Sometimes"}, "spec.cleanPolicy"),
        ({"worker": ROLE, "withGloo": 3}, "spec.withGloo"),
        ({"worker": ROLE, "elastic": "yes"}, "spec.elastic"),
        ({"worker": ROLE, "backoffLimit": -1}, "spec.backoffLimit"),
        ({"worker": ROLE, "activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"worker": ROLE, "ttlSecondsAfterFinished": 1.5}, "spec.ttlSecondsAfterFinished"),
        ({"worker": ROLE, "suspend": "yes"}, "spec.suspend"),
        ({"worker": ROLE, "schedulingPolicy": []}, "spec.schedulingPolicy"),
        ({"worker": ROLE, "schedulingPolicy": {"queue": 1}}, "spec.schedulingPolicy.queue"),
        ({"worker": ROLE, "schedulingPolicy": {"minResources": {"cpu": "x"}}}, "spec.schedulingPolicy.minResources"),
        ({"worker": ROLE, "schedulingPolicy": {"minAvailable": "1"}}, "spec.schedulingPolicy.minAvailable"),
    ],
)
def test_mistakes_are_refused_by_field(spec: dict[str, Any], field: str) -> None:
    given = manifest()
    given["spec"] = spec
    with pytest.raises(Refused) as refused:
        parse(given)
    assert refused.value.field == field
    assert refused.value.message.startswith(f"{field}: ")


CONTAINER = "spec.worker.template.spec.containers[0]"


@pytest.mark.parametrize(
    ("container", "spec", "metadata", "field"),
    [
        ({"resources": "lots"}, {}, {}, f"{CONTAINER}.resources"),
        ({"resources": {"limits": ["cpu"]}}, {}, {}, f"{CONTAINER}.resources.limits"),
        ({"resources": {"requests": 5}}, {}, {}, f"{CONTAINER}.resources.requests"),
        ({"env": [{"name": ["a"]}]}, {}, {}, f"{CONTAINER}.env[0].name"),
        ({"env": [{"name": "A"}, {"name": 5}]}, {}, {}, f"{CONTAINER}.env[1].name"),
        ({"env": ["A=1"]}, {}, {}, f"{CONTAINER}.env"),
        ({"command": 5}, {}, {}, f"{CONTAINER}.command"),
        ({"args": "train.py"}, {}, {}, f"{CONTAINER}.args"),
        ({"ports": 5}, {}, {}, f"{CONTAINER}.ports"),
        ({"ports": [80]}, {}, {}, f"{CONTAINER}.ports"),
        ({"volumeMounts": 5}, {}, {}, f"{CONTAINER}.volumeMounts"),
        ({}, {"volumes": 5}, {}, "spec.worker.template.spec.volumes"),
        ({}, {"initContainers": {"a": 1}}, {}, "spec.worker.template.spec.initContainers"),
        ({}, {"nodeSelector": ["a"]}, {}, "spec.worker.template.spec.nodeSelector"),
        ({}, {"tolerations": "all"}, {}, "spec.worker.template.spec.tolerations"),
        ({}, {"schedulerName": ["volcano"]}, {}, "spec.worker.template.spec.schedulerName"),
        ({}, {"restartPolicy": 1}, {}, "spec.worker.template.spec.restartPolicy"),
        ({}, {}, {"labels": "x"}, "spec.worker.template.metadata.labels"),
        ({}, {}, {"annotations": [1]}, "spec.worker.template.metadata.annotations"),
        ({}, {}, "x", "spec.worker.template.metadata"),
    ],
)
def test_wrong_types_in_a_template_are_refused_by_field(container: Any, spec: Any, metadata: Any, field: str) -> None:
    """All of them pass the schema, which leaves templates open."""
    given = manifest(intranet="Service", elastic=1)
    body = template(**spec)
    body["spec"]["containers"][0] |= container
    given["spec"]["worker"] = {"replicas": 1, "template": {**body, "metadata": metadata}}
    with pytest.raises(Refused) as refused:
        reconcile(parse(given), Observed(), 0.0, Options(scheduling="volcano"))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("name", "intranet", "problem"),
    [
        ("a.b", "PodIP", "no dots"),
        ("1st", "Service", "begins with a digit"),
        ("x" * 55, "PodIP", "1 shorter"),
    ],
)
def test_names_that_cannot_be_host_names(name: str, intranet: str, problem: str) -> None:
    with pytest.raises(Refused, match=problem) as refused:
        parse(manifest(name, worker=2, intranet=intranet))
    assert refused.value.field == "metadata.name"


def test_the_longest_name_is_taken() -> None:
    assert parse(manifest("x" * 54, worker=10)).name == "x" * 54
    with pytest.raises(Refused):
        parse(manifest("x" * 54, worker=11))


def test_an_unknown_choice_of_environment_is_refused() -> None:
    given = manifest(worker=1)
    given["metadata"]["annotations"] = {"paddle-environment": "all"}
    with pytest.raises(Refused, match="both, static, launcher"):
        parse(given)


def test_a_job_goes_on_as_it_was_understood_before() -> None:
    given = manifest(worker=2, ttlSecondsAfterFinished=5)
    last = parse(given)
    given["spec"]["worker"]["template"]["spec"]["volumes"] = 5
    given["metadata"] |= {"generation": 2, "deletionTimestamp": "now", "finalizers": ["f"]}
    given["metadata"]["annotations"] = {"host-port": "35000", "paddle-environment": "nonsense"}
    given["status"] = {"phase": "Completed"}
    job = with_older_spec(given, last)
    assert (job.roles, job.ttl_s, job.generation) == (last.roles, 5, 1)
    assert (job.is_deleted, job.finalizers, job.status) == (True, ("f",), {"phase": "Completed"})
    assert job.annotations == {"host-port": "35000", "paddle-environment": ""}


def test_an_object_without_spec_is_refused() -> None:
    with pytest.raises(Refused, match="spec"):
        parse({"metadata": {"name": "a"}})
