"""The definition of the PaddleJob resource, from which ``deploy/crds`` is generated.

``v1`` is for every cluster since Kubernetes 1.16: a structural schema that validates and defaults, with rules in CEL
(checked since 1.25, ignored before) for what a schema cannot say. ``v1beta1`` is for clusters older than that: the same
types and bounds, no rules. Pod templates are checked by the API server when pods are made; here only their frame is.
"""

from __future__ import annotations

from typing import Literal

from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.jobs import DEFAULT_BACKOFF_LIMIT, MOST_REPLICAS, CleanPolicy, Intranet
from paddleflow.paddlejob.names import GROUP, KIND, PLURAL, ROLES
from paddleflow.paddlejob.parse import CLEAN_ALIASES

_OPEN = {"x-kubernetes-preserve-unknown-fields": True}
_LARGEST = 2**31 - 1


def crd(version: Literal["v1", "v1beta1"] = "v1") -> Json:
    return _v1() if version == "v1" else _v1beta1()


def _head(api_version: str) -> Json:
    return {
        "apiVersion": f"apiextensions.k8s.io/{api_version}",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
    }


def _names() -> Json:
    return {"kind": KIND, "listKind": f"{KIND}List", "plural": PLURAL, "singular": "paddlejob", "shortNames": ["pdj"]}


def _subresources() -> Json:
    return {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.worker.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def _columns(path_field: str) -> list[Json]:
    return [
        {"name": "Status", "type": "string", path_field: ".status.phase"},
        {"name": "Mode", "type": "string", path_field: ".status.mode"},
        {"name": "Age", "type": "date", path_field: ".metadata.creationTimestamp"},
    ]


def _v1() -> Json:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema()},
        "subresources": _subresources(),
        "additionalPrinterColumns": _columns("jsonPath"),
    }
    spec = {"group": GROUP, "names": _names(), "scope": "Namespaced", "versions": [version]}
    return {**_head("v1"), "spec": spec}


def _v1beta1() -> Json:
    spec = {
        "group": GROUP,
        "names": _names(),
        "scope": "Namespaced",
        "version": "v1",
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "subresources": _subresources(),
        "additionalPrinterColumns": _columns("JSONPath"),
        "validation": {"openAPIV3Schema": _plain(schema())},
    }
    return {**_head("v1beta1"), "spec": spec}


def _plain(node: object) -> object:
    """A schema without what older API servers do not know: extensions and defaults."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    is_schema = "type" in node and not isinstance(node["type"], dict)
    dropped = {key for key in node if key.startswith("x-kubernetes-") or (is_schema and key == "default")}
    return {key: _plain(value) for key, value in node.items() if key not in dropped}


def schema() -> Json:
    return {
        "type": "object",
        "description": "A training job of PaddlePaddle.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _spec(),
            "status": _status(),
        },
    }


def _spec() -> Json:
    fixed = [
        _rule(f"has(self.{role}) == has(oldSelf.{role})", f"the role {role} cannot be added to or taken from a job")
        for role in ROLES
    ]
    roles = {name: _role(words) for name, words in _ROLE_WORDS.items()}
    return {
        "type": "object",
        "properties": {**roles, **_policies()},
        "x-kubernetes-validations": [
            _rule(" || ".join(f"has(self.{role})" for role in ROLES), "give at least one of ps, worker and heter"),
            *fixed,
        ],
    }


_ROLE_WORDS = {
    "ps": "Parameter servers.",
    "worker": "Trainers.",
    "heter": "Trainers on other hardware, beside workers and parameter servers.",
}


def _role(words: str) -> Json:
    bounds = "!has(self.requests) || !has(self.limits) || self.limits == 0 || self.requests <= self.limits"
    return {
        "type": "object",
        "description": words,
        "required": ["replicas", "template"],
        "properties": {
            "replicas": _integer("How many pods.", most=MOST_REPLICAS),
            "requests": _integer("The fewest replicas an elastic job can work with.", most=MOST_REPLICAS),
            "limits": _integer("The most replicas it can use; above 0 the job is elastic.", most=MOST_REPLICAS),
            "template": _template(),
        },
        "x-kubernetes-validations": [_rule(bounds, "requests is the smaller, limits the greater number of replicas")],
    }


def _template() -> Json:
    containers = {"type": "array", "minItems": 1, "items": {"type": "object", **_OPEN}}
    return {
        "type": "object",
        "description": "A pod template. Container 0 trains and gets the PADDLE_ variables.",
        "required": ["spec"],
        "properties": {
            "metadata": {"type": "object", **_OPEN},
            "spec": {"type": "object", "required": ["containers"], "properties": {"containers": containers}, **_OPEN},
        },
    }


def _policies() -> Json:
    clean = ["", *map(str, CleanPolicy), *CLEAN_ALIASES]
    unchanged = _rule("self == oldSelf", "it cannot be changed: tasks would look for each other in the wrong place")
    return {
        "intranet": {
            "type": "string",
            "description": "How tasks reach each other: by pod address, by name of a Service, on the nodes' network.",
            "enum": ["", *map(str, Intranet)],
            "default": str(Intranet.POD_IP),
            "x-kubernetes-validations": [unchanged],
        },
        "cleanPodPolicy": {
            "type": "string",
            "description": "When the pods of an ended job are deleted. Empty: OnCompletion. OnFailed, None, Running "
            "and All are taken for OnFailure, Never, Never and Always. Pods that still run are always deleted.",
            "enum": clean,
        },
        "cleanPolicy": {"type": "string", "description": "Another spelling of cleanPodPolicy.", "enum": clean},
        "withGloo": _integer("0: no gloo; 1: for workers; 2: for workers and servers. With ps only.", most=2),
        "elastic": _integer("Above 0: worker.replicas may be changed while the job runs."),
        "backoffLimit": {
            **_integer("How often the job is retried after failures of its own; evictions are free."),
            "default": DEFAULT_BACKOFF_LIMIT,
        },
        "activeDeadlineSeconds": _integer("Fails the job that long after it began to run.", least=1),
        "ttlSecondsAfterFinished": _integer("Deletes the job that long after its end. Absent: never."),
        "suspend": {"type": "boolean", "description": "Takes the job's pods away until it is false again."},
        "schedulingPolicy": _scheduling(),
        "sampleSetRef": {"type": "object", "description": "Accepted and not used.", **_OPEN},
    }


def _scheduling() -> Json:
    amount = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    return {
        "type": "object",
        "description": "How Volcano treats the gang.",
        "properties": {
            "minAvailable": _integer("How many pods must fit before any is started. Absent: all."),
            "queue": {"type": "string"},
            "priorityClass": {"type": "string"},
            "minResources": {"type": "object", "additionalProperties": amount},
        },
    }


def _status() -> Json:
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            **{name: {"type": "string"} for name in ("type", "status", "reason", "message")},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    }
    texts = ("phase", "mode", "elastic", "selector")
    numbers = ("observedGeneration", "attempt", "retries", "evictions", "replicas")
    moments = ("startTime", "completionTime", "restartTime")
    return {
        "type": "object",
        "properties": {
            **{name: {"type": "string"} for name in texts},
            **{name: {"type": "integer", "format": "int64"} for name in numbers},
            **{name: {"type": "string", "format": "date-time"} for name in moments},
            **{role: {"type": "object", **_OPEN} for role in ROLES},
            "exits": {"type": "array", "items": {"type": "object", **_OPEN}},
            "unlistedExits": {"type": "array", "items": {"type": "string"}},
            "conditions": {"type": "array", "items": condition},
        },
        **_OPEN,
    }


def _integer(words: str, *, least: int = 0, most: int = _LARGEST) -> Json:
    return {"type": "integer", "format": "int32", "description": words, "minimum": least, "maximum": most}


def _rule(expression: str, message: str) -> Json:
    return {"rule": expression, "message": message}
