"""Options of a mount as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.files.mounting import NO_EFFECT, OPTIONS, wishes


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("ro", "", "read_only", True),
        ("rw", "", "read_only", False),
        ("ro", "false", "read_only", False),
        ("dataset", "true", "dataset", True),
        ("write-back", "", "write_back", True),
        ("write_back", "", "write_back", True),
        ("allow-other", "yes", "allow_other", True),
        ("cache-dir", "/x", "cache_dir", "/x"),
        ("data-cache-path", "/x", "cache_dir", "/x"),
        ("cache-size", "20G", "cache_size", 20 << 30),
        ("cache-size", "512MiB", "cache_size", 512 << 20),
        ("cache-size", "1.5k", "cache_size", 1536),
        ("memory-cache-size", "1048576", "memory_cache_size", 1 << 20),
        ("meta-ttl", "5", "meta_ttl", 5.0),
        ("meta-cache-expire", "500ms", "meta_ttl", 0.5),
        ("meta-ttl", "2m", "meta_ttl", 120.0),
        ("negative-ttl", "0", "negative_ttl", 0.0),
        ("file-mode", "0600", "file_mode", 0o600),
        ("dir-mode", "755", "dir_mode", 0o755),
        ("uid", "1000", "uid", 1000),
        ("snapshot", "snap-1", "snapshot", "snap-1"),
    ],
)
def test_options(name: str, text: str, field: str, value: Any) -> None:
    assert wishes({name: text}) == ({field: value}, [])


def test_options_of_the_original_without_a_meaning_are_told() -> None:
    fields, told = wishes({"block-size": "20971520", "meta-cache-driver": "mem", "ro": ""})
    assert fields == {"read_only": True}
    assert len(told) == 2
    assert told[0].startswith("block-size has no effect: ")
    assert not set(NO_EFFECT) & set(OPTIONS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"read-only": ""}, "option[read-only] is unknown; there are ro, "),
        ({"cache-size": "much"}, "option[cache-size] should be a size such as 20G"),
        ({"meta-ttl": "soon"}, "option[meta-ttl] should be a time"),
        ({"ro": "perhaps"}, "option[ro] should be true or false"),
        ({"uid": "root"}, "option[uid] should be a whole number"),
        ({"file-mode": "rw"}, "option[file-mode] should be permission bits"),
        ({"file-mode": "77777"}, "option[file-mode] should be permission bits"),
        ({"cache-dir": ""}, "option[cache-dir] should be given"),
        ({"cache-dir": "/a", "data-cache-path": "/b"}, "says the same as option[cache-dir]"),
        ({"write-back": "", "ro": ""}, "option[write-back] has no meaning"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(Invalid) as caught:
        wishes(options)
    assert said in caught.value.message
