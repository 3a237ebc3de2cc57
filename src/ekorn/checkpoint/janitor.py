"""Deletes files in the background: on remote storage a deletion takes as long as a write."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

__all__ = ["Janitor"]

_LOG = logging.getLogger(__name__)


class Janitor:
    """Runs tasks one after another on a thread that ends when none is left.

    A later clean-up finds what a failed task has left.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue()
        self._lock = threading.Lock()  # held to start the thread, and by the thread to decide that it ends
        self._running = False

    def add(self, task: Callable[[], None]) -> None:
        """Run a task as soon as possible."""
        with self._lock:
            self._tasks.put(task)
            if not self._running:
                threading.Thread(target=self._run, name="checkpoint-janitor", daemon=True).start()
                self._running = True

    def wait(self) -> None:
        """Wait until every task has run or failed."""
        self._tasks.join()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except Exception as error:  # the next task may succeed, and `wait` must return
                _LOG.warning("files in %s could not be deleted: %s", self._directory, error)
            finally:
                self._tasks.task_done()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._tasks.empty():
                self._running = False
                return None
            return self._tasks.get_nowait()
