"""From the properties of a filesystem to its store: where it is, who it is, and what is wrong with it."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from paddleflow.adapters.objects import TYPES, open_store, store_identity
from paddleflow.adapters.objects.endpoints import open_s3, read_endpoint
from paddleflow.adapters.objects.keys import check_key
from paddleflow.adapters.objects.retry import Patience, Retry
from paddleflow.domain.errors import Denied, Invalid, NotFound, Unavailable
from tests.objects.servers import S3Server
from tests.ports import reserve_port

KEYS = {"accessKey": "a", "secretKey": "s", "bucket": "bucket"}
ONCE = Retry(patience=Patience(attempts=1))


@pytest.mark.parametrize(
    ("type", "properties", "connects_to", "host", "path"),
    [
        ("s3", {}, ("bucket.s3.us-east-1.amazonaws.com", 443), "bucket.s3.us-east-1.amazonaws.com", ""),
        ("s3", {"region": "eu-x"}, ("bucket.s3.eu-x.amazonaws.com", 443), "bucket.s3.eu-x.amazonaws.com", ""),
        ("s3", {"endpoint": "http://s3.x.org"}, ("bucket.s3.x.org", 80), "bucket.s3.x.org", ""),
        ("s3", {"endpoint": "s3.x.org:9000"}, ("bucket.s3.x.org", 9000), "bucket.s3.x.org:9000", ""),
        ("s3", {"endpoint": "https://x.org", "s3ForcePathStyle": "true"}, ("x.org", 443), "x.org", "/bucket"),
        ("s3", {"endpoint": "http://127.0.0.1:9000"}, ("127.0.0.1", 9000), "127.0.0.1:9000", "/bucket"),
        ("s3", {"endpoint": "http://[::1]:9000/"}, ("::1", 9000), "[::1]:9000", "/bucket"),
        ("s3", {"endpoint": "http://localhost:80"}, ("localhost", 80), "localhost", "/bucket"),
        ("bos", {}, ("bucket.s3.bj.bcebos.com", 443), "bucket.s3.bj.bcebos.com", ""),
        ("bos", {"endpoint": "gz.bcebos.com"}, ("bucket.s3.gz.bcebos.com", 443), "bucket.s3.gz.bcebos.com", ""),
        ("bos", {"endpoint": "s3.su.bcebos.com"}, ("bucket.s3.su.bcebos.com", 443), "bucket.s3.su.bcebos.com", ""),
    ],
)
def test_where_a_bucket_is(
    type: str, properties: dict[str, str], connects_to: tuple[str, int], host: str, path: str
) -> None:
    endpoint = read_endpoint(type, "", KEYS | properties)
    assert (endpoint.host, endpoint.port) == connects_to
    assert (endpoint.place.host, endpoint.place.path) == (host, path)


@pytest.mark.parametrize(
    ("properties", "field"),
    [
        ({"bucket": ""}, "bucket"),
        ({"bucket": "a/b"}, "bucket"),
        ({"bucket": "../x"}, "bucket"),
        ({"accessKey": ""}, "accessKey"),
        ({"secretKey": ""}, "secretKey"),
        ({"endpoint": "ftp://x"}, "endpoint"),
        ({"endpoint": "http://x:port"}, "endpoint"),
        ({"endpoint": "http://x/path"}, "endpoint"),
        ({"endpoint": "http://user:pass@x"}, "endpoint"),
        ({"endpoint": "http://"}, "endpoint"),
        ({"s3ForcePathStyle": "maybe"}, "s3ForcePathStyle"),
        ({"insecureSkipVerify": "1"}, "insecureSkipVerify"),
    ],
    ids=str,
)
def test_bad_properties_are_named(properties: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid, match=rf"Field\[{field}\]"):
        open_store("s3", "", "", KEYS | properties)


def test_unknown_types_and_bad_roots_are_refused() -> None:
    with pytest.raises(Invalid, match="glusterfs"):
        open_store("glusterfs", "", "", {})
    with pytest.raises(Invalid, match="key"):
        open_store("s3", "", "a/../b", KEYS)


def test_check_says_what_is_wrong(rclone_s3: S3Server) -> None:
    good = rclone_s3.properties("bucket")

    def check(**changed: str) -> None:
        store = open_s3("s3", "", "some/where", good | changed, retry=ONCE)
        try:
            store.check()
        finally:
            store.close()

    check()
    with pytest.raises(Denied, match="accessKey"):
        check(accessKey="wrong")
    with pytest.raises(Denied, match="secretKey"):
        check(secretKey="wrong")
    with pytest.raises(NotFound, match="no bucket no-such-bucket"):
        check(bucket="no-such-bucket")
    with pytest.raises(Unavailable, match="cannot be reached"):
        check(endpoint=f"http://127.0.0.1:{reserve_port()}")
    with pytest.raises(Unavailable, match="does not speak TLS"):
        check(endpoint=f"https://127.0.0.1:{rclone_s3.port}")


def test_something_else_than_s3_is_noticed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        store = open_s3("s3", "", "", KEYS | {"endpoint": endpoint}, retry=ONCE)
        import threading

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<p>Hello</p>\n")
            connection.recv(1)
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Unavailable, match="S3"):
            list(store.list(""))
        store.close()
        thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    directory = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (directory / "cert").write_bytes(built.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (directory / "key").write_bytes(pem)
    return directory / "cert", directory / "key"


def test_a_certificate_is_checked_unless_told_not_to(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    from tests.objects.contract import get, put
    from tests.objects.servers import start_rclone_s3

    (tmp_path / "buckets" / "bucket").mkdir(parents=True)
    server = start_rclone_s3(tmp_path / "buckets", certificate=certificate)
    try:
        assert server.endpoint.startswith("https://")
        strict = open_s3("s3", "", "", server.properties("bucket"), retry=ONCE)
        with pytest.raises(Unavailable, match="insecureSkipVerify"):
            strict.check()
        strict.close()
        store = open_s3("s3", "", "", server.properties("bucket", insecureSkipVerify="true"))
        store.check()
        put(store, "f", b"over TLS" * 1_500_000)
        assert get(store, "f") == b"over TLS" * 1_500_000
        store.close()
    finally:
        server.stop()
    assert ssl.OPENSSL_VERSION


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("local", "", "/a/b", {}), ("local", "ignored", "a/b/", {})),
        (("s3", "", "p", KEYS), ("s3", "bucket", "/p/", {"endpoint": "s3.us-east-1.amazonaws.com:443"})),
        (("s3", "", "p", KEYS), ("s3", "", "p", KEYS | {"accessKey": "b", "secretKey": "x", "sessionToken": "y"})),
        (("bos", "", "", KEYS | {"endpoint": "bj.bcebos.com"}), ("bos", "", "", KEYS)),
        (("hdfs", "b:1,a:1", "/x", {}), ("hdfsWithKerberos", "A:1,b:1", "x/", {"kerberos.keytab.data": "secret"})),
        (("sftp", "h:22", "x", {"user": "u"}), ("sftp", "H:22", "/x", {"user": "u", "password": "p"})),
    ],
    ids=str,
)
def test_one_storage_is_one_identity(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    assert store_identity(*one) == store_identity(*other)  # type: ignore[arg-type]
    assert len(store_identity(*one)) == 16  # type: ignore[arg-type]
    int(store_identity(*one), 16)  # type: ignore[arg-type]


def test_different_storage_is_another_identity(tmp_path: Path) -> None:
    places = [
        ("local", "", str(tmp_path), {}),
        ("local", "", str(tmp_path / "x"), {}),
        ("s3", "", "", KEYS),
        ("s3", "", "p", KEYS),
        ("s3", "", "", KEYS | {"bucket": "other"}),
        ("s3", "", "", KEYS | {"endpoint": "http://other.org"}),
        ("sftp", "h:22", "x", {"user": "u"}),
        ("sftp", "h:22", "x", {"user": "v"}),
        ("hdfs", "h:22", "x", {}),
    ]
    assert len({store_identity(*place) for place in places}) == len(places)
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert store_identity("local", "", str(tmp_path / "link"), {}) == store_identity(*places[1])


def test_a_store_loads_only_what_it_needs() -> None:
    program = (
        "import sys\n"
        "from paddleflow.adapters.objects import open_store\n"
        "open_store('s3', '', '', {'accessKey': 'a', 'secretKey': 's', 'bucket': 'bucket'})\n"
        "open_store('local', '', '/tmp', {})\n"
        "print([name for name in ('paramiko', 'opendal', 'httpx', 'sqlalchemy') if name in sys.modules])\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
    assert set(TYPES) >= {"local", "s3", "bos", "hdfs", "sftp", "memory"}


def test_keys() -> None:
    for key in ("", "a", "a/b c", "...", "a/.../b", "..a", "\udce9"):
        assert check_key(key) == key
