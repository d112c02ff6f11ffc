"""What a run needs from the world before a step can start: contents of artifacts, fingerprints, earlier results.

Called from worker threads, because a filesystem may be slow and a directory large. Writes nothing to the store; an
answer that comes twice, or for a node that has moved on, harms nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta

from paddleflow.domain.errors import Invalid, NotFound, PaddleFlowError, TooLarge, Unavailable
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import FilesystemId, filesystem_id
from paddleflow.domain.runs import CacheEntry, Fingerprint
from paddleflow.planning.fingerprint import seal
from paddleflow.planning.moves import Fetch, Fetched, Prepare, Prepared, RunFacts
from paddleflow.ports.clock import Clock
from paddleflow.ports.files import Files, Wanted, always
from paddleflow.ports.store import Store

_FETCHED_TOGETHER = 16 * 1024 * 1024
"""Bytes of all files one question is about: an artifact of a loop is as many files as the loop has items."""


class RunWork:
    def __init__(self, *, store: Store, files: Files, clock: Clock) -> None:
        self._store = store
        self._files = files
        self._clock = clock

    def fetch(self, facts: RunFacts, wanted: Fetch) -> Fetched:
        """Raises Unavailable when the storage does not answer; everything else is the node's own failure."""
        contents: dict[str, tuple[str, ...]] = {}
        together = 0
        for name, paths in wanted.paths.items():
            texts = []
            for path in paths:
                try:
                    # The limit is the size a file must stay below.
                    content = self._files.read(self._main(facts), path, wanted.limit - 1)
                    together += _counted(content, together)
                    texts.append(content.decode())
                except (NotFound, Invalid, TooLarge, UnicodeDecodeError) as error:
                    return Fetched(
                        key=wanted.key, error=f"failed to get the content of artifact by path[{path}] : {error}"
                    )
            contents[name] = tuple(texts)
        return Fetched(key=wanted.key, contents=contents)

    def prepare(self, facts: RunFacts, wanted: Prepare, is_wanted: Wanted = always) -> Prepared:
        """Raises Unavailable like ``fetch``, and when the answer is not wanted any more."""
        try:
            fingerprint = None if wanted.identity is None else self._fingerprint(facts, wanted, is_wanted)
            hit = None if fingerprint is None else self._earlier(facts, fingerprint)
            if hit is None and is_wanted():
                for path in wanted.outputs:
                    self._files.make_way(self._main(facts), path)
        except Unavailable:
            raise
        except PaddleFlowError as error:
            return Prepared(key=wanted.key, error=error.message)
        return Prepared(key=wanted.key, fingerprint=fingerprint, hit=hit)

    def clear(self, fs_id: FilesystemId, path: str, is_wanted: Wanted = always) -> None:
        """Remove what a deleted run left. A filesystem that is gone took it along."""
        with self._store.read() as view:
            filesystem = view.filesystems.find(fs_id)
        if filesystem is not None and path:
            self._files.remove(filesystem, path, is_wanted)

    def _fingerprint(self, facts: RunFacts, wanted: Prepare, is_wanted: Wanted) -> Fingerprint:
        contents = {}
        for name, paths in wanted.inputs.items():
            what = f"input artifact [{name}]"
            contents[f"inputs.{name}"] = self._digest_of(self._main(facts), paths, what, is_wanted)
        for scope in wanted.scopes:
            filesystem = self._named(facts, scope.fs_name)
            label = f"fs_scope.{scope.fs_name}:{scope.path or '/'}"
            what = f"path [{scope.path or '/'}] in fs_scope"
            contents[label] = self._digest_of(filesystem, (scope.path,), what, is_wanted)
        return seal(wanted.identity or {}, contents)

    def _digest_of(self, filesystem: Filesystem, paths: Sequence[str], what: str, is_wanted: Wanted) -> str:
        try:
            digests = [self._files.digest(filesystem, path, is_wanted) for path in paths]
        except NotFound as error:
            raise NotFound(f"{what} of fs[{filesystem.name}] cannot be read: {error.message}") from error
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()

    def _earlier(self, facts: RunFacts, fingerprint: Fingerprint) -> CacheEntry | None:
        """The newest result of an equal step that has not expired and whose files are still there."""
        now = self._clock.now()
        with self._store.read() as view:
            entries = view.cache.matching(facts.owner, facts.fs_id, fingerprint.first)
        for entry in entries:
            if entry.fingerprint.second != fingerprint.second or is_expired(entry, now - entry.updated_at):
                continue
            if all(self._is_there(facts, path) for path in entry.outputs.values()):
                return entry
        return None

    def _is_there(self, facts: RunFacts, path: str) -> bool:
        try:
            self._files.entry(self._main(facts), path)
        except NotFound:
            return False
        return True

    def _main(self, facts: RunFacts) -> Filesystem:
        if facts.fs_id is None:
            raise Invalid("the run has no main filesystem, so it has no artifacts")
        return self._row(facts.fs_id, facts.fs_name)

    def _named(self, facts: RunFacts, name: str) -> Filesystem:
        return self._row(filesystem_id(facts.owner, name), name)

    def _row(self, fs_id: FilesystemId, name: str) -> Filesystem:
        with self._store.read() as view:
            filesystem = view.filesystems.find(fs_id)
        if filesystem is None:
            raise NotFound(f"filesystem [{name}] does not exist any more")
        return filesystem


def _counted(content: bytes, before: int) -> int:
    if before + len(content) > _FETCHED_TOGETHER:
        raise TooLarge(f"with the files before it, it has more than {_FETCHED_TOGETHER} bytes")
    return len(content)


def is_expired(entry: CacheEntry, age: timedelta) -> bool:
    return entry.expires_after_s >= 0 and age > timedelta(seconds=entry.expires_after_s)
