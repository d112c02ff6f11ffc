"""The import path of inference for a DAG."""

from __future__ import annotations

from paddleflow.pipeline.dsl.inferer.component_inferer import ComponentInferer


class DAGInferer(ComponentInferer):
    """Settles everything inside the DAG as well."""
