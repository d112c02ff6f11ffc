"""No-op steps in other engines, timed: ``python pipeline_peers.py ENGINE SHAPE COUNT`` prints a JSON object.

It runs with the interpreter of the peers and knows nothing of this package. Only the engine's work on the steps is
timed: imports, databases and servers are made ready before the clock starts. SHAPE is ``chain`` (one step after the
other) or ``fan`` (all at once). In Luigi and Airflow a step is a process ``true``; in Prefect and Dagster, which run in
this process, it is a function that does nothing.
"""

# ruff: noqa: PLC0415  one engine is imported, the one that is asked for
from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def luigi_steps(shape: str, count: int) -> float:
    """With the scheduler inside the process, which remembers nothing."""
    return _luigi(shape, count, local_scheduler=True)


def luigid_steps(shape: str, count: int) -> float:
    """With the scheduler that is a server of its own, over loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [str(Path(sys.executable).with_name("luigid")), "--address", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryDirectory() as state:
        server = subprocess.Popen([*argv, "--state-path", f"{state}/state"], stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            return _luigi(shape, count, scheduler_host="127.0.0.1", scheduler_port=port)
        finally:
            server.terminate()
            server.wait()


def _luigi(shape: str, count: int, **scheduler: object) -> float:
    import luigi
    from luigi.contrib.external_program import ExternalProgramTask

    with tempfile.TemporaryDirectory() as folder:

        class NoOp(ExternalProgramTask):
            number = luigi.IntParameter()

            def requires(self) -> list[NoOp]:
                return [NoOp(number=self.number - 1)] if shape == "chain" and self.number > 0 else []

            def program_args(self) -> list[str]:
                return ["true"]

            def output(self) -> luigi.LocalTarget:
                return luigi.LocalTarget(f"{folder}/{self.number}")

            def run(self) -> None:
                super().run()
                Path(self.output().path).touch()

        numbers = range(count) if shape == "fan" else [count - 1]
        # One worker runs steps in its own process, which for no-ops is faster than several that fork for each.
        began = time.perf_counter()
        done = luigi.build([NoOp(number=each) for each in numbers], workers=1, log_level="ERROR", **scheduler)
        seconds = time.perf_counter() - began
        made = len(list(Path(folder).iterdir()))
    if not done or made != count:
        raise SystemExit(f"{made} of {count} steps")
    return seconds


def airflow_steps(shape: str, count: int) -> float:
    """In the test mode of a DAG: every step goes through the database and the task interface, but one after the other
    and without the scheduler's waiting."""
    home = tempfile.mkdtemp(prefix="bench-airflow-")
    os.environ |= {
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__DAGS_FOLDER": home,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    program = Path(home) / "noop.py"
    chain = "    if steps[1:]: [a >> b for a, b in zip(steps, steps[1:])]\n" if shape == "chain" else ""
    program.write_text(
        "import json, time\n"
        "from airflow.providers.standard.operators.bash import BashOperator\n"
        "from airflow.sdk import DAG\n"
        "with DAG(dag_id='warm', schedule=None) as warm:\n"
        "    BashOperator(task_id='one', bash_command='true')\n"
        "with DAG(dag_id='noop', schedule=None) as dag:\n"
        f"    steps = [BashOperator(task_id=f's{{n}}', bash_command='true') for n in range({count})]\n"
        f"{chain}"
        "if __name__ == '__main__':\n"
        "    warm.test()\n"
        "    began = time.perf_counter()\n"
        "    run = dag.test()\n"
        "    assert str(run.state) == 'success', run.state\n"
        "    print(json.dumps(time.perf_counter() - began))\n"
    )
    told = subprocess.run([sys.executable, str(program)], check=True, capture_output=True, text=True)
    return float(json.loads(told.stdout.strip().splitlines()[-1]))


def prefect_steps(shape: str, count: int) -> float:
    os.environ |= {"PREFECT_HOME": tempfile.mkdtemp(prefix="bench-prefect-"), "PREFECT_LOGGING_LEVEL": "ERROR"}
    os.environ |= {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "120"
    from prefect import flow, task

    @task
    def noop(before: object = None) -> None:
        return None

    @flow
    def warm() -> None:
        noop()

    @flow
    def steps() -> float:
        began = time.perf_counter()
        if shape == "chain":
            done = None
            for _ in range(count):
                done = noop(done)
        else:
            for future in noop.map(range(count)):
                future.result()
        return time.perf_counter() - began

    warm()
    return steps()


def dagster_steps(shape: str, count: int) -> float:
    os.environ["DAGSTER_HOME"] = tempfile.mkdtemp(prefix="bench-dagster-")
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "yes"
    import dagster

    @dagster.op(out=dagster.Out(dagster.Nothing), ins={"before": dagster.In(dagster.Nothing)})
    def noop() -> None:
        return None

    @dagster.job(logger_defs={})
    def steps() -> None:
        done = None
        for number in range(count):
            this = noop.alias(f"s{number}")
            done_now = this(done) if done is not None and shape == "chain" else this()
            done = done_now

    @dagster.job(logger_defs={})
    def warm() -> None:
        noop()

    logging.disable(logging.CRITICAL)
    warm.execute_in_process()
    began = time.perf_counter()
    assert steps.execute_in_process().success
    return time.perf_counter() - began


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


ENGINES: dict[str, tuple[str, Callable[[str, int], float]]] = {
    "luigi": ("luigi", luigi_steps),
    "luigid": ("luigi", luigid_steps),
    "airflow": ("apache-airflow", airflow_steps),
    "prefect": ("prefect", prefect_steps),
    "dagster": ("dagster", dagster_steps),
}


if __name__ == "__main__":
    package, measure = ENGINES[sys.argv[1]]
    told = {"version": version(package), "seconds": measure(sys.argv[2], int(sys.argv[3]))}
    print(json.dumps(told))
