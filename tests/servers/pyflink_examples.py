"""PyFlink's own example programs: those of an installed PyFlink, or downloaded with pip, once per checkout.

Nothing of them is kept in the repository. The wheel of apache-flink holds Python files alone, three megabytes.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".services" / "pyflink"
VERSION = "2.3.0"
_BELOW = Path("pyflink", "examples", "datastream")


def download(folder: Path = FOLDER) -> Path:
    """Download the examples unless they are there, and return their folder.

    Raises:
        RuntimeError: The package index does not answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wheels = list(folder.glob("*.whl"))
        if not wheels:
            # Of one Python, whatever Python runs the tests: the examples are the same in all wheels.
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
            command += ["--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux2014_x86_64"]
            done = subprocess.run([*command, f"apache-flink=={VERSION}"], capture_output=True, text=True, check=False)
            wheels = list(folder.glob("*.whl"))
            if done.returncode or not wheels:
                raise RuntimeError(
                    f"PyFlink's examples cannot be had: pip download apache-flink failed: {done.stderr[-500:]}"
                )
        if not (folder / _BELOW).is_dir():
            with zipfile.ZipFile(wheels[0]) as wheel:
                wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(_BELOW.as_posix())])
    return folder / _BELOW


def installed() -> Path | None:
    """Return the examples of an installed PyFlink: in this environment, of `make bench`, or in PYFLINK_FOLDER."""
    here = find_spec("pyflink")
    found = [Path(location) for location in (here.submodule_search_locations or [])] if here is not None else []
    found += ROOT.glob(".venvs/flink/lib/python*/site-packages/pyflink")
    found += [Path(os.environ["PYFLINK_FOLDER"])] if "PYFLINK_FOLDER" in os.environ else []
    folders = [path / "examples" / "datastream" for path in found]
    return next((folder for folder in folders if folder.is_dir()), None)


@pytest.fixture(scope="session")
def pyflink_examples() -> Path:
    """Return the folder of the examples; skip where they cannot be had."""
    try:
        return installed() or download()
    except RuntimeError as error:
        pytest.skip(str(error))
