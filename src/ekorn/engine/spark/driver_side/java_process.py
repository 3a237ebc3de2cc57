"""Runs in the driver: starts Spark's Java process without showing a setting to other users.

PySpark puts every setting on the command line of the Java process, where all users of the machine can read it. Here
settings reach the process in a file that only this user can read, and that exists only while the process starts.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ekorn.engine.spark.driver_side.worker_daemon import java_finds_daemon
from ekorn.storage.result_modes import PRIVATE_UMASK, USERS_UMASK, with_users_umask
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
        # The user's arguments come later, so a file of settings that they name replaces this one. All settings are
        # sent once more when the session is made, over an authenticated connection.
        arguments = f"--properties-file '{path}' --load-spark-defaults {given or 'pyspark-shell'}"
        os.environ[_ARGUMENTS] = arguments
        try:
            threading.Thread(target=_import_converters, name="ekorn-imports", daemon=True).start()
            with errors_without_spark_s_own(), java_finds_daemon():
                _launch(context_class)
        finally:
            if given is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = given


def _launch(context_class: Any) -> None:
    """Let PySpark start the Java process. What it and its Python workers create is for this user alone."""
    from pyspark.java_gateway import launch_gateway

    is_set = USERS_UMASK in os.environ
    os.environ.update(with_users_umask({}))  # PySpark passes its own environment on
    try:
        context_class._ensure_initialized(gateway=launch_gateway(popen_kwargs={"umask": PRIVATE_UMASK}))
    finally:
        if not is_set:
            del os.environ[USERS_UMASK]


def _import_converters() -> None:
    """Import the packages that PySpark needs for its first call of the JVM: NumPy and pandas, if they are installed."""
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


_WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector"
_TRACEBACK = b"Traceback (most recent call last):"
_DAEMON = b"pyspark/daemon.py"
_BROKEN_PIPE = b"BrokenPipeError:"


@contextmanager
def errors_without_spark_s_own() -> Iterator[None]:
    """Filter Spark's harmless messages out of the standard error of processes that are started inside the block.

    A thread copies all other lines for as long as the processes live. The driver has its own descriptor back after the
    block.
    """
    own = os.dup(2)
    reading, writing = os.pipe()
    threading.Thread(target=_copy, args=(reading, own), name="ekorn-java-errors", daemon=True).start()
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(own, 2)  # the thread keeps its copy, and closes it when the last process has ended


def _copy(reading: int, own: int) -> None:
    wanted = WantedLines()
    while data := os.read(reading, 65_536):
        _write(own, wanted.of(data))
    _write(own, wanted.rest())
    os.close(reading)
    os.close(own)


class WantedLines:
    """Picks the wanted lines from a stream of bytes. A part of a line passes at once unless it may become unwanted."""

    def __init__(self) -> None:
        self._pending = b""  # a part of a line
        self._traceback: list[bytes] = []  # its lines so far

    def of(self, data: bytes) -> bytes:
        """Take further bytes; return all wanted bytes that were not returned before."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        wanted = b"".join(self._line(line + b"\n") for line in lines)
        may_be_unwanted = any(each.startswith(self._pending) for each in (_WARNING, _TRACEBACK))
        if self._pending and not self._traceback and not may_be_unwanted:
            wanted += self._pending
            self._pending = b""
        return wanted

    def rest(self) -> bytes:
        """Return the bytes that were kept back, at the end of the stream."""
        kept, self._traceback = b"".join(self._traceback), []
        return kept + self._pending

    def _line(self, line: bytes) -> bytes:
        if self._traceback and line.startswith(b"  "):  # a frame
            self._traceback.append(line)
            return b""
        traceback, self._traceback = b"".join(self._traceback), []
        if _DAEMON in traceback and line.startswith(_BROKEN_PIPE):
            return b""
        if line.rstrip() == _TRACEBACK:
            self._traceback = [line]
            return traceback
        return traceback if line.rstrip() == _WARNING else traceback + line


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
