"""What the slots' interpreter needs beside the program: files, archives, requirements, an interpreter of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from tamias.errors import DeploymentError


@dataclass(frozen=True)
class Dependencies:
    """As the program asked for it."""

    files: tuple[str, ...] = ()  # on the import path: a .py file, a folder, a zip
    archives: tuple[tuple[str, str | None], ...] = ()  # path, and the folder to unpack it to
    executable: str | None = None
    requirements_file: str | None = None
    requirements_cache: str | None = None


@dataclass(frozen=True)
class Interpreter:
    """As a slot is started."""

    executable: str
    path: tuple[str, ...] = ()  # before everything else on the import path
    working_directory: str | None = None
    variables: tuple[tuple[str, str], ...] = ()


def prepare(wanted: Dependencies, folder: str) -> Interpreter:
    """Unpack and install below a folder of the job's; the slots of this machine share the result.

    Raises:
        DeploymentError: an archive, a requirement or the interpreter cannot be had; says which.
    """
    path = [_importable(file, folder, number) for number, file in enumerate(wanted.files)]
    working_directory = _unpack(wanted.archives, os.path.join(folder, "archives")) if wanted.archives else None
    executable = _interpreter(wanted.executable, working_directory)
    if wanted.requirements_file is not None:
        path.append(_install(executable, wanted, os.path.join(folder, "requirements")))
    # Flink: an interpreter that the program chose shows as the variable `python` in the workers.
    variables = (("python", executable),) if wanted.executable is not None else ()
    return Interpreter(executable, tuple(path), working_directory, variables)


def _importable(file: str, folder: str, number: int) -> str:
    """What to put on the import path for a file: a module's own folder would bring its neighbours along."""
    if not file.endswith(".py"):
        return os.path.abspath(file)
    target = os.path.join(folder, f"file-{number}")
    os.makedirs(target, exist_ok=True)
    shutil.copy(file, target)
    return target


def _unpack(archives: tuple[tuple[str, str | None], ...], folder: str) -> str:
    for archive, target in archives:
        try:
            shutil.unpack_archive(archive, os.path.join(folder, target or os.path.basename(archive)), filter=None)
        except (OSError, shutil.ReadError, ValueError) as error:
            raise DeploymentError(f"the archive {archive!r} cannot be unpacked: {error}") from error
    return folder


def _interpreter(wanted: str | None, working_directory: str | None) -> str:
    if wanted is None:
        return sys.executable
    if working_directory is not None and not os.path.isabs(wanted):
        unpacked = os.path.join(working_directory, wanted)
        if os.path.exists(unpacked):
            return unpacked
    found = shutil.which(wanted)
    if found is None:
        raise DeploymentError(f"the Python interpreter {wanted!r} was not found; see set_python_executable")
    return found


def _install(executable: str, wanted: Dependencies, target: str) -> str:
    command = [executable, "-m", "pip", "install", "--quiet", "--target", target, "-r", str(wanted.requirements_file)]
    if wanted.requirements_cache is not None:
        command += ["--no-index", "--find-links", wanted.requirements_cache]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise DeploymentError(f"the requirements in {wanted.requirements_file!r} cannot be installed: {' '.join(said)}")
    return target
