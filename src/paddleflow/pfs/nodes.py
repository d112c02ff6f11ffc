"""Nodes: the numbers by which the kernel knows files, and what leads from a number to a path.

A number is given once and never again. The kernel keeps numbers over the death of the process that gave them, so each
is written to a log *before* the kernel can hear of it, and a successor reads the log to know them again.

A node whose name leads to something else now (deleted, replaced) is *detached*: it lives as long as the kernel holds it
and can no longer be found by name. What a successor cannot ask anybody about any more, its attributes, goes into the
log with it, as a *keepsake* that only the vfs reads.

This module knows names and numbers. What a name means in the store, the vfs knows.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from paddleflow.pfs.attrs import ROOT_NODE, Attr
from paddleflow.pfs.backstage import Found, ObjectVersion
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.records import RecordLog, read_records

_INO_BITS: Final = (1 << 63) - 1
_COMPACT_AFTER: Final = 1_000_000
"""Records that mean nothing any more before the log is written anew: that stops everything for a moment, so rarely."""


class Node:
    """One file, directory or link that the kernel may hold. Fields from ``known`` on are the vfs's."""

    __slots__ = (
        "attr",
        "children",
        "id",
        "ino",
        "is_inherited",
        "is_linked",
        "is_staged",
        "keepsake",
        "known",
        "known_at",
        "lookups",
        "name",
        "open_version",
        "parent",
        "pins",
        "remark",
        "seen_version",
        "whole",
    )

    def __init__(self, number: int, parent: Node | None, name: str, ino: int) -> None:
        self.id = number
        self.parent = parent
        self.name = name
        self.ino = ino
        self.children: dict[str, Node] = {}
        self.lookups = 0
        """How often the kernel was told of it, less what it forgot. For an inherited one: since this process began."""
        self.pins = 0
        """Reasons of our own to keep it: open handles, content that is not in the store yet."""
        self.is_inherited = False
        self.is_linked = True
        self.keepsake = ""
        self.remark = ""
        """What a successor must know of it besides its name. Only the vfs reads it."""
        self.known: Found | None = None
        """What the store last said of it; None when nobody asked since it got its name."""
        self.known_at = float("-inf")
        self.attr: Attr | None = None
        """Made of ``known`` and kept, because it is asked for more often than it changes."""
        self.is_staged = False
        """Its content is a local file now, and so are its size and times."""
        self.open_version: ObjectVersion | None = None
        """What it is open for reading with, and keeps showing however the store goes on."""
        self.whole: object = None
        """Where its content was found whole in the cache; opening it again looks there first."""
        self.seen_version = ""
        """The version of which the kernel may still have pages."""

    def __repr__(self) -> str:
        return f"<node {self.id} {self.name!r}>"


class Nodes:
    """All nodes of one mount."""

    def __init__(self, log: str, *, is_successor: bool) -> None:
        self.on_drop: Callable[[Node], None] = lambda _: None
        """Hears of each that is gone for good."""
        self.root = Node(ROOT_NODE, None, "", ROOT_NODE)
        self.root.lookups = 1
        self._by_id: dict[int, Node] = {ROOT_NODE: self.root}
        self._by_ino: dict[int, int] = {ROOT_NODE: 1}
        self._next = ROOT_NODE + 1
        self.opens: dict[int, dict[int, tuple[int, str]]] = {}
        """Node to its open handles, as far as they were noted: handle to the request that opened it and a keepsake."""
        self._dead_records = 0
        if is_successor:
            self._load(log)
        self._log = RecordLog(log, self._living(), is_continued=is_successor)

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, number: int) -> Node:
        try:
            return self._by_id[number]
        except KeyError:
            # The kernel looks the path up again when it reads this.
            raise FsError(errno.ESTALE) from None

    def find(self, number: int) -> Node | None:
        return self._by_id.get(number)

    def path(self, node: Node) -> str:
        """Of a detached one: where it was."""
        if node.parent is None:
            return ""
        names = [node.name]
        above = node.parent
        while above.parent is not None:
            names.append(above.name)
            above = above.parent
        names.reverse()
        return "/".join(names)

    def below(self, node: Node) -> Iterator[Node]:
        """The node itself and every node whose path leads through it."""
        waiting = [node]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(here.children.values())

    def detached(self) -> list[Node]:
        return [node for node in self._by_id.values() if not node.is_linked]

    def remarked(self) -> list[Node]:
        return [node for node in self._by_id.values() if node.remark]

    def add(self, parent: Node, name: str) -> Node:
        return self._add(parent, name, self.ino_for(parent, name))

    def replace(self, old: Node, keepsake: str = "") -> Node:
        """Another node for the same name and the same file: what has the old one open, keeps it."""
        assert old.parent is not None
        parent = old.parent
        self.detach(old, keepsake)
        return self._add(parent, old.name, old.ino)

    def move(self, node: Node, parent: Node, name: str) -> None:
        """The target's name is free: whatever had it was detached before."""
        assert node.parent is not None
        del node.parent.children[node.name]
        left = node.parent
        node.parent, node.name = parent, name
        parent.children[name] = node
        self._log.append_or_wait(f"m {node.id} {parent.id} {name}")
        self.drop_if_unused(left)

    def detach(self, node: Node, keepsake: str = "") -> None:
        """Its name no longer leads to it."""
        if not node.is_linked:
            return
        assert node.parent is not None
        node.is_linked = False
        node.keepsake = keepsake
        if node.parent.children.get(node.name) is node:
            del node.parent.children[node.name]
        self._log.append_or_wait(f"u {node.id} {keepsake}")
        self.drop_if_unused(node)

    def forget(self, number: int, count: int) -> None:
        """The kernel gives back ``count`` lookups. It does so when it drops the inode, with all it ever counted; of an
        inherited node we cannot know how many were ours, so it goes only when the kernel was not told of it since."""
        node = self._by_id.get(number)
        if node is None or node.parent is None:
            return
        if node.is_inherited and node.lookups:
            node.lookups = max(node.lookups - count, 0)
            return
        node.lookups = max(node.lookups - count, 0)
        node.is_inherited = False
        self.drop_if_unused(node)

    @contextmanager
    def pinned(self, node: Node) -> Iterator[None]:
        """Keep a node that the kernel need not know, while something is done with it that waits."""
        node.pins += 1
        try:
            yield
        finally:
            node.pins -= 1
            self.drop_if_unused(node)

    def drop_if_unused(self, node: Node) -> None:
        """Nobody holds it: not the kernel, not we, not a node below it. Then perhaps its parent goes as well."""
        here: Node | None = node
        while here is not None and here.parent is not None:
            if here.lookups or here.pins or here.children or here.is_inherited or here.id not in self._by_id:
                return
            parent = here.parent
            if parent.children.get(here.name) is here:
                del parent.children[here.name]
            here.is_linked = False
            del self._by_id[here.id]
            self._release_ino(here.ino)
            self._log.add_to_next(f"x {here.id}")
            self._note_dead(2)
            self.on_drop(here)
            here = parent

    def note(self, node: Node, remark: str) -> None:
        if remark != node.remark:
            node.remark = remark
            self._log.append_or_wait(f"k {node.id} {remark}")

    def opened(self, node: Node, handle: int, unique: int, keepsake: str = "") -> None:
        """Note a handle that a successor must know: of a file that is written, or read through us. OSError when it
        cannot be noted: the kernel must not hear of it."""
        self._log.append(f"o {node.id} {handle} {unique} {keepsake}")
        self.opens.setdefault(node.id, {})[handle] = (unique, keepsake)

    def closed(self, node: Node, handle: int) -> None:
        handles = self.opens.get(node.id, {})
        if handles.pop(handle, None) is not None:
            if not handles:
                del self.opens[node.id]
            # At once: a successor that believed it open would wait for ever for a close that uploads what is written.
            self._log.append_or_wait(f"c {node.id} {handle}")
            self._note_dead(2)

    def ino_for(self, parent: Node, name: str) -> int:
        """What a name without a node shows as its inode number, and what its node will show: made of the path, so that
        it is the same in every mount, unless that number is taken (by a file that had this path before)."""
        path = os.fsencode(f"{self.path(parent)}/{name}")
        salt = 0
        while True:
            digest = blake2b(path, digest_size=8, salt=salt.to_bytes(4)).digest()
            ino = int.from_bytes(digest) & _INO_BITS
            if ino > ROOT_NODE and ino not in self._by_ino:
                return ino
            salt += 1

    def close(self) -> None:
        self._log.close()

    def _add(self, parent: Node, name: str, ino: int) -> Node:
        """OSError when it cannot be written down: there is no such node then."""
        node = Node(self._next, parent, name, ino)
        self._log.append(f"a {node.id} {parent.id} {ino} {name}")
        self._next += 1
        self._insert(node)
        return node

    def _insert(self, node: Node) -> None:
        assert node.parent is not None
        self._by_id[node.id] = node
        self._by_ino[node.ino] = self._by_ino.get(node.ino, 0) + 1
        if node.is_linked:
            node.parent.children[node.name] = node

    def _release_ino(self, ino: int) -> None:
        left = self._by_ino[ino] - 1
        if left:
            self._by_ino[ino] = left
        else:
            del self._by_ino[ino]

    def _note_dead(self, records: int) -> None:
        self._dead_records += records
        if self._dead_records > _COMPACT_AFTER + 2 * len(self._by_id):
            self._log.write_anew(self._living())
            self._dead_records = 0

    def _living(self) -> list[str]:
        """All that lives, parents first."""
        records = [f"n {self._next}"]
        # The name of a node is given where it stands now; numbers of parents may be larger than those of children.
        records += [f"a {it.id} {it.parent.id} {it.ino} {it.name}" for it in self._by_id.values() if it.parent]
        records += [f"u {it.id} {it.keepsake}" for it in self._by_id.values() if not it.is_linked]
        records += [f"k {it.id} {it.remark}" for it in self._by_id.values() if it.remark]
        for number, handles in self.opens.items():
            records += [f"o {number} {handle} {unique} {kept}" for handle, (unique, kept) in handles.items()]
        return records

    def _load(self, log: str) -> None:
        records = _Records()
        for record in read_records(log):
            records.take(record)
        self._next = max(records.next, self._next)
        made: dict[int, Node] = {}
        for number, (_, name, ino) in records.names.items():
            made[number] = node = Node(number, None, name, ino)
            node.is_inherited = True
            node.is_linked = number not in records.detached
            node.keepsake = records.detached.get(number, "")
            node.remark = records.remarks.get(number, "")
        for number, (parent, _, _) in records.names.items():
            made[number].parent = self.root if parent == ROOT_NODE else made.get(parent, self.root)
            self._insert(made[number])
        self.opens = {number: handles for number, handles in records.opens.items() if number in made}


class _Records:
    """The log, read from its beginning: where each number is in the end."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[int, str, int]] = {}
        self.detached: dict[int, str] = {}
        self.remarks: dict[int, str] = {}
        self.opens: dict[int, dict[int, tuple[int, str]]] = {}
        self.next = 0

    def take(self, record: str) -> None:
        kind, rest = record[0], record[2:]
        if kind == "a":
            number, parent, ino, name = rest.split(" ", 3)
            self.names[int(number)] = (int(parent), name, int(ino))
            self.next = max(self.next, int(number) + 1)
        elif kind == "m":
            number, parent, name = rest.split(" ", 2)
            self.names[int(number)] = (int(parent), name, self.names[int(number)][2])
        elif kind == "u":
            number, keepsake = rest.split(" ", 1)
            self.detached[int(number)] = keepsake
        elif kind == "k":
            number, remark = rest.split(" ", 1)
            self.remarks[int(number)] = remark
        elif kind == "x":
            for kept in (self.names, self.detached, self.remarks):
                kept.pop(int(rest), None)
        elif kind == "o":
            number, handle, unique, keepsake = rest.split(" ", 3)
            self.opens.setdefault(int(number), {})[int(handle)] = (int(unique), keepsake)
        elif kind == "c":
            number, handle = rest.split(" ")
            handles = self.opens.get(int(number), {})
            handles.pop(int(handle), None)
            if not handles:
                self.opens.pop(int(number), None)
        else:
            self.next = max(self.next, int(rest.split(" ")[0]))
