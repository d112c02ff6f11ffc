"""``client.fs``: what the other files of this package do, by name of filesystem and path."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from paddleflow.domain.errors import Invalid, NotFound
from paddleflow.files import tree
from paddleflow.files.ahead import Ahead
from paddleflow.files.contents import pour, put
from paddleflow.files.copying import Copy
from paddleflow.files.errors import (
    FileChanged,
    FileThere,
    IsDirectory,
    MissingFile,
    named_filesystem,
    told_as_file_errors,
)
from paddleflow.files.mounting import wishes
from paddleflow.files.opened import OpenedFilesystem, OpenFilesystems, libraries, opener
from paddleflow.files.paths import Place, key_of, place_of, remote_place, shown
from paddleflow.files.reading import BUFFER, ObjectReader, ReadFile
from paddleflow.files.warming import evict, warm
from paddleflow.files.writing import StagedFile, as_text, buffered, check_mode, check_text
from paddleflow.sdk.file_access import FileEntry, LocalPath, Progress, Transferred, no_progress

if TYPE_CHECKING:
    from paddleflow.pfs.backstage import Found
    from paddleflow.sdk.client import Client

_LINKS_FOLLOWED = 16


class Files:
    """Files of one user's filesystems, now or in a snapshot. Safe to share between threads and to send to processes."""

    def __init__(
        self,
        client: Client,
        username: str | None = None,
        snapshot: str | None = None,
        filesystems: OpenFilesystems | None = None,
    ) -> None:
        self._client = client
        self._username = username
        self._snapshot = snapshot
        self._filesystems = filesystems or OpenFilesystems(opener(client, username, snapshot))
        self._others: dict[tuple[str | None, str | None], Files] = {}

    def __getstate__(self) -> tuple[Client, str | None, str | None]:
        return self._client, self._username, self._snapshot

    def __setstate__(self, state: tuple[Client, str | None, str | None]) -> None:
        Files.__init__(self, *state)

    def of(self, username: str | None = None, snapshot: str | None = None) -> Files:
        wanted = (username or self._username, snapshot or self._snapshot)
        if wanted == (self._username, self._snapshot):
            return self
        return self._others.setdefault(wanted, Files(self._client, *wanted))

    def open(
        self,
        fsname: str,
        path: str,
        mode: str = "rb",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        bare, is_text = check_mode(mode)
        if is_text:
            check_text(encoding, errors, newline)
        place = Place(fsname, shown(key_of(path)))
        binary: IO[Any] = self._open_reading(place) if bare == "r" else buffered(self.stage(place, bare))
        return as_text(binary, bare, encoding, errors, newline) if is_text else binary

    def names(self, most: int) -> list[str]:
        """Of the filesystems there are."""
        _, found = self._client.list_fs(self._username, most)
        return [one.name for one in found]

    def ls(self, fsname: str, path: str = "/") -> list[FileEntry]:
        with told_as_file_errors(f"{fsname}:{path}"):
            return tree.entries(self._opened(fsname).stagehand, key_of(path))

    def walk(self, fsname: str, path: str = "/") -> Iterator[tuple[str, list[FileEntry], list[FileEntry]]]:
        with told_as_file_errors(f"{fsname}:{path}"):
            for key, directories, files in tree.walk(self._opened(fsname).stagehand, key_of(path)):
                yield shown(key), [tree.entry_of(one) for one in directories], [tree.entry_of(one) for one in files]

    def stat(self, fsname: str, path: str) -> FileEntry:
        return tree.entry_of(self._found(Place(fsname, path)))

    def exists(self, fsname: str, path: str) -> bool:
        try:
            self._found(Place(fsname, path))
        except NotFound:
            return False
        return True

    def mkdir(self, fsname: str, path: str, *, parents: bool = False) -> None:
        with told_as_file_errors(f"{fsname}:{path}"):
            tree.make_directory(self._opened(fsname).stagehand, key_of(path), parents=parents)

    def rmdir(self, fsname: str, path: str) -> None:
        """An empty one."""
        with told_as_file_errors(f"{fsname}:{path}"):
            self._opened(fsname).stagehand.remove_directory(key_of(path))

    def rm(self, fsname: str, path: str, *, recursive: bool = False) -> None:
        with told_as_file_errors(f"{fsname}:{path}"):
            tree.remove(self._opened(fsname), key_of(path), recursive=recursive)

    def cat(self, fsname: str, path: str, start: int = 0, size: int = -1) -> bytes:
        with self.open(fsname, path) as file:
            file.seek(start)
            data: bytes = file.read(size)
            return data

    def cp(
        self,
        source: LocalPath,
        target: LocalPath,
        *,
        recursive: bool = False,
        parallel: int = 8,
        progress: Progress = no_progress,
    ) -> Transferred:
        copy = Copy(self._filesystems, parallel, progress)
        return copy.run(place_of(source), place_of(target), recursive=recursive)

    def mv(self, source: str, target: str) -> None:
        old, new = remote_place(source), remote_place(target)
        if self.exists(new.fsname, new.path) and self.stat(new.fsname, new.path).is_directory:
            new = new.below(old.name)
        if old.fsname == new.fsname and self._renamed(old, new):
            return
        self.cp(str(old), str(new), recursive=True)
        self.rm(old.fsname, old.path, recursive=True)

    def warm(
        self, fsname: str, paths: Sequence[str] = ("/",), *, parallel: int = 8, progress: Progress = no_progress
    ) -> Transferred:
        with told_as_file_errors(fsname):
            return warm(self._opened(fsname), paths, parallel=parallel, progress=progress)

    def evict(self, fsname: str, path: str = "/") -> int:
        with told_as_file_errors(f"{fsname}:{path}"):
            return evict(self._opened(fsname), path)

    def mount(self, fsname: str, path: LocalPath, options: Mapping[str, str] | None = None) -> Any:
        fields, _ = wishes(options or {})
        if self._snapshot is not None:
            fields.setdefault("snapshot", self._snapshot)
        with libraries(), named_filesystem(fsname):
            mounts = import_module("paddleflow.wiring.mount")
            request = mounts.MountRequest(username=self._username, **fields)
            return mounts.mount_filesystem(self._client, fsname, os.path.abspath(path), request)

    def unmount(self, path: LocalPath, *, force: bool = False) -> None:
        with libraries():
            import_module("paddleflow.wiring.mount").unmount(os.path.abspath(path), force)

    def close(self) -> None:
        for other in self._others.values():
            other.close()
        self._filesystems.close()

    def stage(self, place: Place, mode: str) -> StagedFile:
        """A file to be written; ``mode`` has neither ``b`` nor ``t``."""
        place, base = self._base_of(place, mode)
        version = base.version if base is not None and mode[0] in "ra" else None

        def fill(descriptor: int) -> None:
            if version is not None:
                with told_as_file_errors(str(place)):
                    pour(self._opened(place.fsname), version, descriptor)

        def upload(staged: str) -> None:
            with told_as_file_errors(str(place)):
                self._check_unchanged(place, mode, base)
                put(self._opened(place.fsname).stagehand, key_of(place.path), staged)

        return StagedFile(str(place), mode, upload, fill)

    def _base_of(self, place: Place, mode: str) -> tuple[Place, Found | None]:
        """What the file is before it is written; what cannot be is refused before anything is."""
        if not key_of(place.path):
            raise IsDirectory("IsADirectory", f"{place} is a directory")
        place, found = self._followed(place)
        if found is None:
            if mode[0] == "r":
                raise MissingFile("NoSuchFile", f"{place} is not there")
            return place, None
        if found.entry.is_directory:
            raise IsDirectory("IsADirectory", f"{place} is a directory")
        if mode[0] == "x":
            raise FileThere("FileExists", f"{place} is there already")
        return place, found

    def _check_unchanged(self, place: Place, mode: str, base: Found | None) -> None:
        if mode[0] == "w":
            return
        _, now = self._followed(place)
        if now is not None and mode[0] == "x":
            raise FileThere("FileExists", f"{place} was made by somebody else meanwhile; nothing was written")
        if (now.version if now else None) != (base.version if base else None):
            raise FileChanged("FileChanged", f"{place} was changed by somebody else meanwhile; nothing was written")

    def _open_reading(self, place: Place) -> ReadFile:
        place, found = self._followed(place)
        if found is None:
            raise MissingFile("NoSuchFile", f"{place} is not there")
        if found.version is None:
            raise IsDirectory("IsADirectory", f"{place} is a directory")
        options = self._opened(place.fsname).options
        ahead = Ahead(self._filesystems, place.fsname, found.version)
        reader = ObjectReader(self._filesystems, place.fsname, place.path, found.version, ahead)
        if 0 < found.version.size <= options.small_file:
            reader.fetch_whole()
        return ReadFile(reader, BUFFER)

    def _renamed(self, old: Place, new: Place) -> bool:
        """False: they lie in different storages, one of them linked in."""
        try:
            with told_as_file_errors(str(old)):
                self._opened(old.fsname).stagehand.rename(key_of(old.path), key_of(new.path))
        except Invalid as error:
            if error.code != "CrossStore":
                raise
            return False
        return True

    def _found(self, place: Place) -> Found:
        with told_as_file_errors(str(place)):
            return self._opened(place.fsname).stagehand.stat(key_of(place.path))

    def _followed(self, place: Place) -> tuple[Place, Found | None]:
        """Where symbolic links lead to within the filesystem, and what is there, if anything is."""
        self._opened(place.fsname)  # that it is missing is another thing than that the file is
        for _ in range(_LINKS_FOLLOWED):
            try:
                found = self._found(place)
            except NotFound:
                return place, None
            target = found.entry.link_target
            if target is None:
                return place, found
            if target.startswith("/"):
                break
            place = Place(place.fsname, os.path.normpath(os.path.join(os.path.dirname(place.path), target)))
        raise MissingFile("LinkLeadsOut", f"{place} is a symbolic link that does not lead to a file of this filesystem")

    def _opened(self, fsname: str) -> OpenedFilesystem:
        return self._filesystems.get(fsname)
