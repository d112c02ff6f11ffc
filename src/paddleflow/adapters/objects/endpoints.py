"""Where an S3 server is: the properties of a filesystem, read and checked, and the store they name.

``s3ForcePathStyle`` puts the bucket into the path; otherwise it is part of the host name, unless the server has no name
but an address. ``bos`` is the same with other defaults: BOS speaks S3 at ``s3.<region>.bcebos.com``.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from paddleflow.adapters.objects.bucket import Bucket, Place
from paddleflow.adapters.objects.connections import Connections, Limits
from paddleflow.adapters.objects.keys import check_key
from paddleflow.adapters.objects.retry import Retry
from paddleflow.adapters.objects.s3 import S3Store
from paddleflow.adapters.objects.signing import Credentials, Signer
from paddleflow.domain.errors import invalid_field

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_BOS_NATIVE = re.compile(r"([a-z]+)\.bcebos\.com")
_DEFAULT_REGION = {"s3": "us-east-1", "bos": "bj"}
_USUAL_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    host: str
    """To connect to."""
    port: int
    region: str
    is_trusted_blindly: bool
    server: str
    """Without the bucket, written in one way only."""
    place: Place


def read_endpoint(type: str, address: str, properties: Mapping[str, str]) -> Endpoint:
    bucket = properties.get("bucket") or address
    if not _BUCKET.fullmatch(bucket):
        raise invalid_field("bucket", f"{bucket!r} is not the name of a bucket: 3 to 63 letters, digits, dots, dashes")
    region = properties.get("region") or _DEFAULT_REGION[type]
    scheme, server, port = _read_url(properties.get("endpoint") or _default_endpoint(type, region))
    if type == "bos" and (native := _BOS_NATIVE.fullmatch(server)):
        server = f"s3.{native.group(1)}.bcebos.com"
    is_in_path = _is_true(properties, "s3ForcePathStyle") or _is_address(server)
    host = server if is_in_path else f"{bucket}.{server}"
    shown = f"[{host}]" if ":" in host else host
    return Endpoint(
        host=host,
        port=port,
        region=region,
        is_trusted_blindly=_is_true(properties, "insecureSkipVerify"),
        server=f"{server}:{port}",
        place=Place(
            host=shown if port == _USUAL_PORT[scheme] else f"{shown}:{port}",
            path=f"/{bucket}" if is_in_path else "",
            bucket=bucket,
            is_encrypted=scheme == "https",
        ),
    )


def open_s3(
    type: str,
    address: str,
    root: str,
    properties: Mapping[str, str],
    *,
    limits: Limits | None = None,
    retry: Retry | None = None,
) -> S3Store:
    endpoint = read_endpoint(type, address, properties)
    credentials = Credentials(
        access_key=_required(properties, "accessKey"),
        secret_key=_required(properties, "secretKey"),
        session_token=properties.get("sessionToken") or "",
    )
    connections = Connections(endpoint.host, endpoint.port, tls=_tls(endpoint), limits=limits)
    bucket = Bucket(endpoint.place, connections, Signer(credentials, endpoint.region), retry or Retry())
    return S3Store(bucket, check_key(root.strip("/")))


def _tls(endpoint: Endpoint) -> ssl.SSLContext | None:
    if not endpoint.place.is_encrypted:
        return None
    context = ssl.create_default_context()
    if endpoint.is_trusted_blindly:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _default_endpoint(type: str, region: str) -> str:
    return f"https://s3.{region}.bcebos.com" if type == "bos" else f"https://s3.{region}.amazonaws.com"


def _read_url(endpoint: str) -> tuple[str, str, int]:
    parsed = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
    try:
        port = parsed.port
    except ValueError:
        raise invalid_field("endpoint", f"{endpoint!r} has no port number after the colon") from None
    if parsed.scheme not in _USUAL_PORT or not parsed.hostname:
        raise invalid_field("endpoint", f"{endpoint!r} should be like https://host:port")
    if parsed.path.strip("/") or parsed.query or parsed.username is not None:
        raise invalid_field("endpoint", "give the server alone, without a path, a query or a user")
    return parsed.scheme, parsed.hostname, port or _USUAL_PORT[parsed.scheme]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    value = (properties.get(name) or "false").lower()
    if value not in {"true", "false"}:
        raise invalid_field(name, f"{value!r} is neither true nor false")
    return value == "true"


def _required(properties: Mapping[str, str], name: str) -> str:
    value = properties.get(name)
    if not value:
        raise invalid_field(name, "it is missing")
    return value
