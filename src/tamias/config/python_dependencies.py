"""The Python files, archives, packages and interpreter that a job asks its slots to run with.

This module only holds the value. `engine/slots/interpreter.py` unpacks and installs it on the driver's machine.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    """What a job's slots need beside the program itself.

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
