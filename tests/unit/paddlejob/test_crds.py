"""The definition of the resource, and that what is shipped is what the code says."""

from __future__ import annotations

from typing import Any

from deploy.generate_crds import documents
from paddleflow.paddlejob import crd
from tests.unit.paddlejob.makers import Cluster, manifest


def test_the_shipped_definitions_are_up_to_date() -> None:
    assert {path: path.read_text() for path in documents()} == documents(), "run python deploy/generate_crds.py"


def version(definition: dict[str, Any]) -> Any:
    (only,) = definition["spec"]["versions"]
    return only


def test_names_and_columns() -> None:
    definition = crd()
    assert definition["metadata"]["name"] == "paddlejobs.batch.paddlepaddle.org"
    assert definition["spec"]["names"]["shortNames"] == ["pdj"]
    columns = version(definition)["additionalPrinterColumns"]
    assert [(each["name"], each["jsonPath"]) for each in columns] == [
        ("Status", ".status.phase"),
        ("Mode", ".status.mode"),
        ("Age", ".metadata.creationTimestamp"),
    ]
    assert version(definition)["subresources"]["scale"]["specReplicasPath"] == ".spec.worker.replicas"


def nodes(node: Any) -> Any:
    if isinstance(node, dict):
        yield node
        for each in node.values():
            yield from nodes(each)
    if isinstance(node, list):
        for each in node:
            yield from nodes(each)


def test_the_definition_for_old_clusters_has_nothing_they_do_not_know() -> None:
    old = crd("v1beta1")
    assert old["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert not [key for node in nodes(old) for key in node if key.startswith("x-kubernetes") or key == "default"]
    new = version(crd())["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert set(old["spec"]["validation"]["openAPIV3Schema"]["properties"]["spec"]["properties"]) == set(new)
    assert old["spec"]["additionalPrinterColumns"][0]["JSONPath"] == ".status.phase"


def test_the_schema_knows_every_field_of_a_status() -> None:
    """What it does not know is not kept by the API server, and the status would be written again for ever."""
    cluster = Cluster(manifest(ps=1, worker=2, cleanPodPolicy="OnFailed"))
    cluster.start()
    cluster.end("wd-worker-0", 1)
    cluster.settle()
    cluster.now += 1000
    cluster.start()
    known = version(crd())["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert set(cluster.status) <= set(known)
    condition = known["conditions"]["items"]["properties"]
    assert all(set(each) <= set(condition) for each in cluster.status["conditions"])
