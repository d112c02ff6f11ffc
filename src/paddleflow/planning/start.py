"""A step when its turn has come: everything it is given, what to find out before it starts, and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from paddleflow.domain.ids import CacheId, JobId
from paddleflow.domain.runs import ArtifactEvent, ArtifactUse, CacheEntry, RunNode
from paddleflow.planning import values
from paddleflow.planning.expand import inputs, parameters
from paddleflow.planning.fingerprint import identity
from paddleflow.planning.moves import Prepare
from paddleflow.planning.paths import artifact_path, runtime_name, separate
from paddleflow.planning.progress import Group, Progress
from paddleflow.planning.render import job_id_of


def given(progress: Progress, group: Group, row: RunNode) -> RunNode:
    """The row with parameters, artifacts, environment and command. Raises Invalid when something cannot be had."""
    plan, facts, node = progress.plan, progress.facts, group.node
    own_parameters, own_inputs = parameters(progress, group), inputs(progress, group)
    runtime = runtime_name(group.frame.runtime, node.name, row.seq)
    own_outputs = {name: artifact_path(plan, facts.run_id, node.name, row.seq, runtime, name) for name in node.outputs}
    system = values.system_parameters(facts, node.name, row.item)
    known = {**own_parameters, **system}
    seen_inputs, seen_outputs = values.artifact_texts(own_inputs, own_outputs, plan.main_fs, facts)
    return progress.make_room(
        replace(
            row,
            parameters=own_parameters,
            inputs=own_inputs,
            outputs=own_outputs,
            env=values.whole_environment(values.own_environment(node, known), system, seen_inputs, seen_outputs),
            command=values.command_of(node, {**seen_inputs, **seen_outputs, **known}),
        )
    )


def new_job_id(progress: Progress, row: RunNode) -> JobId:
    """An id no other node of the run has; it is taken from now on."""
    name = progress.plan.nodes[row.node].name
    job_id = job_id_of(progress.facts.run_id, name, row.key, row.seq, progress.job_ids.__contains__)
    progress.job_ids.add(job_id)
    return job_id


def question(progress: Progress, group: Group, row: RunNode) -> Prepare | None:
    """What must be known or done before the step starts; None: nothing. Raises Invalid when it cannot be said."""
    node = group.node
    if not node.cache.enable and not row.outputs:
        return None
    if not node.cache.enable:
        return Prepare(key=row.key, outputs=tuple(row.outputs.values()))
    system = values.system_parameters(progress.facts, node.name, row.item)
    known = {**row.parameters, **system}
    own_env = values.own_environment(node, known)
    return Prepare(
        key=row.key,
        identity=identity(
            progress.plan,
            node,
            command=values.command_of(node, known),
            env={name: value for name, value in own_env.items() if name not in system},
            parameters=row.parameters,
            item=row.item,
        ),
        inputs={name: separate(text, progress.plan.main_fs) for name, text in row.inputs.items()},
        scopes=node.cache.scopes,
        outputs=tuple(row.outputs.values()),
    )


def artifact_events(progress: Progress, row: RunNode, use: ArtifactUse, now: datetime) -> list[ArtifactEvent]:
    facts = progress.facts
    if facts.fs_id is None or row.job_id is None:
        return []
    paths = row.inputs if use is ArtifactUse.INPUT else row.outputs
    return [
        ArtifactEvent(
            run_id=facts.run_id,
            fs_id=facts.fs_id,
            fs_name=facts.fs_name,
            owner=facts.owner,
            path=path,
            step=row.node,
            job_id=row.job_id,
            use=use,
            name=name,
            piece=piece,
            created_at=now,
            updated_at=now,
        )
        for name, joined in paths.items()
        # A loop without items has made nothing.
        for piece, path in enumerate(separate(joined, progress.plan.main_fs))
    ]


def cache_entry(progress: Progress, row: RunNode, now: datetime) -> CacheEntry | None:
    """Of a step that has succeeded. Its id and number are given when it is stored."""
    if row.fingerprint is None or row.job_id is None:
        return None
    facts = progress.facts
    return CacheEntry(
        id=CacheId(""),
        fingerprint=row.fingerprint,
        run_id=facts.run_id,
        job_id=row.job_id,
        node=row.node,
        source=facts.source,
        owner=facts.owner,
        fs_id=facts.fs_id,
        fs_name=facts.fs_name,
        outputs=row.outputs,
        expires_after_s=progress.plan.nodes[row.node].cache.expires_after_s,
        created_at=now,
        updated_at=now,
    )
