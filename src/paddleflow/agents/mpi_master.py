"""``mpi_master -- COMMAND``: becomes the command, with an Open MPI that knows the job's workers and how to reach them.

Names of workers and the way to them go into files and variables that ``mpirun`` reads by itself: both Open MPI 4 (orte)
and 5 (PRRTE). What the user has set already is left alone.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

from paddleflow.agents.programs import Failed, run, words_after


def hostfile(workers: list[dict[str, str | int]]) -> str:
    return "".join(f"{worker['name']} slots={worker['slots']}\n" for worker in workers)


def main(arguments: list[str]) -> int:
    _, command = words_after(arguments, "mpi_master -- COMMAND")
    workers = json.loads(os.environ["PF_MPI_WORKERS"])
    with tempfile.NamedTemporaryFile("w", prefix="mpi-hosts-", delete=False) as file:
        file.write(hostfile(workers))
    agent = f"{sys.executable} -m paddleflow.agents.remote_exec run"
    for name, value in {
        "OMPI_MCA_orte_default_hostfile": file.name,
        "OMPI_MCA_plm_rsh_agent": agent,
        "PRTE_MCA_prte_default_hostfile": file.name,
        "PRTE_MCA_plm_ssh_agent": agent,
    }.items():
        os.environ.setdefault(name, value)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the task's own command line, and no shell in between
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}") from error


if __name__ == "__main__":
    run(main)
