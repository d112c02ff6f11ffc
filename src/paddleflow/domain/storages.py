"""Storages: what a URL and its properties say about where bytes lie, and which of the properties are secrets.

Pure rules, one function for each type. Refuses a URL that carries credentials: URLs are shown and logged, properties
that are secrets are sealed. A stored secret begins with a mark, so that one can tell it from what was stored before
secrets were sealed.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paddleflow.domain.errors import Invalid
from paddleflow.domain.names import can_be_kept, check_text

S3, BOS, HDFS, HDFS_KERBEROS, SFTP, LOCAL = "s3", "bos", "hdfs", "hdfsWithKerberos", "sftp", "local"
SERVED_SCHEMES = (S3, BOS, HDFS, SFTP, LOCAL)
_NOT_SERVED = ("mock", "cfs", "glusterfs", "afs")
"""Types of the original that are mounted by somebody else's program, or only by Kubernetes."""

SECRETS = frozenset({"secretKey", "password", "privateKey", "sessionToken", "kerberos.keytab.data"})
_SECRET_WORDS = ("secret", "password", "passwd", "passphrase", "privatekey", "token", "keytab", "credential")
PLACEHOLDER = "******"
"""Shown instead of a secret. Sent back in an update it means: as it is stored."""
_SEALED = "sealed:"

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_ADDRESS = re.compile(r"[A-Za-z0-9._\-\[\]:]+(,[A-Za-z0-9._\-\[\]:]+)*")
_ENDPOINT = re.compile(r"(https?://)?[A-Za-z0-9._\-\[\]:]+(/([A-Za-z0-9._~-][A-Za-z0-9._~/-]*)?)?")
_NUMBER = re.compile(r"[0-9]{1,5}")
_MOST_PROPERTIES = 64
_URL_LIMIT = 4096
_VALUE_LIMIT = 64 * 1024
_KERBEROS_NEEDED = (
    "kerberos.principal",
    "kerberos.keytab.data",
    "kerberos.realm",
    "kerberos.kdc",
    "kerberos.namenode.principal",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where bytes lie. Whether its secrets are sealed or open is said by whoever hands it on; shown they never are."""

    type: str
    server_address: str = ""
    """Of s3 and bos: the endpoint. Of hdfs and sftp: host and port. Of local: empty."""
    sub_path: str = ""
    """Absolute. Of local: the directory on the host."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """What refusals are called: a filesystem and a link have the same rules and codes of their own."""

    url: str = "InvalidFileSystemParamsURL"
    properties: str = "InvalidFileSystemParamsProperties"


FILESYSTEM_CODES = Codes()
LINK_CODES = Codes(url="InvalidLinkURL", properties="InvalidLinkProperties")


def parse_storage(url: str, properties: Mapping[str, str], codes: Codes = FILESYSTEM_CODES) -> Storage:
    """The storage of a URL and its open properties, or what is wrong with them."""
    check_text("url", url, limit=_URL_LIMIT, code=codes.url)
    scheme, separator, rest = url.partition(":")
    shown = url[:80] if "@" not in url else scheme[:20] + "://…"
    if not separator or not can_be_kept(url):
        raise _bad_url(f"url[{shown}] is not a URL; write type://address/path, such as s3://bucket/data", codes)
    if scheme in _NOT_SERVED:
        raise _bad_url(
            f"url[{shown}]: storage of type {scheme} cannot be served by this platform; "
            f"use one of {', '.join(SERVED_SCHEMES)}",
            codes,
        )
    if scheme not in SERVED_SCHEMES:
        raise _bad_url(f"url[{shown}] has an unknown type; use one of {', '.join(SERVED_SCHEMES)}", codes)
    if scheme != LOCAL and "@" in rest.lstrip("/").partition("/")[0]:
        raise _bad_url(f"url[{shown}] holds credentials; give user and password as properties", codes)
    if ".." in rest.split("/"):
        raise _bad_url(f"url[{shown}] may not contain '..'", codes)
    given = _checked(properties, codes)
    if scheme == LOCAL:
        return Storage(type=LOCAL, sub_path=_local_directory(shown, rest, codes), properties=given)
    address, path = _address_and_path(shown, scheme, rest, codes)
    match scheme:
        case "hdfs":
            return _hdfs(address, path, given, codes)
        case "sftp":
            return _sftp(address, path, given, codes)
        case _:
            return _bucket(scheme, shown, address, path, given, codes)


def parse_link_storage(url: str, properties: Mapping[str, str]) -> Storage:
    """The same for a link, which may stand for a directory of the host only on demand: nodes may not have it."""
    storage = parse_storage(url, properties, LINK_CODES)
    if storage.type == LOCAL and properties.get("debug") != "true":
        raise _bad_property(
            "debug", "a link to a local directory needs debug=true: every node must have it", LINK_CODES
        )
    return storage


def _bad_url(message: str, codes: Codes) -> Invalid:
    return Invalid(message, code=codes.url, details={"field": "url"})


def _bad_property(name: str, problem: str, codes: Codes) -> Invalid:
    return Invalid(
        f"properties[{name[:80]}] is invalid, {problem}", code=codes.properties, details={"field": f"properties.{name}"}
    )


def _checked(properties: Mapping[str, str], codes: Codes) -> dict[str, str]:
    if len(properties) > _MOST_PROPERTIES:
        raise Invalid(
            f"properties has {len(properties)} entries, the limit is {_MOST_PROPERTIES}",
            code=codes.properties,
            details={"field": "properties"},
        )
    for name, value in properties.items():
        if not name or not can_be_kept(name) or len(name) > 256:
            raise _bad_property(name.replace("\x00", ""), "the name must have 1 to 256 characters of plain text", codes)
        if len(value) > _VALUE_LIMIT or not can_be_kept(value):
            raise _bad_property(name, f"the value must be plain text of at most {_VALUE_LIMIT} characters", codes)
    for name in ("fileMode", "dirMode"):
        if name in properties and not _NUMBER.fullmatch(properties[name]):
            raise _bad_property(name, "write the permission bits in digits, such as 0644", codes)
    return dict(properties)


def _local_directory(shown: str, rest: str, codes: Codes) -> str:
    directory = posixpath.normpath("/" + rest.lstrip("/"))
    if directory.split("/")[1] in ("", "root"):
        raise _bad_url(f"url[{shown}] must name a directory below / other than /root", codes)
    return directory


def _address_and_path(shown: str, scheme: str, rest: str, codes: Codes) -> tuple[str, str]:
    if not rest.startswith("//"):
        raise _bad_url(f"url[{shown}] must be written {scheme}://…/path", codes)
    address, slash, path = rest[2:].partition("/")
    if not address:
        what = "a bucket" if scheme in (S3, BOS) else "a host"
        raise _bad_url(f"url[{shown}] must name {what} behind {scheme}://", codes)
    if not slash and scheme in (HDFS, SFTP):
        raise _bad_url(f"url[{shown}] must name a directory: {scheme}://host:port/directory", codes)
    return address, "/" + posixpath.normpath(path).lstrip("/") if path.strip("/") else "/"


def _bucket(scheme: str, shown: str, bucket: str, path: str, given: dict[str, str], codes: Codes) -> Storage:
    if not _BUCKET.fullmatch(bucket):
        raise _bad_url(f"url[{shown}]: [{bucket[:80]}] is not the name of a bucket", codes)
    _need(given, ("accessKey", "secretKey", "endpoint"), scheme, codes)
    if not _ENDPOINT.fullmatch(given["endpoint"]):
        raise _bad_property("endpoint", "write a host, or a URL such as https://s3.example.org", codes)
    for name in ("s3ForcePathStyle", "insecureSkipVerify"):
        if given.get(name, "false").lower() not in ("true", "false"):
            raise _bad_property(name, "write true or false", codes)
    if given.get("bucket", bucket) != bucket:
        raise _bad_property("bucket", f"the url names bucket [{bucket}]; leave this property out", codes)
    if scheme == BOS:
        given.setdefault("region", "bj")
        if given.get("sts", "false").lower() != "false":
            raise _bad_property("sts", "this platform cannot ask for temporary keys; give a sessionToken", codes)
    given["bucket"] = bucket
    return Storage(type=scheme, server_address=given["endpoint"], sub_path=path, properties=given)


def _hdfs(address: str, path: str, given: dict[str, str], codes: Codes) -> Storage:
    _check_address(HDFS, address, codes)
    kerberos = any(name.startswith("kerberos.") for name in given)
    if kerberos:
        _need(given, _KERBEROS_NEEDED, HDFS, codes)
        _check_base64("kerberos.keytab.data", given["kerberos.keytab.data"], codes)
    else:
        _need(given, ("user", "group"), HDFS, codes)
    given["dfs.namenode.address"] = address
    return Storage(type=HDFS_KERBEROS if kerberos else HDFS, server_address=address, sub_path=path, properties=given)


def _sftp(address: str, path: str, given: dict[str, str], codes: Codes) -> Storage:
    _check_address(SFTP, address, codes)
    if "," in address:
        raise _bad_url(f"sftp reaches one host, and [{address[:80]}] are several", codes)
    _need(given, ("user",), SFTP, codes)
    if not given.get("password") and not given.get("privateKey"):
        raise _bad_property("password", "sftp needs a password or a privateKey", codes)
    return Storage(type=SFTP, server_address=address, sub_path=path, properties=given)


def _check_address(scheme: str, address: str, codes: Codes) -> None:
    if not _ADDRESS.fullmatch(address):
        raise _bad_url(f"[{address[:80]}] is not host:port, which {scheme}:// needs", codes)


def _check_base64(name: str, value: str, codes: Codes) -> None:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise _bad_property(name, "it must be base64", codes) from error


def _need(given: Mapping[str, str], names: tuple[str, ...], scheme: str, codes: Codes) -> None:
    for name in names:
        if not given.get(name):
            raise _bad_property(name, f"storage of type {scheme} needs it", codes)


# Secrets.


def is_secret(name: str) -> bool:
    """The ones we use, and whatever else is called like one: a misspelt or unknown property is kept as it was sent."""
    plain = name.lower().replace("_", "").replace("-", "").replace(".", "")
    return name in SECRETS or any(word in plain for word in _SECRET_WORDS)


def sealed_properties(properties: Mapping[str, str], seal: Callable[[str], str]) -> dict[str, str]:
    """As they are stored."""
    return {name: _SEALED + seal(value) if is_secret(name) and value else value for name, value in properties.items()}


def opened_properties(properties: Mapping[str, str], unseal: Callable[[str], str]) -> dict[str, str]:
    """Stored properties with their secrets readable; only for whoever opens the storage."""
    return {
        name: unseal(value.removeprefix(_SEALED)) if is_secret(name) and value.startswith(_SEALED) else value
        for name, value in properties.items()
    }


def shown_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties as anybody may see them."""
    return {name: PLACEHOLDER if is_secret(name) and value else value for name, value in properties.items()}


def opened(storage: Storage, unseal: Callable[[str], str]) -> Storage:
    return Storage(
        type=storage.type,
        server_address=storage.server_address,
        sub_path=storage.sub_path,
        properties=opened_properties(storage.properties, unseal),
    )


def with_kept_secrets(
    properties: Mapping[str, str], stored: Mapping[str, str], unseal: Callable[[str], str], codes: Codes
) -> dict[str, str]:
    """New properties in which every placeholder is the stored secret again."""
    merged = dict(properties)
    for name in filter(is_secret, properties):
        if merged[name] != PLACEHOLDER:
            continue
        if not stored.get(name):
            raise _bad_property(name, f"{PLACEHOLDER} stands for a stored secret, and none is stored", codes)
        merged[name] = opened_properties({name: stored[name]}, unseal)[name]
    return merged


def check_secrets_stay_home(before: Storage, after: Storage, sent: Mapping[str, str], codes: Codes) -> None:
    """A secret somebody cannot read must not be sendable to an address of their choosing."""
    moved = (before.type, before.server_address) != (after.type, after.server_address)
    hidden = sorted(name for name, value in sent.items() if is_secret(name) and value == PLACEHOLDER)
    if moved and hidden:
        raise _bad_property(hidden[0], "the storage's address changes, so give the secret again", codes)
