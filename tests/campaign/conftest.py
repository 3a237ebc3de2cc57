"""Fixtures of the campaign: the process that drivers are forked from, and an S3 server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.campaign.zygote import Zygote
from tests.s3_server import s3_endpoint, s3_url  # noqa: F401


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()
