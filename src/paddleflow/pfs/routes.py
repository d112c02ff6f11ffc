"""Which store holds a path: the filesystem's own, or that of a link. Pure prefix logic; it opens and asks nothing.

A link is another store under a path of this filesystem. It hides what the root may have there, and it is a directory in
its parent even if the root knows neither; so are the directories that only lead to one. The nearest link above a path
wins, so links may lie inside links.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddleflow.domain.errors import InUse, NotFound, invalid_field
from paddleflow.ports.objects import ObjectStore


class Place(NamedTuple):
    store: ObjectStore
    identity: str
    key: str
    """In that store; empty for the store's own root."""
    above: str
    """The path under which the store's root lies in this filesystem; empty for the root's."""

    def path_of(self, key: str) -> str:
        """Of a key of the same store."""
        return f"{self.above}/{key}" if self.above and key else self.above or key


class Routes:
    def __init__(
        self, root: ObjectStore, root_identity: str, links: Mapping[str, tuple[ObjectStore, str]] | None = None
    ) -> None:
        self._root = root
        self._identity = root_identity
        self._links = {_checked(path): target for path, target in (links or {}).items()}
        self._stores = {identity: store for store, identity in self._links.values()} | {root_identity: root}
        self._leading: dict[str, set[str]] = {}
        for path in self._links:
            above = path
            while above:
                above, _, name = above.rpartition("/")
                self._leading.setdefault(above, set()).add(name)

    @property
    def identities(self) -> frozenset[str]:
        """Of all stores: what is cached under them is this filesystem's."""
        return frozenset(self._stores)

    def where(self, path: str) -> Place:
        if self._links:
            above = path
            while above:
                link = self._links.get(above)
                if link is not None:
                    return Place(*link, path[len(above) + 1 :], above)
                above = above.rpartition("/")[0]
        return Place(self._root, self._identity, path, "")

    def store_of(self, identity: str) -> ObjectStore:
        """Any store with this identity: they are all the same storage."""
        try:
            return self._stores[identity]
        except KeyError:
            raise NotFound(f"no store of this filesystem has the identity {identity}") from None

    def close(self) -> None:
        """Close every store."""
        for store in {
            id(store): store for store in (self._root, *(store for store, _ in self._links.values()))
        }.values():
            store.close()

    def names_in(self, path: str) -> frozenset[str]:
        """What a directory shows because links lie in it, or below it."""
        return frozenset(self._leading.get(path, ()))

    def leads_to_link(self, path: str) -> bool:
        """It is a link, or a directory above one: it is there whatever the store says."""
        return path in self._links or path in self._leading

    def refuse_link(self, path: str) -> None:
        """What a link is, or leads to one, cannot be deleted, renamed or replaced from inside the filesystem."""
        if self.leads_to_link(path):
            raise InUse(f"{path!r} is a link, or has one below it: remove the link first")


def _checked(path: str) -> str:
    if not path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise invalid_field("links", f"{path!r} must be a path below the root, like data/train, without . or ..")
    return path
