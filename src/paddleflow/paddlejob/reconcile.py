"""One look at a PaddleJob: from what is wanted, recorded and seen to what is to be done.

Everything that can be done now is in one plan. Three rules keep restarts at any point harmless. What happened is
recorded before its evidence is deleted: a plan that changes the course (a restart, an end) only records it, and the
next one, made from the record, acts. Pods carry the attempt they belong to, so what is left of an earlier attempt is
known as such. And a plan made from an older record than the pods are is empty: it waits for the newer record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paddleflow.paddlejob import gangs, memberships, network
from paddleflow.paddlejob.actions import (
    NORMAL,
    WARNING,
    Action,
    AnnotateJob,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeletePodGroup,
    DeleteService,
    Json,
    Observed,
    Options,
    PatchPod,
    Plan,
    PutConfigMap,
    PutPodGroup,
    Record,
    RemoveFinalizer,
    SetElasticNp,
)
from paddleflow.paddlejob.jobs import CleanPolicy, Intranet, PaddleJob, Phase
from paddleflow.paddlejob.judge import Case, Verdict, judge
from paddleflow.paddlejob.names import (
    ANNOTATION_HOST_PORT,
    ANNOTATION_MEMBERS,
    FINALIZER,
    PORTS_PER_TASK,
    WORKER,
    elastic_np_key,
    start_key,
)
from paddleflow.paddlejob.pods import pod_of
from paddleflow.paddlejob.records import Record as Remembered
from paddleflow.paddlejob.records import read_record
from paddleflow.paddlejob.statuses import (
    ended_status,
    judged_status,
    knows_cautions,
    running_status,
    terminating_status,
)
from paddleflow.paddlejob.tasks import Task, finished_task, read_tasks

_LOOK_AGAIN_S = 1.0
_NO_PORTS_LOOK_AGAIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that one look is about."""

    job: PaddleJob
    observed: Observed
    options: Options
    now: float
    record: Remembered
    tasks: Sequence[Task]
    """Everybody's, of all attempts."""
    wanted: Mapping[str, Task]
    """Those of this attempt that the job wants, by pod name, and those that have finished even if their pods are
    gone."""

    @property
    def case(self) -> Case:
        return Case(
            job=self.job, record=self.record, tasks=self.wanted, config_map=self.observed.config_map, now=self.now
        )


def reconcile(job: PaddleJob, observed: Observed, now: float, options: Options) -> Plan:
    tasks = read_tasks(observed.pods)
    record = read_record(job.status).without_gone(tasks)
    wanted = _wanted(job, record, tasks)
    scene = Scene(job=job, observed=observed, options=options, now=now, record=record, tasks=tasks, wanted=wanted)
    if job.is_deleted:
        let_go = (RemoveFinalizer(finalizer=FINALIZER),) if FINALIZER in job.finalizers else ()
        return Plan(actions=let_go, status=terminating_status(job))
    if any(task.attempt > record.attempt for task in tasks):
        return Plan(actions=(), status=job.status, requeue_after_s=_LOOK_AGAIN_S)
    if record.phase is not None and record.phase.is_final:
        return _after_the_end(scene)
    if job.is_suspended:
        return _suspended(scene)
    if job.intranet is Intranet.HOST and not _has_ports(job):
        return _with_ports(scene)
    verdict = judge(scene.case)
    return _at_work(scene) if verdict is None else _judged(scene, verdict)


def _wanted(job: PaddleJob, record: Remembered, tasks: Sequence[Task]) -> dict[str, Task]:
    places = {name: (role.name, index) for role, index, name in job.places()}
    wanted = {task.name: task for task in tasks if task.attempt == record.attempt and task.name in places}
    for name, (role, index) in places.items():
        if index in record.succeeded[role] and name not in wanted:
            wanted[name] = finished_task(name, role, index, record.attempt)
    return wanted


def _judged(scene: Scene, verdict: Verdict) -> Plan:
    is_wanted = verdict.record.phase is Phase.COMPLETED or verdict.reason in ("Resized", "Suspended")
    kind = NORMAL if is_wanted else WARNING
    event = Record(type=kind, reason=verdict.reason, message=verdict.message)
    return Plan(actions=(event,), status=judged_status(scene.job, verdict, scene.wanted, scene.now))


def _after_the_end(scene: Scene) -> Plan:
    """Who still runs is stopped: others wait for what they hold. Who has ended is kept or cleaned."""
    job, observed = scene.job, scene.observed
    cleans = {
        CleanPolicy.ALWAYS: True,
        CleanPolicy.NEVER: False,
        CleanPolicy.ON_FAILURE: scene.record.phase is Phase.FAILED,
        CleanPolicy.ON_COMPLETION: scene.record.phase is Phase.COMPLETED,
    }[job.clean_policy]
    actions = _deletions([task for task in scene.tasks if cleans or not task.has_ended])
    if cleans:
        actions += [DeleteService(name=_name(each), uid=_uid(each)) for each in _staying(observed.services)]
    actions += _without_pod_group(observed)
    requeue = None
    if job.ttl_s is not None and scene.record.completed_at is not None:
        requeue = scene.record.completed_at + job.ttl_s - scene.now
        if requeue <= 0:
            actions, requeue = [DeleteJob()], None
    return Plan(actions=tuple(actions), status=ended_status(job, scene.tasks), requeue_after_s=requeue)


def _suspended(scene: Scene) -> Plan:
    record = scene.record
    if record.phase is not Phase.SUSPENDED:
        attempt = record.attempt + 1 if scene.tasks else record.attempt
        suspended = replace(record, phase=Phase.SUSPENDED, attempt=attempt, started_at=None, restart_at=None)
        return _judged(scene, Verdict(record=suspended, reason="Suspended", message="spec.suspend is true"))
    actions = _deletions(scene.tasks) + _without_pod_group(scene.observed)
    return Plan(actions=tuple(actions), status=running_status(scene.job, record, {}, scene.now))


def _at_work(scene: Scene) -> Plan:
    job = scene.job
    leaving = [task for task in scene.tasks if task.is_leaving]
    if long := memberships.too_long(job, scene.wanted):
        job = replace(job, cautions=(*job.cautions, long))
    status = running_status(job, scene.record, scene.wanted, scene.now, leaving)
    actions: list[Action] = []
    if job.generation != job.status.get("observedGeneration") or not knows_cautions(job):
        actions += [Record(type=WARNING, reason=each.reason, message=each.message) for each in job.cautions]
    actions += _pod_group(scene)
    actions += _services(scene)
    actions += _config_map(scene)
    actions += _pods(scene)
    actions += _tell(scene)
    if job.is_elastic and scene.options.etcd_servers and scene.observed.elastic_np != _np(job):
        actions.append(SetElasticNp(key=elastic_np_key(job.namespace, job.name), value=_np(job)))
    return Plan(actions=tuple(actions), status=status, requeue_after_s=_next_look(scene))


def _next_look(scene: Scene) -> float | None:
    """Time itself brings these about; everything else is heard of."""
    moments = []
    if scene.record.restart_at is not None and scene.record.restart_at > scene.now:
        moments.append(scene.record.restart_at - scene.now)
    if scene.job.active_deadline_s is not None and scene.record.started_at is not None:
        moments.append(max(scene.record.started_at + scene.job.active_deadline_s - scene.now, 0.0))
    return min(moments, default=None)


def _has_ports(job: PaddleJob) -> bool:
    text = job.annotations.get(ANNOTATION_HOST_PORT, "")
    return text.isascii() and text.isdigit() and 0 < int(text) <= 65536 - PORTS_PER_TASK


def _with_ports(scene: Scene) -> Plan:
    """Nothing else is done before the ports are written down; the status is left for the look that follows."""
    job = scene.job
    port = network.choose_host_port(job.uid, scene.options, scene.observed.taken_ports)
    if port is not None:
        given = AnnotateJob(annotations={ANNOTATION_HOST_PORT: str(port)})
        return Plan(actions=(given,), status=job.status)
    low, high = scene.options.port_range
    message = f"every block of {PORTS_PER_TASK} ports between {low} and {high} is held by a job; it waits for one"
    event = Record(type=WARNING, reason="NoHostPorts", message=message)
    status = running_status(job, scene.record, scene.wanted, scene.now)
    return Plan(actions=(event,), status=status, requeue_after_s=_NO_PORTS_LOOK_AGAIN_S)


def _pod_group(scene: Scene) -> list[Action]:
    if not gangs.is_gang(scene.job, scene.options):
        return []
    wanted, found = gangs.pod_group_of(scene.job), scene.observed.pod_group
    by_size = scene.job.is_elastic and scene.job.scheduling.min_available is None
    if by_size and scene.record.started_at is not None:
        wanted = gangs.without_raise(wanted, found)
    return [PutPodGroup(body=wanted)] if found is None or gangs.differs(wanted, found) else []


def _without_pod_group(observed: Observed) -> list[Action]:
    """A gang that is over asks nothing of its queue any more."""
    group = observed.pod_group
    return [DeletePodGroup(name=_name(group), uid=_uid(group))] if group is not None and _staying([group]) else []


def _services(scene: Scene) -> list[Action]:
    job = scene.job
    if job.intranet is not Intranet.SERVICE:
        return []
    found = {_name(each) for each in scene.observed.services}
    places = {name: role.name for role, _, name in job.places()}
    surplus = [each for each in _staying(scene.observed.services) if _name(each) not in places]
    return [
        *(DeleteService(name=_name(each), uid=_uid(each)) for each in surplus),
        *(
            CreateService(body=network.service_of(job, role, name))
            for name, role in places.items()
            if name not in found
        ),
    ]


def _config_map(scene: Scene) -> list[Action]:
    job, found, attempt = scene.job, scene.observed.config_map, scene.record.attempt
    if job.is_elastic:
        wanted = memberships.elastic_config_map(job, list(scene.wanted.values()), attempt, found)
    else:
        hosts = memberships.hosts_of(job, scene.wanted)
        if hosts is None or not job.total:
            return []
        wanted = memberships.fixed_config_map(job, hosts, attempt, scene.wanted, found)
    return [PutConfigMap(body=wanted)] if memberships.needs_writing(wanted, found) else []


def _pods(scene: Scene) -> list[Action]:
    job, record = scene.job, scene.record
    replaced = [task for task in scene.wanted.values() if task.has_ended and task.uid in record.known]
    surplus = [task for task in scene.tasks if task.name not in scene.wanted]
    actions = _deletions([*surplus, *replaced])
    waits = record.restart_at is not None and scene.now < record.restart_at
    closed = gangs.is_gang(job, scene.options) and not gangs.is_open(scene.observed.pod_group)
    earlier = any(task.attempt < record.attempt for task in scene.tasks)
    if waits or closed or earlier:
        return actions
    taken = {*scene.wanted, *(task.name for task in scene.tasks)}
    created = [
        CreatePod(body=pod_of(job, role, index, record.attempt, scene.options))
        for role, index, name in job.places()
        if name not in taken
    ]
    if created:
        names = f"{created[0].body['metadata']['name']}" + (f" and {len(created) - 1} more" if created[1:] else "")
        actions += [*created, Record(type=NORMAL, reason="Created", message=f"created the pod {names}")]
    return actions


def _tell(scene: Scene) -> list[Action]:
    """A kubelet that has found the ConfigMap wanting looks again at once when the pod changes; so does one that keeps
    an older membership mounted."""
    found = scene.observed.config_map
    if found is None or memberships.attempt_of(found) != scene.record.attempt:
        return []
    members = (found["metadata"].get("annotations") or {}).get(ANNOTATION_MEMBERS) or ""
    data = found.get("data") or {}
    actions: list[Action] = []
    for task in scene.wanted.values():
        if scene.job.is_elastic:
            concerned = bool(task.node) and not task.has_ended
        else:
            concerned = task.is_held and start_key(task.role, scene.record.attempt) in data
        if concerned and not task.is_leaving and task.told != members:
            actions.append(PatchPod(name=task.name, uid=task.uid, annotations={ANNOTATION_MEMBERS: members}))
    return actions


def _np(job: PaddleJob) -> str:
    return str(job.roles[WORKER].replicas)


def _deletions(tasks: Sequence[Task]) -> list[Action]:
    return [DeletePod(name=task.name, uid=task.uid) for task in tasks if not task.is_leaving]


def _staying(objects: Sequence[Json]) -> list[Json]:
    return [each for each in objects if not each["metadata"].get("deletionTimestamp")]


def _name(object: Json) -> str:
    return str(object["metadata"]["name"])


def _uid(object: Json) -> str:
    return str(object["metadata"]["uid"])
