"""A plugin of pytest that writes how long each test took, its fixtures included, when the run is over."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_S3_START_S = 5.0  # the first test that needs the S3 server pays for its start; alone, each of them would be the first

_seconds: defaultdict[str, float] = defaultdict(float)


@pytest.hookimpl
def pytest_runtest_setup(item: pytest.Item) -> None:
    if "s3_endpoint" in getattr(item, "fixturenames", ()):
        _seconds[item.nodeid] += _S3_START_S


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    Path(os.environ["TAMIAS_MUTATION_SECONDS"]).write_text(json.dumps(_seconds))
