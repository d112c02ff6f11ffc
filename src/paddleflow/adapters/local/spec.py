"""What a supervisor must know to run one task: the document in ``spec.json``. Host side: light, hence a plain class."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TaskSpec:
    __slots__ = (
        "argv",
        "cgroup_name",
        "cgroup_parents",
        "cpu_milli",
        "env",
        "host_cpus",
        "log_cap_bytes",
        "memory_bytes",
        "memory_text",
        "mounts",
        "work_dir",
    )

    def __init__(
        self,
        *,
        argv: list[str],
        env: dict[str, str],
        work_dir: str,
        mounts: list[tuple[str, str, bool]],
        memory_bytes: int,
        memory_text: str,
        cpu_milli: int,
        host_cpus: int,
        log_cap_bytes: int,
        cgroup_parents: dict[str, str] | None,
        cgroup_name: str,
    ) -> None:
        self.argv = argv
        self.env = env
        """Complete: the task gets this and nothing else."""
        self.work_dir = work_dir
        self.mounts = mounts
        """(source, target, read only)."""
        self.memory_bytes = memory_bytes
        """Zero: no limit."""
        self.memory_text = memory_text
        """The limit as people write it."""
        self.cpu_milli = cpu_milli
        self.host_cpus = host_cpus
        self.log_cap_bytes = log_cap_bytes
        self.cgroup_parents = cgroup_parents
        """None: no control groups here, resource limits instead."""
        self.cgroup_name = cgroup_name

    def to_document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> TaskSpec:
        return cls(**document)
