"""Signatures: the examples in the protocol's documentation, and the maker's own library as the judge of the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest import mock

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.adapters.objects.signing import Credentials, Signer, digest_of, encode_path, encode_query

ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HOST = "examplebucket.s3.amazonaws.com"
MOMENT = "20130524T000000Z"

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def signature_of(headers: dict[str, str]) -> str:
    return headers["authorization"].rpartition("Signature=")[2]


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ([("lifecycle", "")], "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ([("max-keys", "2"), ("prefix", "J")], "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_the_documented_examples(query: list[tuple[str, str]], signature: str) -> None:
    signer = Signer(Credentials(ACCESS_KEY, SECRET_KEY), "us-east-1")
    signed = signer.sign("GET", "/", encode_query(query), {"host": HOST}, digest_of(b""), moment=MOMENT)
    assert signature_of(signed) == signature


@given(
    method=st.sampled_from(["GET", "PUT", "HEAD", "DELETE", "POST"]),
    key=TEXT.filter(lambda key: key and not key.startswith("/") and "//" not in key),
    query=st.dictionaries(TEXT.filter(bool), TEXT, max_size=4),
    copy_source=TEXT,
    token=st.sampled_from(["", "a/session+token=="]),
    body=st.binary(max_size=50),
)
def test_the_makers_library_signs_the_same(
    method: str, key: str, query: dict[str, str], copy_source: str, token: str, body: bytes
) -> None:
    path, encoded = encode_path("/" + key), encode_query(list(query.items()))
    headers = {"host": HOST, "x-amz-copy-source": encode_path("/" + copy_source)}
    signed = Signer(Credentials(ACCESS_KEY, SECRET_KEY, token), "eu-north-1").sign(
        method, path, encoded, headers, digest_of(body), moment=MOMENT
    )
    theirs = AWSRequest(
        method=method, url=f"http://{HOST}{path}" + (f"?{encoded}" if encoded else ""), headers=headers, data=body
    )
    theirs.context["payload_signing_enabled"] = True
    with mock.patch("botocore.auth.get_current_datetime", return_value=datetime(2013, 5, 24, tzinfo=UTC)):
        S3SigV4Auth(BotoCredentials(ACCESS_KEY, SECRET_KEY, token or None), "s3", "eu-north-1").add_auth(theirs)
    assert signature_of(signed) == theirs.headers["Authorization"].rpartition("Signature=")[2]


def test_a_day_has_its_own_key() -> None:
    signer = Signer(Credentials(ACCESS_KEY, SECRET_KEY), "us-east-1")

    def sign(moment: str) -> str:
        return signature_of(signer.sign("GET", "/", "", {"host": HOST}, digest_of(b""), moment=moment))

    first = sign(MOMENT)
    assert sign("20130525T000000Z") != first
    assert sign(MOMENT) == first


def test_secrets_are_not_shown() -> None:
    shown = repr(Credentials(ACCESS_KEY, SECRET_KEY, "a-token"))
    assert SECRET_KEY not in shown and "a-token" not in shown
