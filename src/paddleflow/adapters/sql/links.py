"""Links and cache configurations of filesystems: rows and repositories."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.storage_tables import cache_configs, links
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.filesystems import CacheConfig, Link
from paddleflow.domain.ids import FilesystemId
from paddleflow.domain.queries import Page, PageRequest

_FIND = select_by(links, "fs_id", "fs_path")
_ADD = insert_row(links)
_DELETE = delete_by(links, "fs_id", "fs_path")
_OF = Statement(select(links).where(links.c.fs_id == bindparam("fs_id")).order_by(links.c.seq))
_PAGE = Statement(
    select(links)
    .where(links.c.fs_id == bindparam("fs_id"), links.c.seq > bindparam("after"))
    .order_by(links.c.seq)
    .limit(bindparam("limit"))
)


def _link(row: Row) -> Link:
    seq, fs_id, fs_path, owner, type, server_address, sub_path, properties, created_at, updated_at = row
    return Link(
        fs_id=fs_id,
        fs_path=fs_path,
        owner=owner,
        type=type,
        server_address=server_address,
        sub_path=sub_path,
        properties=mapping_from_json(properties),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
    )


class SqlLinks:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, fs_id: FilesystemId, fs_path: str) -> Link | None:
        row = self._session.row(_FIND, {"fs_id": fs_id, "fs_path": fs_path})
        return None if row is None else _link(row)

    def add(self, link: Link) -> Link:
        row = {
            "fs_id": link.fs_id,
            "fs_path": link.fs_path,
            "owner": link.owner,
            "type": link.type,
            "server_address": link.server_address,
            "sub_path": link.sub_path,
            "properties": mapping_to_json(link.properties),
            "created_at": to_micros(link.created_at),
            "updated_at": to_micros(link.updated_at),
        }
        seq = self._session.insert(_ADD, row, kind="link", name=f"{link.fs_id}/{link.fs_path}")
        return replace(link, seq=seq)

    def delete(self, fs_id: FilesystemId, fs_path: str) -> None:
        self._session.change(_DELETE, {"fs_id": fs_id, "fs_path": fs_path})

    def of_filesystem(self, fs_id: FilesystemId) -> tuple[Link, ...]:
        return tuple(_link(row) for row in self._session.rows(_OF, {"fs_id": fs_id}))

    def page(self, fs_id: FilesystemId, request: PageRequest) -> Page[Link]:
        parameters = {"fs_id": fs_id, "after": request.after, "limit": request.limit + 1}
        return page_of([_link(row) for row in self._session.rows(_PAGE, parameters)], request)


_CONFIG = select_by(cache_configs, "fs_id")
_ADD_CONFIG = insert_row(cache_configs)
_SAVE_CONFIG = update_version(cache_configs, "fs_id")
_DELETE_CONFIG = delete_by(cache_configs, "fs_id")
_SETTINGS = (
    "cache_dir",
    "quota",
    "meta_driver",
    "block_size",
    "debug",
    "clean_cache",
    "cpu_limit",
    "memory_limit",
)
_MAPPINGS = ("node_taint_toleration", "extra_config")


def _config_row(config: CacheConfig, version: int) -> dict[str, object]:
    settings: dict[str, object] = {name: getattr(config, name) for name in _SETTINGS}
    settings |= {name: dict(getattr(config, name)) for name in _MAPPINGS}
    return {
        "fs_id": config.fs_id,
        "settings": mapping_to_json(settings),
        "created_at": to_micros(config.created_at),
        "updated_at": to_micros(config.updated_at),
        "version": version,
    }


class SqlCacheConfigs:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, fs_id: FilesystemId) -> CacheConfig | None:
        row = self._session.row(_CONFIG, {"fs_id": fs_id})
        if row is None:
            return None
        seq, fs_id, settings, created_at, updated_at, version = row
        return CacheConfig(
            fs_id=fs_id,
            **mapping_from_json(settings),
            created_at=from_micros(created_at),
            updated_at=from_micros(updated_at),
            seq=seq,
            version=version,
        )

    def add(self, config: CacheConfig) -> CacheConfig:
        seq = self._session.insert(_ADD_CONFIG, _config_row(config, 1), kind="cache config", name=config.fs_id)
        return replace(config, seq=seq, version=1)

    def save(self, config: CacheConfig) -> CacheConfig:
        version, seen = config.version + 1, config.version
        row = _config_row(config, version)
        self._session.save(_SAVE_CONFIG, row, kind="cache config", name=config.fs_id, seen=seen)
        return replace(config, version=version)

    def delete(self, fs_id: FilesystemId) -> None:
        self._session.change(_DELETE_CONFIG, {"fs_id": fs_id})
