"""Tests on real Spark: what only processes and Spark can break. One embedded session serves all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.spark.processes import TEST_RUN


@pytest.fixture(scope="session", autouse=True)
def _mark_children() -> Iterator[None]:
    """Let every process of this test run be recognized by a variable."""
    name, value = TEST_RUN
    os.environ[name] = value
    yield
    del os.environ[name]
