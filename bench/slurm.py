"""Slurm on one node, private to the bench: own key, own sockets, own directory, loopback only, no systemd.

The configuration is the plainest that runs jobs and spares Slurm work: no accounting database, no cgroups, no task
binding, no output file for each job, and the best scheduling parameters found among a few tried. Ends of jobs are read
from the job-completion log that slurmctld writes as each one ends, so waiting costs Slurm nothing, and the time of its
last write is the time of the last end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import Missing, free_ports, require_alive, resident_bytes, running, wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
READY_TIMEOUT_S = 30.0

CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldDebug=error
SlurmdDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MaxJobCount=20000
MaxArraySize=20000
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/ended
{extra}
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} State=UNKNOWN
PartitionName=bench Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""

FASTEST = "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_max_job_start=0,bf_interval=1"
"""The best settings found among a few tried. By default a freed CPU waits up to three seconds for the next job."""


@dataclass(frozen=True, slots=True)
class Slurm:
    folder: Path
    environment: dict[str, str]
    ready_s: float
    ready_rss_bytes: int

    def submit_held(self, count: int, submitters: int) -> float:
        """Seconds for ``count`` calls of sbatch whose jobs wait and never start."""
        began = time.perf_counter()
        self._submit_each(count, submitters, "--hold")
        return time.perf_counter() - began

    def run_one_by_one(self, count: int, submitters: int) -> float:
        """Seconds from the first sbatch to the last end: ``count`` calls of sbatch, several at a time."""
        return self._timed(lambda: self._submit_each(count, submitters), count)

    def run_array(self, count: int) -> float:
        """The same jobs as one array: a single sbatch, which a user with identical jobs would prefer."""
        argv = ["sbatch", "--quiet", "--output=/dev/null", "--ntasks=1", f"--array=1-{count}", "--wrap=true"]
        return self._timed(
            lambda: subprocess.run(argv, env=self.environment, check=True, stdin=subprocess.DEVNULL), count
        )

    def _submit_each(self, count: int, submitters: int, *options: str) -> None:
        argv = ["sbatch", "--quiet", "--output=/dev/null", "--ntasks=1", *options, "--wrap=true"]

        def submit(_: int) -> None:
            subprocess.run(argv, env=self.environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        with ThreadPoolExecutor(submitters) as pool:
            list(pool.map(submit, range(count)))

    def _timed(self, submit: Callable[[], object], count: int) -> float:
        before = self._ended()
        started = time.time()  # wall clock: it is compared with a file's time of change
        submit()
        wait_until(
            lambda: self._ended() - before >= count, what=f"{count} Slurm jobs", timeout_s=60 + count * 2, every_s=0.25
        )
        return (self.folder / "ended").stat().st_mtime - started

    def _ended(self) -> int:
        log = self.folder / "ended"
        return log.read_bytes().count(b"\n") if log.exists() else 0


@contextmanager
def private_slurm(slots: int) -> Iterator[Slurm]:
    for program in PROGRAMS:
        if shutil.which(program, path=SYSTEM_PATH) is None:
            raise Missing(f"{program} is not installed (Debian: apt-get install slurm-wlm munge)")
    with tempfile.TemporaryDirectory(prefix="bench-slurm-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # munged refuses a socket that other users could not reach
        _write_files(folder, slots, FASTEST)
        yield _start(folder, stack)


def _start(folder: Path, stack: ExitStack) -> Slurm:
    environment = {**os.environ, "PATH": SYSTEM_PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    began = time.perf_counter()
    munge = folder / "munge"
    log = folder / "munged.log"
    keeper = stack.enter_context(
        running(
            [
                shutil.which("munged", path=SYSTEM_PATH) or "munged",
                "--foreground",
                f"--key-file={munge}/key",
                f"--socket={munge}/socket",
                f"--pid-file={munge}/pid",
                f"--log-file={munge}/log",
                f"--seed-file={munge}/seed",
                "--num-threads=10",  # what Slurm's own warning asks for
            ],
            log,
        )
    )
    wait_until(lambda: _up(munge / "socket", keeper, log), what="munged", timeout_s=READY_TIMEOUT_S)
    daemons = [keeper]
    for program in ("slurmctld", "slurmd"):
        log = folder / f"{program}.log"
        path = shutil.which(program, path=SYSTEM_PATH) or program
        daemons.append(stack.enter_context(running([path, "-D"], log, environment)))
    wait_until(lambda: _idle(environment), what="the Slurm node to be idle", timeout_s=READY_TIMEOUT_S, every_s=0.05)
    ready_s = time.perf_counter() - began
    rss = sum(resident_bytes(daemon.pid) for daemon in daemons)
    return Slurm(folder, environment, ready_s, rss)


def _write_files(folder: Path, slots: int, extra: str) -> None:
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge" / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    controller_port, node_port = free_ports(2)
    config = CONFIG.format(
        host=socket.gethostname().partition(".")[0],
        controller_port=controller_port,
        node_port=node_port,
        user=Path("/proc/self").owner(),
        folder=folder,
        slots=slots,
        extra=extra,
    )
    (folder / "slurm.conf").write_text(config)


def _up(path: Path, process: subprocess.Popen[bytes], log: Path) -> bool:
    require_alive(process, log)
    return path.exists()


def _idle(environment: dict[str, str]) -> bool:
    answer = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() == "idle"
