"""What the campaign's tests share: the process that drivers are forked from, and a server for those on S3."""

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
