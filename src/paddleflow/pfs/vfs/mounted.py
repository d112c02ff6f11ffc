"""What the parts of the vfs share, and the open files of this mount.

A node has one way of being open at a time: the kernel refuses a second one with an error that the program would see.
So the state is here, in one place: which handles, which mode, which file behind it, which version. When an open needs
another way than the one that is in use, it gets another *node*: the old one is detached and ESTALE makes the kernel
look the name up again, which finds the new one. What has the old one open keeps reading what it opened.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from paddleflow.pfs.attrs import Attr, Opened, OpenMode
from paddleflow.pfs.backstage import Backstage, Found, ObjectVersion
from paddleflow.pfs.cache import Stamp
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.later import Later
from paddleflow.pfs.nodes import Node, Nodes
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.readahead import Pattern
from paddleflow.pfs.staging import Staged, Staging
from paddleflow.pfs.vfs.held import staged_attr
from paddleflow.pfs.vfs.keepsakes import found_in, keepsake_of
from paddleflow.pfs.vfs.served import Counted, Served
from paddleflow.pfs.vfs.tree import Tree
from paddleflow.pfs.vfs.turns import Turn

T = TypeVar("T")

AHEAD: Final = 0
"""In place of a request's number: opened by ourselves, for a request that is still to come or for none."""


class CachedContent(Protocol):
    """A version in the cache, as far as the vfs looks at it (``cache.CachedFile``)."""

    path: str
    stamp: Stamp | None
    """What the file looked like when it was verified."""

    @property
    def fd(self) -> int: ...

    def has(self, start: int, size: int) -> bool: ...

    def is_verified(self) -> bool: ...

    def touch(self) -> None: ...

    def close(self) -> None: ...


class Aside(Protocol):
    """Does what blocks without using the processor (copying and syncing files) beside the loop."""

    def __call__(self, work: Callable[[], T]) -> Later[T]: ...


def on_the_spot(work: Callable[[], T]) -> Later[T]:
    """For programs that have no loop to keep running."""
    answer: Later[T] = Later()
    try:
        value = work()
    except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the answer
        answer.fail(error)
    else:
        answer.succeed(value)
    return answer


@dataclass(slots=True)
class Handle:
    is_writable: bool
    may_map: bool
    """Opened for reading and writing: only such a file can be written through memory."""
    pattern: Pattern
    counted: Counted = field(default_factory=Counted)


class OpenFile:
    """A node that is open, or has staged content, or both."""

    __slots__ = ("backing", "handles", "is_moved", "is_refused", "mode", "node", "staged", "turn", "version")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.handles: dict[int, Handle] = {}
        self.mode: OpenMode | None = None
        self.backing = ""
        self.version: ObjectVersion | None = None
        """What is read through the handles; with staged content, None."""
        self.staged: Staged | None = None
        self.turn = Turn()
        """Held by whoever uploads, stages, deletes or renames: one at a time."""
        self.is_moved = False
        """Renamed since it was opened: its version may be found under its new name."""
        self.is_refused = False
        """The kernel would not take its backing file."""


@dataclass(slots=True)
class Mounted:
    """The desk at which all parts of one vfs work."""

    nodes: Nodes
    tree: Tree
    backstage: Backstage
    staging: Staging
    options: MountOptions
    find: Callable[[ObjectVersion], CachedContent | None]
    clashes: Callable[[int, str, bool], bool]
    aside: Aside
    files: dict[int, OpenFile]
    next_handle: int
    served: Served = field(default_factory=Served)

    def file(self, node: Node) -> OpenFile:
        file = self.files.get(node.id)
        if file is None:
            file = self.files[node.id] = OpenFile(node)
        return file

    def settle(self, file: OpenFile) -> None:
        """Forget a file that is neither open nor staged."""
        if file.handles or file.staged is not None or file.turn.is_taken:
            return
        self.files.pop(file.node.id, None)
        self.nodes.drop_if_unused(file.node)

    def attr(self, node: Node) -> Attr:
        file = self.files.get(node.id)
        if file is None or file.staged is None:
            return self.tree.attr(node)
        return staged_attr(file.staged, node.known, node.ino, self.options, self.tree.chosen.get(node.id))

    def staged(self, node: Node) -> Staged | None:
        file = self.files.get(node.id)
        return None if file is None else file.staged

    def new_handle(self) -> int:
        self.next_handle += 1
        return self.next_handle

    def another_node(self, node: Node) -> FsError:
        """The error to raise so that the kernel opens a new node instead of this one, which stays as it is open."""
        if node.is_linked:
            fresh = self.tree.replaced(node)
            fresh.known, fresh.known_at = node.known, node.known_at
        return FsError(errno.ESTALE)

    def grant(self, node: Node, handle: Handle, wanted: OpenMode, backing: str, unique: int) -> Opened:
        """Open a node in the way it is open already, or else as wanted. Raises for another node when that cannot be."""
        file = self.file(node)
        version = None if file.staged is not None else node.known.version if node.known is not None else None
        if file.handles:
            if file.version != version:
                raise self.another_node(node)
            if file.mode is OpenMode.PASSTHROUGH:
                wanted, backing = OpenMode.PASSTHROUGH, file.backing
            elif wanted is not file.mode:
                # Open through us, and now it could be passed through. Some of its pages may be mapped, which the
                # kernel lets nobody see and forbids to mix; so never both on one node.
                raise self.another_node(node)
        elif node.is_inherited and self.options.passthrough:
            path = backing if wanted is OpenMode.PASSTHROUGH else ""
            if self.clashes(node.id, path, handle.is_writable):
                raise self.another_node(node)
        number = self.new_handle()
        file.handles[number] = handle
        file.mode, file.backing, file.version = wanted, backing, version
        node.open_version = version
        node.pins += 1
        try:
            self.note_open(node, number, unique)
        except OSError:
            self.ungrant(node, number)
            self.settle(file)
            raise
        keep = wanted is OpenMode.CACHED and version is not None and node.seen_version == version.version
        node.seen_version = "" if version is None else version.version
        needs_flush = handle.is_writable
        return Opened(number, wanted, backing if wanted is OpenMode.PASSTHROUGH else "", keep, needs_flush)

    def note_open(self, node: Node, number: int, unique: int) -> None:
        """Write a handle into the log, unless a successor can do without: the kernel reads by itself what was passed
        through. Once more, with another request, when it was opened ahead."""
        file = self.files[node.id]
        assert file.mode is not None
        if file.staged is None and file.mode is OpenMode.PASSTHROUGH and unique != AHEAD:
            self.nodes.closed(node, number)
        else:
            access = "w" if file.handles[number].is_writable else "r"
            kept = keepsake_of(None if file.staged is not None else node.known)
            self.nodes.opened(node, number, unique, f"{file.mode.name[0]}{access}{kept}")

    def ungrant(self, node: Node, number: int) -> OpenFile | None:
        """One handle less; None when it was not known, which is no harm: it came from a predecessor."""
        file = self.files.get(node.id)
        if file is None or file.handles.pop(number, None) is None:
            return None
        self.nodes.closed(node, number)
        node.pins -= 1
        if not file.handles:
            file.mode, file.backing, file.version = None, "", None
            node.open_version = None
        return file

    def inherit(self, node: Node) -> None:
        """Take over the handles that a predecessor noted for this node."""
        modes = {mode.name[0]: mode for mode in OpenMode}
        file = self.file(node)
        for number, (_, note) in self.nodes.opens.get(node.id, {}).items():
            is_writable = note[1] == "w"
            file.handles[number] = Handle(is_writable, may_map=is_writable, pattern=Pattern())
            file.mode = modes[note[0]]
            node.pins += 1
            found: Found | None = found_in(note[2:])
            if found is not None:
                file.version = node.open_version = found.version
                node.known = node.known or found
        if file.staged is not None and file.mode is OpenMode.PASSTHROUGH:
            file.backing = file.staged.data
