"""URLs and properties of storages: every type's rules, and what becomes of secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Duplicate, Invalid
from paddleflow.domain.filesystems import CacheConfig, check_cache_config, check_link_path, check_not_nested
from paddleflow.domain.ids import FilesystemId
from paddleflow.domain.storages import (
    FILESYSTEM_CODES,
    LINK_CODES,
    PLACEHOLDER,
    SECRETS,
    Storage,
    check_secrets_stay_home,
    opened_properties,
    parse_link_storage,
    parse_storage,
    sealed_properties,
    shown_properties,
    with_kept_secrets,
)
from paddleflow.testing.builders import THEN

KEYS = {"accessKey": "AK", "secretKey": "very secret", "endpoint": "s3.example.org"}
KERBEROS = {
    "kerberos.principal": "p",
    "kerberos.keytab.data": "a2V5",
    "kerberos.realm": "R",
    "kerberos.kdc": "10.0.0.1",
    "kerberos.namenode.principal": "nn/x",
}


def seal(text: str) -> str:
    return text[::-1]


@pytest.mark.parametrize(
    ("url", "properties", "type_", "address", "sub_path", "added"),
    [
        ("s3://bucket/a/b/", KEYS, "s3", "s3.example.org", "/a/b", {"bucket": "bucket"}),
        ("s3://bucket", KEYS, "s3", "s3.example.org", "/", {"bucket": "bucket"}),
        ("s3://bucket//x//y", KEYS, "s3", "s3.example.org", "/x/y", {"bucket": "bucket"}),
        (
            "s3://b.u-1/x",
            {**KEYS, "endpoint": "http://127.0.0.1:9000", "s3ForcePathStyle": "true"},
            "s3",
            "http://127.0.0.1:9000",
            "/x",
            {"bucket": "b.u-1"},
        ),
        ("bos://bucket/a", KEYS, "bos", "s3.example.org", "/a", {"bucket": "bucket", "region": "bj"}),
        (
            "hdfs://h1:8020,h2:8020/data",
            {"user": "u", "group": "g"},
            "hdfs",
            "h1:8020,h2:8020",
            "/data",
            {"dfs.namenode.address": "h1:8020,h2:8020"},
        ),
        ("hdfs://h/", KERBEROS, "hdfsWithKerberos", "h", "/", {"dfs.namenode.address": "h"}),
        ("sftp://host:22/up/load", {"user": "u", "password": "p"}, "sftp", "host:22", "/up/load", {}),
        ("sftp://[::1]:22/x", {"user": "u", "privateKey": "PEM"}, "sftp", "[::1]:22", "/x", {}),
        ("local:///mnt/data/", {}, "local", "", "/mnt/data", {}),
        ("local://mnt/data", {"a": "b"}, "local", "", "/mnt/data", {}),
        ("local:///mnt@2/data", {}, "local", "", "/mnt@2/data", {}),
    ],
)  # fmt: skip
def test_what_a_url_says(
    url: str, properties: dict[str, str], type_: str, address: str, sub_path: str, added: dict[str, str]
) -> None:
    storage = parse_storage(url, properties)
    assert (storage.type, storage.server_address, storage.sub_path) == (type_, address, sub_path)
    assert storage.properties == {**properties, **added}


@pytest.mark.parametrize(
    ("url", "properties", "code", "field", "told"),
    [
        ("nothing", {}, "url", "url", "type://address"),
        ("nfs://h/x", {}, "url", "url", "use one of s3"),
        ("glusterfs://h:vol", {}, "url", "url", "glusterfs cannot be served"),
        ("cfs://h/x", {}, "url", "url", "cfs cannot be served"),
        ("afs://h/x", {}, "url", "url", "afs cannot be served"),
        ("mock://x", {}, "url", "url", "mock cannot be served"),
        ("s3:///path", KEYS, "url", "url", "a bucket"),
        ("s3:bucket", KEYS, "url", "url", "s3://"),
        ("s3://b ucket/x", KEYS, "url", "url", "not the name of a bucket"),
        ("s3://bucket/../x", KEYS, "url", "url", "'..'"),
        ("hdfs://host:8020", {"user": "u", "group": "g"}, "url", "url", "directory"),
        ("sftp://h1,h2/x", {"user": "u", "password": "p"}, "url", "url", "several"),
        ("sftp://u:hidden@host/x", {"user": "u", "password": "p"}, "url", "url", "credentials"),
        ("hdfs://ho st/x", {"user": "u", "group": "g"}, "url", "url", "host:port"),
        ("local:///root", {}, "url", "url", "/root"),
        ("local:///", {}, "url", "url", "below /"),
        ("local:///a/../b", {}, "url", "url", "'..'"),
        ("s3://bucket/x", {}, "properties", "properties.accessKey", "needs it"),
        ("s3://bucket/x", {**KEYS, "secretKey": ""}, "properties", "properties.secretKey", "needs it"),
        ("s3://bucket/x", {**KEYS, "endpoint": "a b"}, "properties", "properties.endpoint", "https://"),
        ("s3://bucket/x", {**KEYS, "endpoint": "http://u:p@h"}, "properties", "properties.endpoint", "https://"),
        ("s3://bucket/x", {**KEYS, "s3ForcePathStyle": "yes"}, "properties", "properties.s3ForcePathStyle", "true"),
        ("s3://bucket/x", {**KEYS, "bucket": "other"}, "properties", "properties.bucket", "leave"),
        ("bos://bucket/x", {**KEYS, "sts": "true"}, "properties", "properties.sts", "sessionToken"),
        ("hdfs://h/x", {"user": "u"}, "properties", "properties.group", "needs it"),
        ("hdfs://h/x", {"kerberos.realm": "R"}, "properties", "properties.kerberos.principal", "needs it"),
        (
            "hdfs://h/x",
            {**KERBEROS, "kerberos.keytab.data": "!"},
            "properties",
            "properties.kerberos.keytab.data",
            "base64",
        ),
        ("sftp://h/x", {"user": "u"}, "properties", "properties.password", "privateKey"),
        ("local:///mnt/x", {"fileMode": "rw"}, "properties", "properties.fileMode", "0644"),
        ("local:///mnt/x", {"": "v"}, "properties", "properties.", "1 to 256"),
        ("local:///mnt/x", {"a": "x" * 70_000}, "properties", "properties.a", "at most"),
        ("local:///mnt/x", {f"k{n}": "" for n in range(65)}, "properties", "properties", "limit is 64"),
    ],
)  # fmt: skip
def test_what_is_refused(url: str, properties: dict[str, str], code: str, field: str, told: str) -> None:
    for codes in (FILESYSTEM_CODES, LINK_CODES):
        with pytest.raises(Invalid) as caught:
            parse_storage(url, properties, codes)
        assert caught.value.code == getattr(codes, code)
        assert caught.value.details["field"] == field
        assert told in caught.value.message
        assert "very secret" not in caught.value.message
        assert "hidden" not in caught.value.message


@given(url=st.text(), properties=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=4))
def test_nothing_but_a_storage_or_a_refusal_comes_of_any_text(url: str, properties: dict[str, str]) -> None:
    try:
        storage = parse_storage(url, properties)
    except Invalid:
        return
    assert storage.sub_path.startswith("/")
    assert ".." not in storage.sub_path.split("/")


def test_a_local_link_is_made_on_demand_only() -> None:
    with pytest.raises(Invalid, match="debug=true"):
        parse_link_storage("local:///mnt/x", {})
    assert parse_link_storage("local:///mnt/x", {"debug": "true"}).sub_path == "/mnt/x"


@given(st.dictionaries(st.sampled_from([*sorted(SECRETS), "accessKey", "user"]), st.text()))
def test_secrets_are_sealed_and_opened_and_never_shown(properties: dict[str, str]) -> None:
    sealed = sealed_properties(properties, seal)
    assert opened_properties(sealed, seal) == properties
    shown = shown_properties(sealed)
    for name, value in properties.items():
        if name in SECRETS and value:
            assert sealed[name] == "sealed:" + seal(value)
            assert shown[name] == PLACEHOLDER
        else:
            assert sealed[name] == shown[name] == value


def test_what_was_stored_before_secrets_were_sealed_is_left_alone() -> None:
    assert opened_properties({"password": "plain"}, seal) == {"password": "plain"}


def test_a_storage_does_not_print_its_secrets() -> None:
    assert "very secret" not in repr(parse_storage("s3://bucket/x", KEYS))


def test_a_placeholder_is_the_stored_secret() -> None:
    stored = sealed_properties(KEYS, seal)
    sent = shown_properties(stored) | {"region": "eu"}
    assert with_kept_secrets(sent, stored, seal, FILESYSTEM_CODES) == {**KEYS, "region": "eu"}
    with pytest.raises(Invalid) as caught:
        with_kept_secrets({"password": PLACEHOLDER}, stored, seal, FILESYSTEM_CODES)
    assert caught.value.details["field"] == "properties.password"


def test_a_hidden_secret_is_not_sent_elsewhere() -> None:
    home = Storage(type="s3", server_address="s3.example.org")
    away = Storage(type="s3", server_address="evil.example.org")
    hidden = {"secretKey": PLACEHOLDER}
    check_secrets_stay_home(home, home, hidden, FILESYSTEM_CODES)
    check_secrets_stay_home(home, away, {"secretKey": "given again"}, FILESYSTEM_CODES)
    with pytest.raises(Invalid, match="give the secret again"):
        check_secrets_stay_home(home, away, hidden, FILESYSTEM_CODES)


@pytest.mark.parametrize(
    ("path", "normal"), [("/a", "/a"), ("//a//b/", "/a/b"), ("/a/./b", "/a/b"), ("/ä ö/b", "/ä ö/b")]
)
def test_link_paths(path: str, normal: str) -> None:
    assert check_link_path(path) == normal


@pytest.mark.parametrize(
    "path", ["", "a", "/", "//", "/a/../b", "/.paddleflow/x", "/.paddleflow", "/a\x00", "/" + "ä" * 1000]
)
def test_bad_link_paths(path: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_link_path(path)
    assert caught.value.details["field"] == "fsPath"


@pytest.mark.parametrize(
    ("path", "taken", "error"),
    [
        ("/a", ["/a"], Duplicate),
        ("/a/b", ["/a"], Invalid),
        ("/a", ["/x", "/a/b/c"], Invalid),
        ("/ab", ["/a"], None),
        ("/a", ["/ab", "/b/a"], None),
    ],
)
def test_links_do_not_nest(path: str, taken: list[str], error: type[Exception] | None) -> None:
    if error is None:
        check_not_nested(path, taken)
        return
    with pytest.raises(error) as caught:
        check_not_nested(path, taken)
    assert getattr(caught.value, "code", "") == "LinkPathExist"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, None),
        ({"meta_driver": "disk", "cache_dir": "/c", "cpu_limit": "2", "memory_limit": "8Gi"}, None),
        ({"meta_driver": "mem", "block_size": 1 << 30, "quota": 5}, None),
        ({"meta_driver": "redis"}, "metaDriver"),
        ({"meta_driver": "disk"}, "cacheDir"),
        ({"cache_dir": "relative"}, "cacheDir"),
        ({"cache_dir": "/a/../b"}, "cacheDir"),
        ({"block_size": -1}, "blockSize"),
        ({"quota": -1}, "quota"),
        ({"quota": 2**63}, "quota"),
        ({"cpu_limit": "0"}, "resource.cpuLimit"),
        ({"cpu_limit": "2.5"}, "resource.cpuLimit"),
        ({"cpu_limit": "much"}, "resource.cpuLimit"),
        ({"memory_limit": "9Gi"}, "resource.memoryLimit"),
        ({"extra_config": {"k": "v" * 5000}}, "extraConfig.k"),
        ({"node_taint_toleration": {f"k{n}": "" for n in range(300)}}, "nodeTaintToleration"),
    ],
)
def test_cache_configuration(changes: dict[str, object], field: str | None) -> None:
    config = CacheConfig(fs_id=FilesystemId("fs-a-b"), created_at=THEN, updated_at=THEN, **changes)  # type: ignore[arg-type]
    if field is None:
        assert check_cache_config(config) == config
        return
    with pytest.raises(Invalid) as caught:
        check_cache_config(config)
    assert caught.value.details["field"] == field


@pytest.mark.parametrize(
    "name", ["SecretKey", "secret_key", "aws.secretAccessKey", "Password", "ssh-passphrase", "private_key", "authToken"]
)
def test_whatever_is_called_like_a_secret_is_one(name: str) -> None:
    """Also where no storage knows it: it may be a slip of the pen, and the value a real one."""
    sealed = sealed_properties({name: "real", "accessKey": "AK"}, lambda text: text[::-1])
    assert "real" not in sealed[name]
    assert shown_properties(sealed) == {name: "******", "accessKey": "AK"}
    assert opened_properties(sealed, lambda text: text[::-1]) == {name: "real", "accessKey": "AK"}


@pytest.mark.parametrize("name", ["accessKey", "user", "endpoint", "bucket", "region", "s3ForcePathStyle", "hostKey"])
def test_other_properties_are_shown(name: str) -> None:
    assert shown_properties({name: "value"}) == {name: "value"}
