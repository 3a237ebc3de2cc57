"""Runs in the driver: starts Spark's Java process without showing a setting to other users.

PySpark puts every setting on the command line of the Java process, where all users of the machine can read it. Here
settings reach the process in a file that only this user can read, and that exists only while the process starts.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from ekorn.engine.spark.driver_side.filtered_errors import errors_without_spark_s_own
from ekorn.engine.spark.driver_side.worker_daemon import java_finds_daemon
from ekorn.storage.scratch_folders import LocalFolder

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def start_java(context_class: Any, settings: Mapping[str, str]) -> None:
    """Start the Java process with settings, unless it runs already.

    Args:
        context_class: `pyspark.SparkContext`.
        settings: Spark's settings by key.
    """
    if context_class._gateway is not None:
        return
    given = os.environ.get(_ARGUMENTS)
    with contextlib.closing(LocalFolder(tempfile.gettempdir(), "ekorn-settings-")) as folder:  # closed to other users
        path = os.path.join(folder.path, "settings.properties")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(encode_properties(settings))
        # The user's arguments come later, so a file of settings that they name takes the place of this one. The
        # session passes on all settings once more when it is made, over an authenticated connection.
        arguments = f"--properties-file '{path}' --load-spark-defaults {given or 'pyspark-shell'}"
        os.environ[_ARGUMENTS] = arguments
        try:
            threading.Thread(target=_import_converters, name="ekorn-imports", daemon=True).start()
            with errors_without_spark_s_own(), java_finds_daemon():
                context_class._ensure_initialized()
        finally:
            if given is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = given


def _import_converters() -> None:
    """Import what PySpark needs for its first call of the JVM: NumPy and pandas, if they are there."""
    with contextlib.suppress(ImportError):  # that call says what is missing, if anything is
        import pyspark.testing.utils  # noqa: F401


def encode_properties(settings: Mapping[str, str]) -> str:
    r"""Return settings in the format of Java's `Properties`, in ASCII.

    >>> encode_properties({"spark.a": "C:\\b\nc"})
    'spark.a=C:\\\\b\\nc\n'
    """
    return "".join(f"{_escaped(key, ' :=#!')}={_escaped(value, '')}\n" for key, value in settings.items())


def _escaped(text: str, special: str) -> str:
    named = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    parts = []
    for number, char in enumerate(text):
        if char in named:
            parts.append(named[char])
        elif char in special or (char == " " and number == 0):
            parts.append("\\" + char)
        elif " " <= char <= "~":
            parts.append(char)
        else:
            utf16 = char.encode("utf-16-be")
            parts += [f"\\u{utf16[i : i + 2].hex()}" for i in range(0, len(utf16), 2)]
    return "".join(parts)
