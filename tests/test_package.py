"""The package as users install it: a wheel in a virtual environment of its own, without the repository's `src`."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import ekorn

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources: setuptools leaves a `build` folder beside what it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "sources"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an empty virtual environment, then show it the dependencies of the running one.

    A .pth file names the running environment's packages, so nothing is downloaded. The .pth files in the folders it
    names are not read, so the editable installation of the repository stays invisible.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    # With PYTHONPATH, which a Spark session sets in its driver, pip would find ekorn in the repository's `src`.
    done = subprocess.run(install, env=away_from_the_repository(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in site.getsitepackages()))
    return folder


def away_from_the_repository() -> dict[str, str]:
    """Return this process's environment without the settings of its Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}


def run(environment: Path, command: str, *arguments: str, cwd: Path) -> str:
    """Run a command of the environment, away from the repository and its settings; return what it printed."""
    done = subprocess.run(
        [str(environment / "bin" / command), *arguments],
        cwd=cwd,
        env=away_from_the_repository() | {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_what_is_not_python_too(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        described = content.read(metadata).decode()
    assert {"ekorn/py.typed", "ekorn/engine/spark/driver_side/log4j2.properties"} <= names
    assert f"ekorn-{ekorn.__version__}.dist-info/licenses/LICENSE" in names
    assert f"\nVersion: {ekorn.__version__}\n" in described
    assert "\nLicense-Expression: Apache-2.0\n" in described
    assert not any(name.startswith(("tests", "examples", "benchmarks")) for name in names)


def test_every_module_of_the_sources_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        packed = {name for name in content.namelist() if name.endswith(".py")}
    assert packed == {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}


def test_the_command_prints_the_version(environment: Path, tmp_path: Path) -> None:
    where = run(environment, "python", "-c", "import ekorn; print(ekorn.__file__)", cwd=tmp_path)
    assert where.startswith(str(environment))
    assert run(environment, "ekorn", "--version", cwd=tmp_path) == f"ekorn {ekorn.__version__}\n"


@pytest.mark.spark
def test_the_first_program_of_the_readme_runs_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    program = tmp_path / "first.py"
    program.write_text(f"{found[1]}\nimport ekorn\nprint(ekorn.__file__)\n")
    lines = run(environment, "python", str(program), cwd=tmp_path).splitlines()
    assert lines[-1].startswith(str(environment))
    assert sorted(lines[:-1]) == ["('acorn', 1)", "('acorn', 2)", "('walnut', 1)"]
