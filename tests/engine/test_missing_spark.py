"""The import of PySpark fails: the error names what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from ekorn.engine.spark.driver_side.session import spark_context
from ekorn.errors import DeploymentError
try:
    spark_context({})
except DeploymentError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("package", "says"),
    [
        (
            "raise ModuleNotFoundError(\"No module named 'pyspark'\", name='pyspark')",
            "PySpark is not installed, and jobs",
        ),
        ("import a_package_that_is_missing", "PySpark cannot be imported: No module named 'a_package_that_is_missing'"),
        ("from os import a_missing_name", "PySpark cannot be imported: cannot import name 'a_missing_name' from 'os'"),
    ],
)
def test_the_error_names_what_is_missing(tmp_path: Path, package: str, says: str) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(package)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith(says), run.stdout + run.stderr
