"""fsspec's ``paddleflow://FSNAME/path``: what pandas, pyarrow, datasets and the like open by URL.

Which server, and as whom, is read from the command line's ini file unless ``storage_options`` say otherwise, so a URL
holds no secret and neither does a pickled filesystem that was made without a password. Directories above a file that is
written are made on the way, as on object storage. Listings are not remembered: what somebody else wrote is seen.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem  # type: ignore[import-untyped]
from fsspec.callbacks import DEFAULT_CALLBACK, Callback  # type: ignore[import-untyped]

from paddleflow.files.access import Files
from paddleflow.files.errors import FileThere, InvalidFile, IsDirectory, MissingFile
from paddleflow.files.paths import Place, key_of
from paddleflow.files.writing import buffered
from paddleflow.sdk.client import Client
from paddleflow.sdk.file_access import FileEntry, Transferred
from paddleflow.sdk.profile import DEFAULT_PORT

_MANY = 1000


class PaddleFlowFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Every filesystem of one user as a tree: the first part of a path is the name of a filesystem."""

    protocol = "paddleflow"
    root_marker = ""
    sep = "/"

    def __init__(
        self,
        server: str | None = None,
        user: str | None = None,
        password: str | None = None,
        config: str | None = None,
        username: str | None = None,
        snapshot: str | None = None,
        files: Files | None = None,
        **options: Any,
    ) -> None:
        """``server`` is ``host:port`` and needs ``user`` and ``password``; ``config`` is an ini file; without either it
        is the command line's. ``username`` is the owner of the filesystems, if it is another; ``snapshot`` reads them
        as they were. ``files`` is a ``client.fs`` that is there already."""
        super().__init__(**options)
        self._own_client: Client | None = None
        if files is None:
            self._own_client = _client(server, user, password, config)
            files = Files(self._own_client, username, snapshot)
        self._files = files

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = str(super()._strip_protocol(path))
        return text.strip("/")

    @property
    def fsid(self) -> str:
        return "paddleflow"

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        fsname, rest = self._split(path)
        if not fsname:
            return {"name": "", "size": 0, "type": "directory"}
        return _info(fsname, self._files.stat(fsname, rest))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        fsname, rest = self._split(path)
        if fsname:
            found = [_info(fsname, one) for one in self._files.ls(fsname, rest)]
        else:
            found = [{"name": name, "size": 0, "type": "directory"} for name in self._files.names(_MANY)]
        return found if detail else sorted(one["name"] for one in found)

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, autocommit: bool = True, **_: Any) -> Any:
        fsname, rest = self._in_filesystem(path)
        bare = mode.replace("b", "")
        if bare == "r":
            return self._files.open(fsname, rest, "rb")
        if bare not in ("w", "a", "x", "r+", "w+", "a+", "x+"):
            raise InvalidFile("InvalidMode", f"mode[{mode}] should be rb, wb, ab or xb")
        staged = self._files.stage(Place(fsname, f"/{key_of(rest)}"), bare)
        if not autocommit:
            staged.hold()
        return buffered(staged)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        fsname, rest = self._in_filesystem(path)
        with self._files.open(fsname, rest) as file:
            size = file.size  # type: ignore[attr-defined]  # of ours
            first = _absolute(start, size, 0)
            file.seek(first)
            data: bytes = file.read(max(0, _absolute(end, size, size) - first))
            return data

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        fsname, rest = self._in_filesystem(path)
        if self._files.exists(fsname, rest):
            raise FileThere("FileExists", f"{path} is there already")
        self._files.mkdir(fsname, rest, parents=create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        fsname, rest = self._split(path)
        if not exist_ok and self._files.exists(fsname, rest):
            raise FileThere("FileExists", f"{path} is there already")
        self._files.mkdir(fsname, rest, parents=True)

    def rmdir(self, path: str) -> None:
        self._files.rmdir(*self._in_filesystem(path))

    def _rm(self, path: str) -> None:
        self._files.rm(*self._in_filesystem(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        if not recursive or maxdepth is not None:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        for one in self.expand_path(path):
            # A parent that was expanded too has taken it along already.
            if self.exists(one):
                self._files.rm(*self._in_filesystem(one), recursive=True)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        self._files.cp(self._place(path1), self._place(path2))

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **_: Any) -> None:
        if self.isdir(path1) and not recursive:
            raise IsDirectory("IsADirectory", f"{path1} is a directory; move it recursively")
        self._files.mv(self._place(path1), self._place(path2))

    def get_file(
        self, rpath: str, lpath: Any, callback: Callback = DEFAULT_CALLBACK, outfile: Any = None, **more: Any
    ) -> None:
        if outfile is None and hasattr(lpath, "write"):
            self._copy_into(rpath, lpath, callback)  # fsspec itself takes it for a path, but for the newest releases
            return
        if outfile is not None or self.isdir(rpath):
            super().get_file(rpath, lpath, callback=callback, outfile=outfile, **more)
            return
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        self._files.cp(self._place(rpath), _here(str(lpath)), progress=lambda now: _tell(callback, now))

    def _copy_into(self, rpath: str, target: Any, callback: Callback) -> None:
        with self.open(rpath, "rb") as source:
            callback.set_size(source.size)
            while data := source.read(self.blocksize):
                target.write(data)
                callback.relative_update(len(data))

    def put_file(
        self, lpath: str, rpath: str, callback: Callback = DEFAULT_CALLBACK, mode: str = "overwrite", **more: Any
    ) -> None:
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        if mode == "create" and self.exists(rpath):
            raise FileThere("FileExists", f"{rpath} is there already")
        self._files.cp(_here(str(lpath)), self._place(rpath), progress=lambda now: _tell(callback, now))

    def created(self, path: str) -> datetime:
        """Storages do not keep it; the last change is what is known."""
        return self.modified(path)

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"], UTC)

    def ukey(self, path: str) -> str:
        """Changes whenever the content does."""
        found = self.info(path)
        return f"{found['name']}-{found.get('version', '')}"

    def checksum(self, path: str) -> int:
        return hash(self.ukey(path))

    def sign(self, path: str, expiration: int = 100, **_: Any) -> str:
        raise NotImplementedError("files are read with a token of the server, not with a link")

    def close(self) -> None:
        """Give back what is open. It may be used again afterwards."""
        self._files.close()
        if self._own_client is not None:
            self._own_client.close()

    def _split(self, path: str) -> tuple[str, str]:
        fsname, _, rest = str(self._strip_protocol(path)).partition("/")
        return fsname, f"/{rest}"

    def _in_filesystem(self, path: str) -> tuple[str, str]:
        fsname, rest = self._split(path)
        if not fsname:
            raise MissingFile("InvalidPath", "the name of a filesystem is missing: paddleflow://FSNAME/path")
        return fsname, rest

    def _place(self, path: str) -> str:
        fsname, rest = self._in_filesystem(path)
        return f"{fsname}:{rest}"


def _client(server: str | None, user: str | None, password: str | None, config: str | None) -> Client:
    if server is None:
        return Client.from_config(config)
    host, _, port = server.rpartition(":") if server.rpartition(":")[2].isdecimal() else (server, "", "")
    client = Client(host, user or "", password or "", int(port or DEFAULT_PORT))
    try:
        client.login(user or "", password or "")
    except BaseException:
        client.close()
        raise
    return client


def _info(fsname: str, entry: FileEntry) -> dict[str, Any]:
    found = {
        "name": f"{fsname}{entry.path}".rstrip("/"),
        "size": 0 if entry.is_directory else entry.size,
        "type": entry.kind,
        "mtime": entry.modified,
        "version": entry.version,
    }
    return found | ({} if entry.link_target is None else {"islink": True, "destination": entry.link_target})


def _absolute(place: int | None, size: int, default: int) -> int:
    if place is None:
        return default
    return max(0, size + place) if place < 0 else min(place, size)


def _here(path: str) -> str:
    """A local path that cannot be taken for ``FSNAME:/path``."""
    return path if path.startswith("/") else f"./{path}"


def _tell(callback: Callback, now: Transferred) -> None:
    callback.set_size(now.total_bytes)
    callback.absolute_update(now.bytes)
