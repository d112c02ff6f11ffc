"""Keepsakes: what was known of a file, as one line of text for the log that a successor reads."""

from __future__ import annotations

import json
from dataclasses import asdict

from paddleflow.pfs.backstage import Found, ObjectVersion
from paddleflow.pfs.vfs.held import Chosen
from paddleflow.ports.objects import ObjectEntry, Traits


def remark_of(chosen: Chosen) -> str:
    return json.dumps(asdict(chosen), separators=(",", ":"))


def chosen_in(remark: str) -> Chosen:
    return Chosen(**json.loads(remark))


def keepsake_of(found: Found | None) -> str:
    return "" if found is None else json.dumps(asdict(found), separators=(",", ":"))


def found_in(keepsake: str) -> Found | None:
    if not keepsake:
        return None
    record = json.loads(keepsake)
    version = record["version"]
    return Found(
        ObjectEntry(**record["entry"]),
        None if version is None else ObjectVersion(**version),
        Traits(**record["traits"]),
    )
