"""PyFlink's own tests on Spark, where a copy of Flink's sources is given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = os.environ.get("FLINK_SOURCES")


@pytest.mark.soak
@pytest.mark.skipif(SOURCES is None, reason="FLINK_SOURCES names no copy of Flink's sources")
def test_pyflinks_own_tests_pass_or_have_a_known_reason():
    command = [sys.executable, "-m", "tests.pyflink.own_tests"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout[-5000:]
