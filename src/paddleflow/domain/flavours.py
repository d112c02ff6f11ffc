"""Flavours: named bundles of resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paddleflow.domain.ids import ClusterName, FlavourName, UserName
from paddleflow.domain.resources import CPU, MEMORY, Resources

CUSTOM = "customFlavour"
"""The reserved name that means: the amounts stand beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    id: str
    name: FlavourName
    cpu: str
    """As the user spelt it: answers repeat the spelling."""
    memory: str
    scalars: Mapping[str, str] = field(default_factory=dict)
    cluster: ClusterName | None = None
    owner: UserName | None = None
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0

    @property
    def resources(self) -> Resources:
        return Resources.parse({CPU: self.cpu, MEMORY: self.memory, **self.scalars})
