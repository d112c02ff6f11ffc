"""Flavours: named amounts of resources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.sdk.session import Session, present, require, segment


@dataclass(frozen=True)
class FlavourInfo:
    name: str
    cpu: str
    mem: str
    scalar_resources: str = ""
    """JSON text; empty where there are none."""
    cluster_name: str = ""
    createtime: str = ""
    updatetime: str = ""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> FlavourInfo:
        scalars = data.get("scalarResources")
        return cls(
            name=data["name"],
            cpu=data.get("cpu", ""),
            mem=data.get("mem", ""),
            scalar_resources=json.dumps(scalars) if scalars else "",
            cluster_name=data.get("clusterName", ""),
            createtime=data.get("createTime", ""),
            updatetime=data.get("updateTime", ""),
        )


class FlavourCalls(Session):
    """What the client can do with flavours."""

    def list_flavour(
        self, maxsize: int = 100, marker: str | None = None, clustername: str = "", key: str = ""
    ) -> tuple[bool, list[FlavourInfo], str | None]:
        params = {"maxKeys": maxsize, "marker": marker, "clusterName": clustername, "name": key}
        data = self._get("/flavour", params)
        return True, [FlavourInfo.from_wire(flavour) for flavour in data["flavourList"]], data.get("nextMarker")

    def show_flavour(self, name: str) -> tuple[bool, FlavourInfo]:
        return True, FlavourInfo.from_wire(self._get(_flavour_path(name)))

    def add_flavour(
        self,
        name: str,
        cpu: str,
        memory: str,
        scalar_resources: Mapping[str, str] | None = None,
        cluster_name: str | None = None,
    ) -> tuple[bool, None]:
        body = present(
            name=require(name, "InvalidFlavourName", "name"),
            cpu=require(cpu, "InvalidFlavourCPU", "cpu"),
            mem=require(memory, "InvalidFlavourMemory", "memory"),
            scalarResources=scalar_resources,
            clusterName=cluster_name,
        )
        self._create("/flavour", body)
        return True, None

    def update_flavour(
        self,
        name: str,
        cpu: str | None = None,
        memory: str | None = None,
        scalar_resources: Mapping[str, str] | None = None,
        cluster_name: str | None = None,
    ) -> tuple[bool, str]:
        body = present(cpu=cpu, mem=memory, scalarResources=scalar_resources or None, clusterName=cluster_name)
        data = self._put(_flavour_path(name), body)
        return True, str(data["name"])

    def del_flavour(self, name: str) -> tuple[bool, None]:
        self._delete(_flavour_path(name))
        return True, None


def _flavour_path(name: str) -> str:
    return f"/flavour/{segment(require(name, 'InvalidFlavourName', 'name'))}"
