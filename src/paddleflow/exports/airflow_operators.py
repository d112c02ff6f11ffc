"""The operators of an exported DAG file, as the text that is put into it: Airflow is not installed where it is made.

Nothing in a command, an environment or an item is a template of Airflow: the operators have no template fields.
"""

from __future__ import annotations

IMPORTS = """\
import hashlib
import json
import math
import operator
import os
import re
import shutil
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, BaseOperator, TaskGroup
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
"""

OPERATORS = '''\
def shared_directory(context: Any) -> str:
    directory: str = context["params"]["artifacts"]
    if not Path(directory).is_absolute():
        raise AirflowFailException(
            "set PADDLEFLOW_ARTIFACTS, or the parameter artifacts of the run, to a directory that all workers share"
        )
    return directory


class Node(BaseOperator):
    """What a step and a condition of a whole group have in common: values, and whether to run."""

    def __init__(
        self,
        *,
        name: str,
        parameters: dict[str, Any] | None = None,
        inputs: dict[str, list[tuple[str, str]]] | None = None,
        condition: Any = None,
        reads: tuple[str, ...] = (),
        gate: str = "",
        item: Any = "",
        **kwargs: Any,
    ) -> None:
        """``inputs``: name of an artifact, and which tasks made it under which name. ``reads``: the inputs whose
        content the condition looks at. ``gate``: the task that knows whether the group around runs. ``item``: of the
        loop; None if the loop has none."""
        super().__init__(**kwargs)
        self.name = name
        self.parameters = parameters or {}
        self.inputs = inputs or {}
        self.condition = condition
        self.reads = reads
        self.gate = gate
        self.item = item

    def system(self, context: Any) -> dict[str, Any]:
        return {
            "PF_RUN_ID": context["run_id"],
            "PF_STEP_NAME": self.name,
            "PF_USER_NAME": context["params"]["user_name"],
            "PF_LOOP_ARGUMENT": self.item,
        }

    def given(self, context: Any) -> dict[str, Any]:
        system = self.system(context)
        return {name: fill(value, system) for name, value in self.parameters.items()}

    def input_paths(self, context: Any) -> dict[str, list[str]]:
        paths: dict[str, list[str]] = {name: [] for name in self.inputs}
        for name, makers in self.inputs.items():
            for task_id, artifact in makers:
                made = context["ti"].xcom_pull(task_ids=[task_id])
                paths[name] += [outputs[artifact] for outputs in made if outputs]
        return paths

    def is_wanted(self, context: Any) -> bool:
        if self.gate and not context["ti"].xcom_pull(task_ids=self.gate):
            self.log.info("the condition of the group around is false")
            return False
        if self.item is None:
            self.log.info("the loop has no items")
            return False
        if self.condition is None:
            return True
        known = {**self.given(context), **self.system(context)}
        if self.reads:
            paths = self.input_paths(context)
            known.update({name: ",".join(text.strip() for text in content(paths[name], 1024)) for name in self.reads})
        holds = self.condition(known)
        self.log.info("the condition is %s", holds)
        return holds


class Step(Node):
    """One step: its command, run by a shell of the worker, in the directory that all workers share."""

    def __init__(
        self, *, where: str, command: str = "", env: dict[str, str] | None = None, outputs: Any = (), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.command = command
        self.env = env or {}
        self.outputs = outputs

    def execute(self, context: Any) -> Any:
        if not self.is_wanted(context):
            if self.trigger_rule == "none_failed":
                raise AirflowSkipException("there is nothing to do")
            return None  # fail_fast allows no trigger rule that goes on after a skipped task, so it counts as done
        system, outputs = self.system(context), self.output_paths(context)
        inputs = {name: ",".join(paths) for name, paths in self.input_paths(context).items()}
        known = {**inputs, **outputs, **self.given(context), **system}
        env = {name: spell(fill(text, known)) for name, text in self.env.items()}
        env.update({name: spell(value) for name, value in system.items()})
        env.update({f"PF_INPUT_ARTIFACT_{name.upper()}": path for name, path in inputs.items()})
        env.update({f"PF_OUTPUT_ARTIFACT_{name.upper()}": path for name, path in outputs.items()})
        self.make_way(outputs)
        self.run(spell(fill(self.command, known)) or "true", env, context)
        return outputs or None

    def output_paths(self, context: Any) -> dict[str, str]:
        if not self.outputs:
            return {}
        seq = max(context["ti"].map_index, 0)
        where = place(self.where, self.name, seq)
        root = f"{shared_directory(context)}/.pipeline/{context['run_id']}/{PIPELINE}"
        return {name: artifact_path(root, self.name, seq, where, name) for name in self.outputs}

    def make_way(self, outputs: dict[str, str]) -> None:
        """An earlier attempt may have left something."""
        for path in outputs.values():
            if Path(path).is_dir() and not Path(path).is_symlink():
                shutil.rmtree(path)
            Path(path).unlink(missing_ok=True)
            Path(path).parent.mkdir(parents=True, exist_ok=True)

    def run(self, command: str, env: dict[str, str], context: Any) -> None:
        work_dir = env.get("PF_WORK_DIR") or None
        if work_dir is None and HAS_FILESYSTEM and env.get("PF_MOUNT_PATH", "").upper() != "NONE":
            work_dir = shared_directory(context)
        around = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW__", "_AIRFLOW"))}
        self.process = SubprocessHook()
        result = self.process.run_command(["sh", "-c", command], env={**around, **env}, cwd=work_dir)
        if result.exit_code != 0:
            raise AirflowException(f"the command ended with {result.exit_code}")

    def on_kill(self) -> None:
        if hasattr(self, "process"):
            self.process.send_sigterm()


class Items(Node):
    """Reads the items of a loop from an artifact; an empty loop is the one item None."""

    def execute(self, context: Any) -> list[Any]:
        if not self.is_wanted(context):
            return [None]
        (paths,) = self.input_paths(context).values()
        return [item for text in content(paths, 1024 * 1024) for item in listed(text)] or [None]


class Gate(Node):
    """Knows whether a group of steps runs."""

    def execute(self, context: Any) -> bool:
        return self.is_wanted(context)


class Outcome(BaseOperator):
    """The last task: it fails if any other has failed, and so does the run."""

    def execute(self, context: Any) -> None:
        states = context["ti"].get_task_states(dag_id=self.dag_id, run_ids=[context["run_id"]])[context["run_id"]]
        failed = sorted(name for name, state in states.items() if state in ("failed", "upstream_failed"))
        if failed:
            raise AirflowFailException(f"these failed: {', '.join(failed)}")
'''
