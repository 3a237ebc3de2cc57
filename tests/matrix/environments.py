"""Virtual environments of the matrix: one per Python and Spark version, below `.venvs/`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python version with a Spark version."""

    python: str  # "3.12"
    spark: str  # "4.3"

    def __str__(self) -> str:
        return f"py{self.python}-spark{self.spark}"

    @property
    def folder(self) -> Path:
        return ROOT / ".venvs" / f"matrix-{self}"

    @property
    def interpreter(self) -> str:
        return str(self.folder / "bin" / "python")

    def prepare(self) -> None:
        """Create the environment and install the repository in it, unless that was done before."""
        ready = self.folder / ".ready"
        if ready.exists() and ready.stat().st_mtime >= (ROOT / "pyproject.toml").stat().st_mtime:
            return
        print(f"{self}: creating {self.folder.relative_to(ROOT)}", flush=True)
        subprocess.run([find_interpreter(self.python), "-m", "venv", str(self.folder)], check=True)
        constraints = self.folder / "constraints.txt"
        constraints.write_text("".join(_constraints_without_spark()))
        install = [self.interpreter, "-m", "pip", "install", "--quiet", "--constraint", str(constraints)]
        subprocess.run([*install, "-e", ".[test]", f"pyspark=={self.spark}.*"], cwd=ROOT, check=True)
        ready.touch()

    def run(self, *arguments: str, log: Path) -> bool:
        """Run Python with the repository's sources and tests; return whether it succeeded."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
        variables["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        with log.open("w") as output:
            done = subprocess.run(
                [self.interpreter, *arguments], cwd=ROOT, env=variables, stdout=output, stderr=output, check=False
            )
        return done.returncode == 0


def _constraints_without_spark() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    return [line for line in lines if not line.startswith("pyspark==")]


def find_interpreter(version: str) -> str:
    """Return an interpreter of the version: from PATH, or the newest that pyenv has.

    Raises:
        SystemExit: There is none.
    """
    for candidate in _candidates(version):
        asked = subprocess.run(
            [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.stdout.strip() == version:  # a shim of pyenv is on PATH also when its version is not installed
            return candidate
    raise SystemExit(
        f"no Python {version}: neither python{version} on PATH nor pyenv has it; install it, or leave it out"
    )


def _candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield on_path
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = [folder for folder in versions.glob(f"{version}.*") if folder.name.split(".")[-1].isdigit()]
    for folder in sorted(installed, key=lambda folder: int(folder.name.split(".")[-1]), reverse=True):
        yield str(folder / "bin" / "python")
