"""Every example is exported to both engines, but for those that use what an engine does not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paddleflow.documents import dump, load
from paddleflow.domain.errors import Invalid
from paddleflow.exports.airflow import airflow_dag
from paddleflow.exports.argo import argo_workflow
from paddleflow.planning.plan import Plan
from paddleflow.planning.source import Overrides
from tests.exports.pipelines import plan_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pipelines"
PATHS = sorted(EXAMPLES.glob("*/run.yaml"))
REFUSED = {
    ("functions", "argo"): "Argo does not number",
    ("loop", "argo"): "Argo does not number",
    ("multiple-fs", "airflow"): "Airflow mounts nothing",
}


def to_argo(plan: Plan) -> None:
    manifest = argo_workflow(plan)
    assert load(dump(manifest)).value == manifest


def to_airflow(plan: Plan) -> None:
    compile(airflow_dag(plan), "exported.py", "exec")


@pytest.mark.parametrize(("engine", "export"), [("argo", to_argo), ("airflow", to_airflow)])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.parent.name)
def test_examples(path: Path, engine: str, export: Callable[[Plan], None]) -> None:
    plan = plan_of(path.read_text(), Overrides(docker_env="python:3.12"))
    problem = REFUSED.get((path.parent.name, engine))
    if problem is None:
        export(plan)
    else:
        with pytest.raises(Invalid, match=problem):
            export(plan)


def test_there_are_examples() -> None:
    assert len(PATHS) >= 10
