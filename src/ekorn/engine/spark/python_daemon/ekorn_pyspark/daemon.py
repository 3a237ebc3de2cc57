"""PySpark's daemon, which forks Spark's Python workers, with modules that it imports before the first fork.

PySpark's own daemon imports next to nothing, so each worker imports what its task needs: at the start of a job, and
after every failure, all workers do so at the same time. A session that ekorn starts on one machine runs this daemon
instead (`driver_side/worker_daemon.py`). Only tasks of ekorn name modules in their environment. For the user's own
functions on DataFrames and RDDs it is PySpark's daemon as it stands, also with an interpreter that has no ekorn.

A process must have a single thread when it forks: another thread could hold a lock that nobody releases in the child.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import NoReturn

MODULES = "EKORN_DAEMON_MODULES"  # in the environment of a task: what the daemon imports, divided by commas
_THREADS = "/proc/self/task"


def import_modules(names: list[str]) -> None:
    """Import modules that start no thread. If they fail to, the process becomes PySpark's own daemon."""
    try:
        for name in names:
            importlib.import_module(name)
        threads = len(os.listdir(_THREADS))
    except Exception as error:  # whatever a module raises: each worker imports it again, and its task reports it
        become_plain(f"{type(error).__name__}: {error}")
    if threads > 1:
        become_plain(f"{threads - 1} threads run after the import of {', '.join(names)}")
    gc.collect()
    gc.freeze()  # what was imported stays as it is: a collection in a worker would copy its pages


def become_plain(why: str) -> NoReturn:
    """Run PySpark's own daemon in place of this process. Spark has not heard from it yet."""
    print(f"ekorn: Spark's Python daemon does not import modules in advance: {why}", file=sys.stderr, flush=True)
    os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])


if __name__ == "__main__":
    if named := os.environ.get(MODULES):
        import_modules(named.split(","))
    from pyspark.daemon import manager

    manager()
