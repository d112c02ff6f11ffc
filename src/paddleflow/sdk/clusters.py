"""Clusters, and what is left on them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.session import Session, present, require, segment


@dataclass(frozen=True)
class ClusterInfo:
    clusterid: str
    clustername: str
    description: str
    endpoint: str
    source: str
    clustertype: str
    version: str
    status: str
    credential: str = field(repr=False)
    """Decoded. Kept out of ``repr`` so that it does not land in a log."""
    setting: str
    namespacelist: list[str]
    createtime: str
    updatetime: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> ClusterInfo:
        return cls(
            clusterid=data.get("id", ""),
            clustername=data["clusterName"],
            description=data.get("description", ""),
            endpoint=data.get("endpoint", ""),
            source=data.get("source", ""),
            clustertype=data.get("clusterType", ""),
            version=data.get("version", ""),
            status=data.get("status", ""),
            credential=_decoded(data.get("credential") or ""),
            setting=data.get("setting", ""),
            namespacelist=data.get("namespaceList") or [],
            createtime=data.get("createTime", ""),
            updatetime=data.get("updateTime", ""),
        )


class ClusterCalls(Session):
    """What the client can do with clusters."""

    def create_cluster(
        self,
        clustername: str,
        endpoint: str,
        clustertype: str,
        credential: bytes | None = None,
        description: str | None = None,
        source: str | None = None,
        setting: str | None = None,
        status: str | None = None,
        namespacelist: Sequence[str] | None = None,
        version: str | None = None,
    ) -> tuple[bool, str]:
        body = present(
            clusterName=require(clustername, "InvalidClusterName", "clustername"),
            endpoint=require(endpoint, "InvalidEndpoint", "endpoint"),
            clusterType=require(clustertype, "InvalidClusterType", "clustertype"),
            credential=_encoded(credential),
            description=description,
            source=source,
            setting=setting,
            status=status,
            namespaceList=namespacelist,
            version=version,
        )
        return True, str(self._create("/cluster", body)["id"])

    def update_cluster(
        self,
        clustername: str,
        endpoint: str | None = None,
        credential: bytes | None = None,
        clustertype: str | None = None,
        description: str | None = None,
        source: str | None = None,
        setting: str | None = None,
        status: str | None = None,
        namespacelist: Sequence[str] | None = None,
        version: str | None = None,
    ) -> tuple[bool, str]:
        body = present(
            endpoint=endpoint,
            credential=_encoded(credential),
            clusterType=clustertype,
            description=description,
            source=source,
            setting=setting,
            status=status,
            namespaceList=namespacelist,
            version=version,
        )
        return True, str(self._put(_cluster_path(clustername), body)["id"])

    def list_cluster(
        self,
        maxkeys: int = 100,
        marker: str | None = None,
        clustername: str | None = None,
        clusterstatus: str | None = None,
    ) -> tuple[bool, list[ClusterInfo], str | None]:
        params = {
            "maxKeys": maxkeys,
            "marker": marker,
            "clusterNames": clustername,
            "clusterStatus": clusterstatus,
        }
        data = self._get("/cluster", params)
        return True, [ClusterInfo.from_wire(cluster) for cluster in data["clusterList"]], data.get("nextMarker")

    def show_cluster(self, clustername: str) -> tuple[bool, ClusterInfo]:
        return True, ClusterInfo.from_wire(self._get(_cluster_path(clustername)))

    def delete_cluster(self, clustername: str) -> tuple[bool, str]:
        self._delete(_cluster_path(clustername))
        return True, clustername

    def list_cluster_resource(self, clustername: str | None = None) -> tuple[bool, dict[str, Any]]:
        return True, dict(self._get("/cluster/resource", {"clusterNames": clustername}))

    def list_cluster_resource_v2(
        self,
        page_no: int = 0,
        page_size: int = 1000,
        clusternames: Sequence[str] | None = None,
        queuenaame: str | None = None,
        labels: str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``queuenaame`` is spelt as existing scripts pass it."""
        body = present(
            pageNo=page_no, pageSize=page_size, clusterNames=clusternames, queueName=queuenaame, labels=labels
        )
        # A POST that only reads: repeating it is as safe as a GET.
        return True, dict(self._call("POST", "/cluster/resource", body=body, repeatable=True))


def _cluster_path(clustername: str) -> str:
    return f"/cluster/{segment(require(clustername, 'InvalidClusterName', 'clustername'))}"


def _encoded(credential: bytes | str | None) -> str | None:
    if not credential:
        return None
    raw = credential.encode() if isinstance(credential, str) else credential
    return base64.b64encode(raw).decode()


def _decoded(credential: str) -> str:
    try:
        return base64.b64decode(credential, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        # The server may show a placeholder instead of the secret; it is shown as it came.
        return credential
