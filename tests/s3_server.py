"""moto's S3 server on loopback, on a free port, for the length of a test session.

Import `s3_endpoint` and `s3_url` into a conftest or a test module: `s3_url` makes URLs with an existing bucket and a
prefix of the test's own.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

ACCESS_KEY = "AKIACANARY7EXAMPLE"
SECRET_KEY = "canary/secret+key7EXAMPLE"
BUCKET = "checkpoints"


@contextmanager
def running_server() -> Iterator[str]:
    """Run a server with one bucket; yield its host and port."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        _create_bucket(f"http://{host}:{port}")
        yield f"{host}:{port}"
    finally:
        running.stop()


def _create_bucket(endpoint: str) -> None:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)


def url_of(endpoint: str, path: str, *, bucket: str = BUCKET) -> str:
    """Return the URL of a directory, with credentials and options."""
    secret = SECRET_KEY.replace("/", "%2F").replace("+", "%2B")
    return f"s3://{ACCESS_KEY}:{secret}@{bucket}/{path}?scheme=http&endpoint_override={endpoint}&region=us-east-1"


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Run the session's server; yield its host and port."""
    with running_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3_url(s3_endpoint: str) -> Callable[..., str]:
    """Return a function that makes URLs below a prefix of this test's own: `s3_url("dir")`."""
    prefix = uuid.uuid4().hex
    return lambda path="", bucket=BUCKET: url_of(s3_endpoint, f"{prefix}/{path}".rstrip("/"), bucket=bucket)
