"""Flavours on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, Quantity, WireRequest, local_time
from paddleflow.domain.commands import CreateFlavour, UpdateFlavour
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import FlavourName


class CreateFlavourRequest(WireRequest):
    name: str = ""
    clusterName: str = ""
    cpu: Quantity = ""
    mem: Quantity = ""
    scalarResources: dict[str, Quantity] = Field(default_factory=dict)

    def to_command(self) -> CreateFlavour:
        return CreateFlavour(
            name=self.name, cpu=self.cpu, memory=self.mem, scalars=self.scalarResources, cluster=self.clusterName
        )


class UpdateFlavourRequest(WireRequest):
    cpu: Quantity | None = None
    mem: Quantity | None = None
    scalarResources: dict[str, Quantity] = Field(default_factory=dict)

    def to_command(self, name: str) -> UpdateFlavour:
        # An empty amount was always "leave it", as no flavour can be without CPU or memory.
        return UpdateFlavour(
            name=FlavourName(name), cpu=self.cpu or None, memory=self.mem or None, scalars=self.scalarResources
        )


class FlavourAnswer(TypedDict):
    id: str
    name: str
    cpu: str
    mem: str
    scalarResources: NotRequired[dict[str, str]]
    createTime: str
    updateTime: str


class FlavourListAnswer(PageAnswer):
    flavourList: list[FlavourAnswer]


class NameAnswer(TypedDict):
    name: str


def flavour_answer(flavour: Flavour) -> FlavourAnswer:
    answer = FlavourAnswer(
        id=flavour.id,
        name=flavour.name,
        cpu=flavour.cpu,
        mem=flavour.memory,
        createTime=local_time(flavour.created_at),
        updateTime=local_time(flavour.updated_at),
    )
    if flavour.scalars:
        answer["scalarResources"] = dict(flavour.scalars)
    return answer
