"""Runs in the driver: chooses the Python daemon of sessions that ekorn starts on this machine, and its imports.

Spark has one daemon module for all Pythons of a session, and the user's own functions may run with an interpreter that
has no ekorn. So the daemon is a package of its own, in a folder that the Java process has on its import path, and it
imports nothing unless the environment of the tasks says so. See docs/decisions/0047-worker-daemon.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ekorn.engine.spark import python_daemon
from ekorn.engine.spark.python_daemon.ekorn_pyspark.daemon import MODULES

__all__ = [
    "FOR_LEVELS",
    "FOR_TRANSPORT",
    "imports_in_advance",
    "java_finds_daemon",
    "set_daemon",
    "task_environment",
]

FOR_LEVELS = ("pyspark.worker", "ekorn.engine.spark.task_side.level_task")
FOR_TRANSPORT = ("pyspark.worker", "ekorn.engine.spark.task_side.transport_tasks")
_SETTING = "spark.python.daemon.module"
_MODULE = "ekorn_pyspark.daemon"  # contains pyspark.daemon, by which Spark's Python processes are found
_PATH = "PYTHONPATH"
_FOLDER = Path(python_daemon.__file__).parent


@contextmanager
def java_finds_daemon() -> Iterator[None]:
    """Let a Java process that is started in this block add the folder of the daemon to the path of every Python."""
    given = os.environ.get(_PATH)
    os.environ[_PATH] = os.pathsep.join(part for part in (given, str(_FOLDER)) if part)
    try:
        yield
    finally:
        if given is None:
            del os.environ[_PATH]
        else:
            os.environ[_PATH] = given


def set_daemon(settings: dict[str, str], path_of_java: str | None) -> None:
    """Choose the daemon of a new session: ours, where its Pythons can find it, and unless the user names another.

    Args:
        settings: The settings of the session.
        path_of_java: The import path that the Java process has from its environment. It may have been started for an
            earlier session, and not by ekorn.
    """
    master = settings["spark.master"]
    runs_here = master.startswith("local") and not master.startswith("local-cluster")
    is_found = str(_FOLDER) in (path_of_java or "").split(os.pathsep) and (_FOLDER / "ekorn_pyspark").is_dir()
    if runs_here and is_found and sys.platform == "linux":  # only Linux tells how many threads a process has
        settings.setdefault(_SETTING, _MODULE)


def task_environment(context: Any, modules: tuple[str, ...]) -> dict[str, str]:
    """Return the environment of tasks that run with the driver's own Python: its import path, and modules to import."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    given: dict[str, str] = context.environment
    return given | {_PATH: path, MODULES: ",".join(modules)}


def imports_in_advance(pid: int, modules: tuple[str, ...]) -> bool:
    """Return whether a process was started with the environment of tasks with these modules, or does not tell."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # not Linux, or the process has ended
        return True
    return f"{MODULES}={','.join(modules)}".encode() in environment
