"""A user's Python: an environment that is not activated, and a worker's Python without any package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"
GOLDEN = HERE / "golden"


def bare_python(folder: Path) -> str:
    """Create an environment without any package, and return the path of its Python."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    return str(folder / "bin" / "python")


def older_python(folder: Path) -> str:
    """Create an environment whose Python says that it is 3.9.18, and return the path of its Python."""
    python = bare_python(folder)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 9, 18, 'final', 0)\n")
    return python


def user_python(folder: Path) -> str:
    """Create an environment with what this one has, and return the path of its Python. It is not on the PATH.

    Only this Python finds ekorn: processes that it starts do not inherit the way to it.
    """
    python = bare_python(folder)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    found = [str(ROOT / "src"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (packages / "users.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(found)))
    return python


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a shell in which no virtual environment is active."""
    ours = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV", "SPARK_HOME", "EKORN_CONF_DIR"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    active = str(Path(sys.executable).parent)
    kept["PATH"] = os.pathsep.join(folder for folder in kept["PATH"].split(os.pathsep) if folder != active)
    return kept | {"PYTHONUNBUFFERED": "1", "SPARK_LOCAL_IP": "127.0.0.1"} | variables


def run(
    command: list[str], folder: Path, env: dict[str, str] | None = None, timeout: float = 250.0
) -> subprocess.CompletedProcess[str]:
    """Run a user's command in a folder."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def golden(name: str, said: str, names: dict[str, str] | None = None) -> tuple[str, str]:
    """Return what was said and what should be, for a test to compare.

    With the variable `UPDATE_GOLDEN` set, what was said becomes what should be.

    Args:
        name: The name of the file in `golden/`.
        said: The text.
        names: What stands in the golden file in place of a path, by path.
    """
    places = {**(names or {}), str(ROOT): "<ekorn>"}
    for path in sorted(places, key=len, reverse=True):
        said = said.replace(path, places[path])
    said = re.sub(r"\b3\.1\d\.\d+\b", "<version>", said)
    said = re.sub(r"\b[0-9a-f]{32}\b", "<job id>", said)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(said)
    return said, file.read_text()
