"""What every task gets, whatever its framework: command line, working directory, mounts, limits, PF_* environment."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from paddleflow.domain.jobs import BindMount, FsRef, Job, Member, Placement, TaskLaunch
from paddleflow.domain.resources import NOTHING, Resources

_SHELL_PREFIX = re.compile(r"^\s*(bash|sh)\s+-c\s+")


def shell_argv(command: str) -> tuple[str, str, str]:
    """The shell that runs the user's command. A leading ``sh -c`` or ``bash -c`` is not run inside another shell, but
    whoever asks for bash gets bash: on many systems ``sh`` is a smaller one."""
    found = _SHELL_PREFIX.match(command)
    if not found:
        return ("sh", "-c", command)
    rest = command[found.end() :].strip()
    quote = rest[:1]
    if len(rest) >= 2 and quote in "'\"" and rest.endswith(quote) and quote not in rest[1:-1]:
        return (found.group(1), "-c", rest[1:-1])
    return (found.group(1), "-c", rest) if quote not in ("'", '"') else ("sh", "-c", command)


def argv_of(member: Member) -> tuple[str, ...]:
    """A shell runs the command line; ``args`` reach it as positional arguments and are never spliced into text."""
    if not member.command:
        return member.args
    shell, option, line = shell_argv(member.command)
    if member.args:
        return (shell, option, f'{line} "$@"', shell, *member.args)
    return (shell, option, line)


def work_dir_of(member: Member) -> str:
    """The user's PF_WORK_DIR, else the first mount, unless PF_MOUNT_PATH says NONE; empty: a private directory."""
    asked = member.env.get("PF_WORK_DIR", "")
    if asked:
        return asked
    if not member.mounts or member.env.get("PF_MOUNT_PATH", "").upper() == "NONE":
        return ""
    return member.mounts[0].mount_path


def bind_mount(fs: FsRef) -> BindMount:
    source = posixpath.join(fs.host_path, fs.sub_path) if fs.sub_path else fs.host_path
    return BindMount(source=source, target=fs.mount_path, read_only=fs.read_only)


def limits_of(member: Member) -> Resources:
    """Limits are the requests, unless PF_JOB_LIMIT_FLAVOUR chose others or none."""
    if member.env.get("PF_JOB_LIMIT_FLAVOUR", "").upper() == "NONE":
        return NOTHING
    return member.flavour.resources if member.limit is None else member.limit.resources


def environment_of(job: Job, member: Member, placement: Placement, given: Mapping[str, str]) -> dict[str, str]:
    """What we give, overlaid with the user's own; an empty value takes one of ours away.

    Frameworks look at whether a variable exists, so leaving one out must be possible. Which task this is, nobody may
    change: the platform's own programs inside the task rely on it.
    """
    ours = {
        "PF_JOB_NAME": job.name,
        "PF_JOB_QUEUE_NAME": job.queue,
        "PF_JOB_PRIORITY": job.priority.name,
        "PF_USER_NAME": job.owner,
        **given,
    }
    fixed = {name: value for name, value in given.items() if name.startswith("PF_TASK_")}
    return {
        **{name: value for name, value in ours.items() if member.env.get(name) != ""},
        **{name: value for name, value in member.env.items() if value != "" or name not in ours},
        **fixed,
        "PF_JOB_ID": job.id,
        "PF_TASK_ID": placement.task_id,
        "PF_TASK_ROLE": placement.role,
        "PF_TASK_INDEX": str(placement.index),
    }


def launch_of(
    job: Job, member: Member, placement: Placement, env: Mapping[str, str], argv: tuple[str, ...] = ()
) -> TaskLaunch:
    """The task at this placement. ``argv`` replaces the member's own command line where a framework runs it inside
    another program."""
    work_dir = work_dir_of(member)
    environment = environment_of(job, member, placement, env)
    if work_dir:
        environment["PF_WORK_DIR"] = work_dir
    return TaskLaunch(
        task_id=placement.task_id,
        job_id=job.id,
        node=placement.node,
        argv=argv or argv_of(member),
        env=environment,
        work_dir=work_dir,
        mounts=tuple(bind_mount(fs) for fs in member.mounts),
        limits=limits_of(member),
        gpus=placement.gpus,
    )
