"""Asks google-auth for the same as Cofer, and what it makes of Cofer's tokens."""

import datetime
import json
import sys
import urllib.parse
from unittest import mock

import google.auth
import google.auth.aws
import google.auth.external_account_authorized_user
import google.auth.identity_pool
import google.auth.impersonated_credentials
import google.auth.jwt
import google.oauth2.credentials
import google.oauth2.id_token
from google.auth import _helpers
from google.auth.transport.requests import Request

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"


def fetch(audience):
    return google.oauth2.id_token.fetch_id_token(Request(), audience)


def login(path):
    credentials = google.oauth2.credentials.Credentials.from_authorized_user_file(path)
    credentials.refresh(Request())
    return credentials.id_token


def impersonated(path, audience):
    target, _ = google.auth.load_credentials_from_file(path, scopes=[CLOUD_PLATFORM])
    credentials = google.auth.impersonated_credentials.IDTokenCredentials(
        target, target_audience=audience, include_email=True
    )
    credentials.refresh(Request())
    return credentials.token


def external(path):
    with open(path) as file:
        info = json.load(file)
    if info["type"] == "external_account":
        credentials = google.auth.identity_pool.Credentials.from_info(info, scopes=[CLOUD_PLATFORM])
    else:
        credentials = google.auth.external_account_authorized_user.Credentials.from_info(info)
    credentials.refresh(Request())
    return credentials.token


def verify(token, audience, certs):
    return google.oauth2.id_token.verify_token(token, Request(), audience, certs_url=certs)["email"]


def refuse(token, audience, certs):
    try:
        verify(token, audience, certs)
    except Exception as error:
        return f"{error} {error.__cause__}".lower()
    raise SystemExit("a token for somebody else was taken")


def assertion(token, path):
    """Checks an assertion with the public half of the file's key."""
    from cryptography.hazmat.primitives import serialization

    with open(path) as file:
        info = json.load(file)
    key = serialization.load_pem_private_key(info["private_key"].encode(), None).public_key()
    pem = key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    certs = {info["private_key_id"]: pem}
    claims = google.auth.jwt.decode(token, certs, audience="https://oauth2.googleapis.com/token")
    return claims["target_audience"]


def aws(subject, region, key, secret, session):
    """Signs the same request at the same time, and compares the signatures."""
    request = json.loads(urllib.parse.unquote(subject))
    headers = {header["key"]: header["value"] for header in request["headers"]}
    at = datetime.datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    signer = google.auth.aws.RequestSigner(region)
    keys = google.auth.aws.AwsSecurityCredentials(key, secret, session)
    resource = "x-goog-cloud-target-resource"
    with mock.patch.object(_helpers, "utcnow", lambda: at):
        signed = signer.get_request_options(
            keys, request["url"], request["method"], "", {resource: headers[resource]}
        )
    if signed["headers"] != headers or signed["url"] != request["url"]:
        raise SystemExit(f"{signed} is not {request}")
    return "same"


print(globals()[sys.argv[1]](*sys.argv[2:]))
