"""What is believed about the names in one directory, and for how long: plain state, changed by the tree alone."""

from __future__ import annotations

from paddleflow.pfs.backstage import Found

NEVER = float("-inf")


class Listing:
    """What a directory holds: complete, or on its way with the changes made here meanwhile laid over it."""

    __slots__ = ("changed", "names")

    def __init__(self) -> None:
        self.names: dict[str, Found] = {}
        self.changed: dict[str, Found | None] = {}

    def finish(self) -> None:
        for name, found in self.changed.items():
            if found is None:
                self.names.pop(name, None)
            else:
                self.names[name] = found
        self.changed.clear()


class Directory:
    __slots__ = (
        "absent",
        "asked",
        "asked_since",
        "changes",
        "is_huge",
        "listing",
        "listing_at",
        "reading",
        "touched_ns",
    )

    def __init__(self) -> None:
        self.listing: Listing | None = None
        self.listing_at = NEVER
        self.reading: list[Listing] = []
        """Listings on their way."""
        self.absent: dict[str, float] = {}
        """Names that were not there, and when."""
        self.changes = 0
        """Changes made here: an answer that was asked for before the last of them says nothing."""
        self.asked = 0
        """Questions about single names since ``asked_since``."""
        self.asked_since = NEVER
        self.is_huge = False
        """Too large to be kept as a whole: it is streamed to whoever reads it."""
        self.touched_ns = 0
        """When something in it was last changed here."""
