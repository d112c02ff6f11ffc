"""From the object the API server holds to a PaddleJob.

The custom resource's schema refuses most mistakes when a manifest is applied. What it cannot say, and what an older
cluster does not check, is refused here, by the name of the field and with the way out. Words that the original took
silently for something else are taken for what they mean, with a caution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import Resources
from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.environment import CHOICES, reserved_names
from paddleflow.paddlejob.gangs import task_resources
from paddleflow.paddlejob.jobs import (
    DEFAULT_BACKOFF_LIMIT,
    MOST_REPLICAS,
    Caution,
    CleanPolicy,
    Intranet,
    PaddleJob,
    Role,
    SchedulingPolicy,
)
from paddleflow.paddlejob.names import ANNOTATION_ENVIRONMENT, LONGEST_POD_NAME, PS, ROLES, WORKER, pod_name

CLEAN_ALIASES = {
    "OnFailed": CleanPolicy.ON_FAILURE,
    "None": CleanPolicy.NEVER,
    "Running": CleanPolicy.NEVER,
    "All": CleanPolicy.ALWAYS,
}
"""``OnFailed`` stands in samples of the original; the others are the words of the Kubeflow training operator."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LARGEST = 2**31 - 1


class Refused(Invalid):
    """The job cannot be run as it is written. ``field`` is where, the message what to do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", details={"field": field})
        self.field = field


def with_older_spec(object: Json, last: PaddleJob) -> PaddleJob:
    """The job as it was last understood, with all that the object says beside its specification."""
    meta = _mapping(object, "metadata")
    return replace(
        last,
        is_deleted=bool(meta.get("deletionTimestamp")),
        annotations={**_annotations(meta), ANNOTATION_ENVIRONMENT: last.annotations.get(ANNOTATION_ENVIRONMENT, "")},
        finalizers=tuple(meta.get("finalizers") or ()),
        status=dict(object.get("status") or {}),
    )


def _annotations(meta: Json) -> dict[str, str]:
    return {str(key): str(value) for key, value in (meta.get("annotations") or {}).items()}


def parse(object: Json) -> PaddleJob:
    meta, spec = _mapping(object, "metadata"), _mapping(object, "spec")
    cautions: list[Caution] = []
    annotations = _annotations(meta)
    _choice(annotations.get(ANNOTATION_ENVIRONMENT), f"metadata.annotations[{ANNOTATION_ENVIRONMENT}]", CHOICES)
    intranet = Intranet(_choice(spec.get("intranet"), "spec.intranet", tuple(Intranet)) or Intranet.POD_IP)
    roles = {name: _role(name, spec[name], cautions) for name in ROLES if spec.get(name) is not None}
    if not roles:
        raise Refused("spec", "it has none of ps, worker and heter; give at least one, with replicas and a template")
    name = str(meta.get("name") or "")
    _check_names(name, roles, intranet)
    is_elastic = _is_elastic(spec, roles, cautions)
    cautions += _reserved(roles, is_elastic=is_elastic)
    scheduling = _scheduling(spec.get("schedulingPolicy"))
    cautions += _unreachable(scheduling, roles)
    return PaddleJob(
        name=name,
        namespace=str(meta.get("namespace") or "default"),
        uid=str(meta.get("uid") or ""),
        generation=int(meta.get("generation") or 0),
        is_deleted=bool(meta.get("deletionTimestamp")),
        annotations=annotations,
        finalizers=tuple(meta.get("finalizers") or ()),
        roles=roles,
        intranet=intranet,
        clean_policy=_clean_policy(spec, cautions),
        with_gloo=_number(spec, "withGloo", "spec.withGloo", most=2) or 0,
        is_elastic=is_elastic,
        scheduling=scheduling,
        backoff_limit=_given(_number(spec, "backoffLimit", "spec.backoffLimit"), DEFAULT_BACKOFF_LIMIT),
        active_deadline_s=_number(spec, "activeDeadlineSeconds", "spec.activeDeadlineSeconds", least=1),
        ttl_s=_number(spec, "ttlSecondsAfterFinished", "spec.ttlSecondsAfterFinished"),
        is_suspended=_truth(spec.get("suspend"), "spec.suspend"),
        cautions=tuple(cautions + _sample_set(spec.get("sampleSetRef"))),
        status=dict(object.get("status") or {}),
    )


def _role(name: str, given: object, cautions: list[Caution]) -> Role:
    field = f"spec.{name}"
    if not isinstance(given, Mapping):
        raise Refused(field, "it must be an object with replicas and a template")
    replicas = _number(given, "replicas", f"{field}.replicas", most=MOST_REPLICAS)
    if replicas is None:
        raise Refused(f"{field}.replicas", "it is missing; say how many pods the role has")
    least = _number(given, "requests", f"{field}.requests", most=MOST_REPLICAS)
    most = _number(given, "limits", f"{field}.limits", most=MOST_REPLICAS) or None
    if least is not None and most is not None and least > most:
        raise Refused(f"{field}.requests", f"it is {least}, more than limits, {most}; it is the smaller of the two")
    role = Role(name=name, replicas=replicas, least=least, most=most, template=_template(field, given))
    try:
        task_resources(role)
    except Invalid as error:
        raise Refused(f"{field}.template.spec.containers.resources", error.message) from error
    if role.template["spec"].get("restartPolicy") == "Always":
        message = f"{field}: pods with restartPolicy Always never end, and so the job does not complete"
        cautions.append(Caution(reason="NeverEnds", message=message))
    return role


def _template(field: str, given: Mapping[str, object]) -> Json:
    template = _object(given, "template", field)
    spec = _object(template, "spec", f"{field}.template")
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        raise Refused(f"{field}.template.spec.containers", "it must list at least one container; the first one trains")
    _check_template(f"{field}.template", template, spec)
    for index, container in enumerate(containers):
        _check_container(f"{field}.template.spec.containers[{index}]", container)
    return dict(template)


def _check_template(field: str, template: Mapping[str, object], spec: Mapping[str, object]) -> None:
    """Of what the rules read, the types: the schema leaves templates to the API server, which sees them only as
    pods."""
    metadata = _object(template, "metadata", field)
    for name in ("labels", "annotations"):
        _object(metadata, name, f"{field}.metadata")
    for name in ("volumes", "initContainers", "tolerations"):
        _objects(spec, name, f"{field}.spec")
    _object(spec, "nodeSelector", f"{field}.spec")
    for name in ("restartPolicy", "schedulerName"):
        _text(spec.get(name), f"{field}.spec.{name}")


def _check_container(field: str, container: object) -> None:
    if not isinstance(container, Mapping):
        raise Refused(field, "it must be an object with name and image")
    for name in ("command", "args"):
        if not isinstance(container.get(name) or [], list):
            raise Refused(f"{field}.{name}", "it must be a list of words")
    for name in ("ports", "volumeMounts"):
        _objects(container, name, field)
    for index, variable in enumerate(_objects(container, "env", field)):
        _text(variable.get("name"), f"{field}.env[{index}].name")
    resources = _object(container, "resources", field)
    for name in ("limits", "requests"):
        _object(resources, name, f"{field}.resources")


def _object(given: Mapping[str, Any], name: str, field: str) -> Mapping[str, Any]:
    found = given.get(name)
    if found is not None and not isinstance(found, Mapping):
        raise Refused(f"{field}.{name}", "it must be an object")
    return found or {}


def _objects(given: Mapping[str, Any], name: str, field: str) -> list[Mapping[str, Any]]:
    found = given.get(name)
    if found is not None and not (isinstance(found, list) and all(isinstance(each, Mapping) for each in found)):
        raise Refused(f"{field}.{name}", "it must be a list of objects")
    return found or []


def _check_names(name: str, roles: Mapping[str, Role], intranet: Intranet) -> None:
    if not _LABEL.fullmatch(name):
        raise Refused(
            "metadata.name",
            f"[{name[:80]}] becomes part of host names: small letters, digits and '-', no dots",
        )
    if intranet is Intranet.SERVICE and name[0].isdigit():
        raise Refused("metadata.name", f"[{name}] begins with a digit, which no Service may; begin with a letter")
    for role in roles.values():
        longest = pod_name(name, role.name, max(role.replicas, role.most or 0, 1) - 1)
        if len(longest) > LONGEST_POD_NAME:
            over = len(longest) - LONGEST_POD_NAME
            raise Refused(
                "metadata.name",
                f"the pod name {longest} is over {LONGEST_POD_NAME} characters; make the job's name {over} shorter",
            )


def _clean_policy(spec: Mapping[str, object], cautions: list[Caution]) -> CleanPolicy:
    field, given = "cleanPodPolicy", spec.get("cleanPodPolicy")
    if not given and spec.get("cleanPolicy"):
        field, given = "cleanPolicy", spec["cleanPolicy"]
        cautions.append(
            Caution(reason="FieldRenamed", message="spec.cleanPolicy is taken for spec.cleanPodPolicy; use the latter")
        )
    word = _choice(given, f"spec.{field}", (*CleanPolicy, *CLEAN_ALIASES))
    if word is None:
        return CleanPolicy.ON_COMPLETION
    if word in CLEAN_ALIASES:
        meant = CLEAN_ALIASES[word]
        cautions.append(Caution(reason="ValueRenamed", message=f"spec.{field}: {word} is taken for {meant}"))
        return meant
    return CleanPolicy(word)


def _is_elastic(spec: Mapping[str, object], roles: Mapping[str, Role], cautions: list[Caution]) -> bool:
    level = _number(spec, "elastic", "spec.elastic")
    worker = roles.get(WORKER)
    wanted = level > 0 if level is not None else worker is not None and worker.most is not None
    if wanted and (PS in roles or worker is None):
        message = "only jobs of workers without ps can change their size while they run; this one keeps the size it has"
        cautions.append(Caution(reason="NotElastic", message=message))
        return False
    return wanted


def _reserved(roles: Mapping[str, Role], *, is_elastic: bool) -> list[Caution]:
    found = []
    for role in roles.values():
        reserved = sorted(each for each in reserved_names(is_elastic=is_elastic) if role.given(each))
        if reserved:
            message = f"spec.{role.name}: the operator sets {', '.join(reserved)} itself; the values given are not used"
            found.append(Caution(reason="ReservedEnvironment", message=message))
    return found


def _unreachable(scheduling: SchedulingPolicy, roles: Mapping[str, Role]) -> list[Caution]:
    asked, total = scheduling.min_available, sum(role.replicas for role in roles.values())
    if asked is None or asked <= total:
        return []
    message = f"spec.schedulingPolicy.minAvailable is {asked}, and there are {total} pods: as a gang none starts"
    return [Caution(reason="NeverStarts", message=message)]


def _scheduling(given: object) -> SchedulingPolicy:
    field = "spec.schedulingPolicy"
    if given is None:
        return SchedulingPolicy()
    if not isinstance(given, Mapping):
        raise Refused(field, "it must be an object with minAvailable, queue, priorityClass, minResources")
    resources = given.get("minResources")
    if resources is not None:
        if not isinstance(resources, Mapping):
            raise Refused(f"{field}.minResources", "it must be an object such as {cpu: 4, memory: 8Gi}")
        resources = {str(name): str(amount) for name, amount in resources.items()}
        try:
            Resources.parse(resources)
        except Invalid as error:
            raise Refused(f"{field}.minResources", error.message) from error
    return SchedulingPolicy(
        min_available=_number(given, "minAvailable", f"{field}.minAvailable"),
        queue=_text(given.get("queue"), f"{field}.queue"),
        priority_class=_text(given.get("priorityClass"), f"{field}.priorityClass"),
        min_resources=resources,
    )


def _sample_set(given: object) -> list[Caution]:
    if given is None:
        return []
    message = "spec.sampleSetRef is not mounted: mount the data as a volume of the template"
    return [Caution(reason="SampleSetIgnored", message=message)]


def _mapping(object: Json, name: str) -> Json:
    found = object.get(name)
    if not isinstance(found, dict):
        raise Refused(name, "it must be an object")
    return found


def _number(given: Mapping[str, object], name: str, field: str, *, least: int = 0, most: int = _LARGEST) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(field, f"[{str(value)[:40]}] must be a whole number from {least} to {most}")
    return value


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _truth(value: object, field: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise Refused(field, "it must be true or false")
    return bool(value)


def _text(value: object, field: str) -> str:
    if value is not None and not isinstance(value, str):
        raise Refused(field, "it must be text")
    return value or ""


def _choice(value: object, field: str, words: tuple[str, ...]) -> str | None:
    if value is None or value == "":
        return None
    if value not in words:
        raise Refused(field, f"[{str(value)[:40]}] is not known; there are {', '.join(map(str, words))}")
    return str(value)
