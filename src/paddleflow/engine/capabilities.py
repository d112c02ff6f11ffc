"""What this server can do with the clusters and jobs it is told of, as it was wired."""

from __future__ import annotations

from dataclasses import dataclass

from paddleflow.domain.clusters import Cluster, ClusterType
from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    clusters: frozenset[ClusterName]
    """Those whose jobs a runtime of this server starts."""
    ignores_images: bool = False
    """A job of this machine may name an image all the same; it runs without it."""

    def can_use_image(self, cluster: Cluster) -> bool:
        """False: a job there is refused for its image instead of being run as if it had none."""
        return self.ignores_images or cluster.type is not ClusterType.LOCAL

    def refuse_image(self, field: str, image: str, cluster: Cluster) -> Invalid:
        return invalid_field(
            field,
            f"[{image[:80]}] would not be used: jobs of cluster[{cluster.name}] are processes of this machine; "
            "leave it out, or let the server run such jobs without their image by its setting local.images: ignore",
        )
