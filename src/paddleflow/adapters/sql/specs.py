"""What a job asks for and how far it has come, as JSON: the encoder and the decoder of ``JobSpec``, of placements and
of what a job remembers beyond its status.

Fields that are empty are left out, and a field that is absent reads as empty: rows written before a field existed stay
readable, and most rows stay short. Fields whose default is not empty (kind, framework, role, replicas) are always
written, so that a changed default never changes the meaning of a stored job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from paddleflow.adapters.sql.values import from_micros_or_null, to_json, to_micros_or_null
from paddleflow.domain.ids import NodeName, TaskId
from paddleflow.domain.jobs import (
    Elasticity,
    FlavourRef,
    Framework,
    FsRef,
    Job,
    JobKind,
    JobSpec,
    JobStatus,
    Member,
    Placement,
    RunPolicy,
    Spot,
)
from paddleflow.domain.resources import NOTHING, Resources

Json = dict[str, Any]
_NO_FLAVOUR = FlavourRef()
_NO_POLICY = RunPolicy()
_ELASTIC = ("role", "least", "most", "sizes", "rescale_cost_s")
_POLICY = ("retries", "backoff_s", "deadline_s", "ttl_s", "grace_s", "requeue")


def spec_to_json(spec: JobSpec) -> str:
    encoded: Json = {
        "kind": spec.kind.value,
        "framework": spec.framework.value,
        "members": [_encode_member(member) for member in spec.members],
    }
    if spec.extension_template is not None:
        encoded["extension_template"] = dict(spec.extension_template)
    if spec.elastic is not None:
        encoded["elastic"] = {name: getattr(spec.elastic, name) for name in _ELASTIC}
    if spec.policy != _NO_POLICY:
        encoded["policy"] = {
            name: value for name in _POLICY if (value := getattr(spec.policy, name)) != getattr(_NO_POLICY, name)
        }
    return to_json(encoded)


@lru_cache(maxsize=1024)
def spec_from_json(text: str) -> JobSpec:
    """Remembered: specs never change once stored, many jobs share one, and decoding is most of reading a job."""
    encoded: Json = json.loads(text)
    return JobSpec(
        kind=JobKind(encoded.get("kind", JobKind.SINGLE.value)),
        framework=Framework(encoded.get("framework", Framework.STANDALONE.value)),
        members=tuple([_decode_member(member) for member in encoded.get("members", ())]),
        extension_template=encoded.get("extension_template"),
        elastic=_decode_elastic(encoded.get("elastic")),
        policy=RunPolicy(**encoded["policy"]) if "policy" in encoded else _NO_POLICY,
    )


def _decode_elastic(encoded: Json | None) -> Elasticity | None:
    return None if encoded is None else Elasticity(**{**encoded, "sizes": tuple(encoded["sizes"])})


def _encode_member(member: Member) -> Json:
    encoded: Json = {
        "role": member.role,
        "replicas": member.replicas,
        "name": member.name,
        "flavour": _encode_flavour(member.flavour),
        "extra_fs": [_encode_fs(fs) for fs in member.extra_fs],
        "image": member.image,
        "env": dict(member.env),
        "command": member.command,
        "args": member.args,
        "port": member.port,
        "labels": dict(member.labels),
        "annotations": dict(member.annotations),
        "node_selector": dict(member.node_selector),
    }
    encoded = {name: value for name, value in encoded.items() if value or name == "replicas"}
    encoded["role"] = member.role
    if member.limit is not None:
        encoded["limit"] = _encode_flavour(member.limit)
    if member.fs is not None:
        encoded["fs"] = _encode_fs(member.fs)
    return encoded


def _decode_member(encoded: Json) -> Member:
    read = encoded.get
    flavour, limit, fs = read("flavour"), read("limit"), read("fs")
    return Member(
        role=read("role", "worker"),
        replicas=read("replicas", 1),
        name=read("name", ""),
        flavour=_decode_flavour(flavour) if flavour else _NO_FLAVOUR,
        limit=None if limit is None else _decode_flavour(limit),
        fs=None if fs is None else _decode_fs(fs),
        extra_fs=tuple([_decode_fs(each) for each in read("extra_fs", ())]),
        image=read("image", ""),
        env=read("env") or {},
        command=read("command", ""),
        args=tuple(read("args", ())),
        port=read("port", 0),
        labels=read("labels") or {},
        annotations=read("annotations") or {},
        node_selector=read("node_selector") or {},
    )


def _encode_flavour(flavour: FlavourRef) -> Json:
    encoded: Json = {}
    if flavour.name:
        encoded["name"] = flavour.name
    if flavour.resources.amounts:
        encoded["resources"] = dict(flavour.resources.amounts)
    return encoded


def _decode_flavour(encoded: Json) -> FlavourRef:
    amounts: Mapping[str, int] | None = encoded.get("resources")
    return FlavourRef(name=encoded.get("name", ""), resources=Resources(amounts) if amounts else NOTHING)


def _encode_fs(fs: FsRef) -> Json:
    encoded: Json = {
        "name": fs.name,
        "mount_path": fs.mount_path,
        "sub_path": fs.sub_path,
        "read_only": fs.read_only,
        "id": fs.id,
        "type": fs.type,
        "host_path": fs.host_path,
    }
    return {name: value for name, value in encoded.items() if value}


def _decode_fs(encoded: Json) -> FsRef:
    read = encoded.get
    return FsRef(
        name=read("name", ""),
        mount_path=read("mount_path", ""),
        sub_path=read("sub_path", ""),
        read_only=read("read_only", False),
        id=read("id", ""),
        type=read("type", ""),
        host_path=read("host_path", ""),
    )


def placements_to_json(placements: tuple[Placement, ...]) -> str:
    return to_json([_encode_placement(each) for each in placements]) if placements else "[]"


def _encode_placement(at: Placement) -> Json:
    return {"task_id": at.task_id, "role": at.role, "index": at.index, "node": at.node, "gpus": at.gpus}


@lru_cache(maxsize=4096)
def placements_from_json(text: str) -> tuple[Placement, ...]:
    """Remembered for those who show the same page again and again."""
    return () if text == "[]" else tuple(_decode_placement(each) for each in json.loads(text))


def _decode_placement(encoded: Json) -> Placement:
    role, index = encoded.get("role"), encoded.get("index")
    if role is None or index is None:
        # Written when jobs had one task and its id said both.
        *_, role, index = encoded["task_id"].rsplit("-", 2)
    return Placement(
        task_id=TaskId(encoded["task_id"]),
        role=role,
        index=int(index),
        node=NodeName(encoded["node"]),
        gpus=tuple(encoded.get("gpus", ())),
    )


def course_to_json(job: Job) -> str | None:
    """Null for a job that waits for the first time, or that was started once and has ended."""
    encoded: Json = {
        "leaving": [_encode_placement(each) for each in job.leaving],
        "claim": [{"role": at.role, "index": at.index, "node": at.node, "gpus": at.gpus} for at in job.claim],
        "outcome": None if job.outcome is None else job.outcome.value,
        "generation": job.generation,
        "failures": job.failures,
        "not_before": to_micros_or_null(job.not_before),
        "resized_at": to_micros_or_null(job.resized_at),
        "started_at": to_micros_or_null(job.started_at),
    }
    encoded = {name: value for name, value in encoded.items() if value}
    return to_json(encoded) if encoded else None


def course_from_json(text: str) -> Json:
    """As fields of a job."""
    encoded: Json = json.loads(text)
    read = encoded.get
    return {
        "leaving": tuple(_decode_placement(each) for each in read("leaving", ())),
        "claim": tuple(
            Spot(role=at["role"], index=at["index"], node=NodeName(at["node"]), gpus=tuple(at["gpus"]))
            for at in read("claim", ())
        ),
        "outcome": JobStatus(encoded["outcome"]) if "outcome" in encoded else None,
        "generation": read("generation", 0),
        "failures": read("failures", 0),
        "not_before": from_micros_or_null(read("not_before")),
        "resized_at": from_micros_or_null(read("resized_at")),
        "started_at": from_micros_or_null(read("started_at")),
    }
