"""Deleting beside the stream: on remote storage a deletion takes as long as a write, and nobody waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

__all__ = ["Janitor"]

_LOG = logging.getLogger(__name__)


class Janitor:
    """Does one thing after another on a thread of its own; what fails is left for a later clean-up to find."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue()
        self._thread: threading.Thread | None = None

    def add(self, task: Callable[[], None]) -> None:
        """Do this as soon as possible."""
        self._tasks.put(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="checkpoint-janitor", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until everything asked for has been done, or has failed."""
        self._tasks.join()

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                task()
            except Exception as error:  # whatever it was, the next task may succeed, and somebody waits for the last
                _LOG.warning("files in %s could not be deleted: %s", self._directory, error)
            finally:
                self._tasks.task_done()
