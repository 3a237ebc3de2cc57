"""The Python files, archives, packages and interpreter that a job asks its slots to run with.

This module holds the value and reads it from a configuration. `engine/slots/interpreter.py` unpacks and installs it on
the driver's machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.config import options
from ekorn.config.configuration import Configuration

__all__ = ["PythonArchive", "PythonDependencies", "python_dependencies"]


@dataclass(frozen=True)
class PythonArchive:
    """An archive that is unpacked into the slots' working directory.

    Attributes:
        path: Where the archive lies.
        target_dir: Folder to unpack it to, below the working directory; None takes the archive's file name.
    """

    path: str
    target_dir: str | None = None


@dataclass(frozen=True)
class PythonDependencies:
    """The dependencies of a job's slots beside the program itself.

    Attributes:
        files: Entries of the import path: a .py file, a folder, a zip.
        archives: Archives to unpack.
        executable: The interpreter that runs the slots; None takes the driver's.
        requirements_file: A requirements.txt whose packages are installed for the slots.
        requirements_cache_dir: Folder with the packages, for machines that cannot reach an index.
    """

    files: tuple[str, ...] = ()
    archives: tuple[PythonArchive, ...] = ()
    executable: str | None = None
    requirements_file: str | None = None
    requirements_cache_dir: str | None = None


def python_dependencies(configuration: Configuration) -> PythonDependencies:
    """Read the Python dependencies from a configuration."""
    requirements, _, cache_dir = (options.PYTHON_REQUIREMENTS.read(configuration) or "").partition("#")
    archives = []
    for entry in options.PYTHON_ARCHIVES.read(configuration):
        path, _, target = entry.partition("#")
        archives.append(PythonArchive(path, target or None))
    return PythonDependencies(
        files=options.PYTHON_FILES.read(configuration),
        archives=tuple(archives),
        executable=options.PYTHON_EXECUTABLE.read(configuration),
        requirements_file=requirements or None,
        requirements_cache_dir=cache_dir or None,
    )
