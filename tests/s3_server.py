"""A real S3-compatible server on loopback, for as long as a test session: moto's, with a port of its own.

Import `s3_url` into a conftest or a test module; it gives a URL with a bucket that exists and a prefix nobody uses.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator

import pytest

ACCESS_KEY = "AKIACANARY7EXAMPLE"
SECRET_KEY = "canary/secret+key7EXAMPLE"
BUCKET = "checkpoints"


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Host and port of the server."""
    server = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    yield f"{host}:{port}"
    running.stop()


@pytest.fixture
def s3_url(s3_endpoint: str) -> Callable[..., str]:
    """Makes URLs: `s3_url("dir")` with options and credentials in it, below a prefix of this test's own."""
    prefix = uuid.uuid4().hex

    def url(path: str = "", *, bucket: str = BUCKET, credentials: bool = True) -> str:
        user = f"{ACCESS_KEY}:{SECRET_KEY.replace('/', '%2F').replace('+', '%2B')}@" if credentials else ""
        below = f"/{path}" if path else ""
        return f"s3://{user}{bucket}/{prefix}{below}?scheme=http&endpoint_override={s3_endpoint}&region=us-east-1"

    return url
