"""`python -m ekorn.pyflink` on Spark: slots find the script's classes, and modules beside it that import pyflink."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.spark.processes import ROOT

SCRIPTS = Path(__file__).parent.parent / "pyflink" / "scripts"


def test_an_unmodified_pyflink_script_runs_on_spark():
    done = subprocess.run(
        [sys.executable, "-m", "ekorn.pyflink", str(SCRIPTS / "beside.py"), "square", "circle", "triangle"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    triangle, square = [f"triangle: {n}" for n in (3, 6, 9)], [f"square: {n}" for n in (4, 8, 12, 16)]
    assert sorted(done.stdout.splitlines()) == sorted(triangle + square)
