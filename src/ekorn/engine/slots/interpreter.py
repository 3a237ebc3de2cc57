"""The interpreter that the slots of this machine run with: dependencies unpacked, requirements installed."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass

from ekorn.config.settings.deployment_settings import PythonArchive, PythonDependencies
from ekorn.errors import DeploymentError
from ekorn.storage.result_modes import PRIVATE_UMASK


@dataclass(frozen=True)
class Interpreter:
    """The command and environment that start a slot process."""

    executable: str
    path: tuple[str, ...] = ()  # the first entries of the import path
    working_directory: str | None = None
    variables: tuple[tuple[str, str], ...] = ()


def prepare_interpreter(wanted: PythonDependencies, folder: str) -> Interpreter:
    """Unpack archives and install requirements below a folder of the job. The slots of this machine share the result.

    Raises:
        DeploymentError: An archive cannot be unpacked, a requirement cannot be installed, or the interpreter is
            missing; the message names it.
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
    """Return the import path entry for a file. A module is copied: its own folder would bring its neighbours along."""
    if not file.endswith(".py"):
        return os.path.abspath(file)
    target = os.path.join(folder, f"file-{number}")
    os.makedirs(target, exist_ok=True)
    shutil.copy(file, target)
    return target


def _unpack(archives: tuple[PythonArchive, ...], folder: str) -> str:
    for archive in archives:
        target = os.path.join(folder, archive.target_dir or os.path.basename(archive.path))
        try:
            if zipfile.is_zipfile(archive.path):
                _check_zip(archive.path)
                shutil.unpack_archive(archive.path, target, "zip")
            else:
                shutil.unpack_archive(archive.path, target, filter="data")  # nothing outside the folder, no devices
        except (OSError, shutil.ReadError, tarfile.TarError, zipfile.BadZipFile, ValueError) as error:
            raise DeploymentError(f"the archive {archive.path!r} cannot be unpacked: {error}") from error
    return folder


def _check_zip(path: str) -> None:
    """Refuse entries that lead out of the folder. `unpack_archive` skips some silently, and unpacks links as files."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.replace("\\", "/")
            if name.startswith("/") or ".." in name.split("/"):
                raise ValueError(f"its entry {entry.filename!r} is outside the folder")
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise ValueError(f"its entry {entry.filename!r} is a link; pack the file itself, or a tar archive")


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


def _install(executable: str, wanted: PythonDependencies, target: str) -> str:
    command = [executable, "-m", "pip", "install", "--quiet", "--target", target, "-r", str(wanted.requirements_file)]
    if wanted.requirements_cache_dir is not None:
        command += ["--no-index", "--find-links", wanted.requirements_cache_dir]
    done = subprocess.run(command, capture_output=True, text=True, check=False, umask=PRIVATE_UMASK)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise DeploymentError(f"the requirements in {wanted.requirements_file!r} cannot be installed: {' '.join(said)}")
    return target
