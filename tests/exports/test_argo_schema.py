"""Exported manifests against the published schema of Argo Workflows, as the models that the package hera makes of it.

The models ignore keys they do not know, so what they give back is compared with what they were given.
"""

from __future__ import annotations

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.exports.argo import argo_workflow
from tests.exports.pipelines import ALL, DYNAMIC, plan_of

models = pytest.importorskip("hera.workflows.models", reason="hera carries the schema of Argo: pip install hera")

EXPORTABLE = {name: text for name, text in ALL.items() if "docker_env" in text and text is not DYNAMIC}


@pytest.mark.parametrize("name", EXPORTABLE)
def test_manifests_fit_the_schema(name: str) -> None:
    manifest = argo_workflow(plan_of(EXPORTABLE[name]))
    understood = models.Workflow.model_validate(manifest)
    assert understood.model_dump(by_alias=True, exclude_none=True) == manifest


def test_the_schema_notices_a_wrong_key() -> None:
    manifest = argo_workflow(plan_of(EXPORTABLE["failing"]))
    manifest["spec"]["paralelism"] = 3  # type: ignore[index]
    understood = models.Workflow.model_validate(manifest)
    assert understood.model_dump(by_alias=True, exclude_none=True) != manifest


def test_what_argo_cannot_number_is_refused() -> None:
    with pytest.raises(Invalid, match="each"):
        argo_workflow(plan_of(DYNAMIC))
