"""A plugin of pytest, for the run that measures.

It notes how long tests take and which of them fail, and has coverage measure the processes that they start.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_S3_START_S = 5.0  # the first test that needs the S3 server pays for its start; alone, each of them would be the first

_folder = Path(os.environ["EKORN_MUTATION_MEASURED"])
_seconds: defaultdict[str, float] = defaultdict(float)
_failed: set[str] = set()

# Coverage starts with every Python process that finds this variable. It is set here, and not for pytest itself, which
# measures by contexts of its own. The settings name the current test, which pytest keeps in a variable as well.
os.environ["COVERAGE_PROCESS_START"] = str(_folder / "settings")


@pytest.hookimpl
def pytest_runtest_setup(item: pytest.Item) -> None:
    if "s3_endpoint" in getattr(item, "fixturenames", ()):
        _seconds[item.nodeid] += _S3_START_S


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration
    if report.failed:
        _failed.add(report.nodeid)


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    (_folder / "seconds.json").write_text(json.dumps(_seconds))
    (_folder / "failed.json").write_text(json.dumps(sorted(_failed)))
