"""The dependencies of an environment: files, Python packages and jars that its jobs bring to the slots."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.errors import warn
from ekorn.program.environment.cached_file_registry import CachedFileRegistry


class EnvironmentDependencies(CachedFileRegistry):
    """The methods of a `StreamExecutionEnvironment` that declare what functions need on the slots."""

    _configuration: Configuration

    def add_python_file(self, file_path: str) -> None:
        """Add a Python file, package folder or zip to the slots' import path."""
        _append(self._configuration, options.PYTHON_FILES, _existing("add_python_file", file_path))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive in the slots' working directory, or in a folder of that name below it."""
        path = _existing("add_python_archive", archive_path)
        entry = path if target_dir is None else f"{path}#{target_dir}"
        _append(self._configuration, options.PYTHON_ARCHIVES, entry)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter that runs the slots; a relative path is searched in unpacked archives too."""
        self._configuration.set_string(options.PYTHON_EXECUTABLE.key, os.fspath(python_exec))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install the packages of a requirements file for the slots, from a folder of packages if one is given."""
        entry = _existing("set_python_requirements", requirements_file_path)
        if requirements_cache_dir is not None:
            entry += "#" + _existing("set_python_requirements", requirements_cache_dir)
        self._configuration.set_string(options.PYTHON_REQUIREMENTS.key, entry)

    def add_jars(self, *jars_path: str) -> None:
        """Bring jars to Spark, as ``spark.jars`` does. They take effect if the Spark session is not started yet.

        A connector of Flink in a jar has no effect: sources and sinks of Ekorn are written in Python.
        """
        for path in jars_path:
            if "flink" in PurePath(path).name:
                warn(f"add_jars(): {path!r} goes to Spark's class path; Ekorn itself calls no connector in a jar")
        _append(self._configuration, options.SPARK_JARS, *jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Add paths that exist on every machine to Spark's class path."""
        paths = [path.removeprefix("file://") for path in classpaths]
        for option in (options.SPARK_DRIVER_CLASSPATH, options.SPARK_EXECUTOR_CLASSPATH):
            _append(self._configuration, option, *paths, separator=os.pathsep)


def _append(configuration: Configuration, option: ConfigOption[Any], *entries: str, separator: str = ",") -> None:
    """Add entries to an option whose value is a list, each of them once."""
    present = [entry for entry in (configuration.get_string(option.key) or "").split(separator) if entry]
    present += [entry for entry in entries if entry not in present]
    configuration.set_string(option.key, separator.join(present))


def _existing(call: str, path: str) -> str:
    """Return a local path that exists as an absolute path. A URL is returned unchanged: the slots fetch it."""
    text = os.fspath(path)
    if len(urlsplit(text).scheme) > 1:
        return text
    if not os.path.exists(text):
        raise FileNotFoundError(f"{call}(): there is no {text!r}")
    return os.path.abspath(text)
