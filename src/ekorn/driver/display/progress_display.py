"""Shows a running job to people who watch it, and to those who read its output later.

The first and the last line of a job go to standard error, whatever that is: a terminal, a file, the pipe of a service.
On a terminal there is a line of progress too, which is written over while the program waits for the job in `execute()`
(`terminal_lines`). A program that does something else meanwhile may write to the same terminal, so it sees the first
and the last line only. In a notebook the lines are an output of their own, which changes in place.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TextIO

from ekorn.clock import Clock
from ekorn.driver.display.job_lines import JobFacts, end_line, progress_line, start_line
from ekorn.driver.display.terminal_lines import TerminalLines
from ekorn.driver.job_view import JobView
from ekorn.functions.results.job_status import JobStatus

__all__ = ["NotebookOutput", "ProgressDisplay", "is_notebook", "is_told_by_log"]

_INTERVAL_S = 0.5
_SAMPLES = 6
_LAST_LINE_S = 1.0  # how long a program waits for the last line to be written


class _Sample(NamedTuple):
    at: float
    records_read: int


class Lines(Protocol):
    """Where the lines about one job are shown."""

    def begin(self, line: str) -> None:
        """Show the first line."""

    def update(self, line: str) -> None:
        """Show a line in place of the one of the last call."""

    def end(self, line: str | None) -> None:
        """Show the last line in place of the one of `update`. Without a line, only the one of `update` is removed."""


def is_told_by_log(stream: TextIO) -> bool:
    """Return whether Python's logging writes the lines of jobs to the same stream, where they would appear twice."""
    logger: logging.Logger | None = logging.getLogger("ekorn")
    if stream.isatty() or is_notebook(stream) or not logging.getLogger("ekorn").isEnabledFor(logging.INFO):
        return False
    while logger is not None:
        for handler in logger.handlers:
            if getattr(handler, "stream", None) is stream and handler.level <= logging.INFO:
                return True
        logger = logger.parent if logger.propagate else None
    return False


class ProgressDisplay:
    """Writes the lines of one job.

    Args:
        view: The job.
        facts: What is known about it at its start.
        clock: The clock of the driver.
        stream: Where to write; None for standard error.
        prints: Whether the job itself prints records. On a terminal the line in between is left out then.
        interval_s: The time between two lines of progress.
        began: When the job was submitted, by the clock's `monotonic`; None for now.
    """

    def __init__(
        self,
        view: JobView,
        facts: JobFacts,
        clock: Clock,
        *,
        stream: TextIO | None = None,
        prints: bool = False,
        interval_s: float = _INTERVAL_S,
        began: float | None = None,
    ) -> None:
        self._view = view
        self._facts = facts
        self._clock = clock
        stream = stream or sys.stderr
        in_notebook = is_notebook(stream)
        self._lines: Lines = NotebookOutput() if in_notebook else TerminalLines(stream)
        self._has_place_of_its_own = in_notebook
        self._rewrites = in_notebook or (stream.isatty() and os.environ.get("TERM") != "dumb" and not prints)
        self._interval_s = interval_s
        self._began = clock.monotonic() if began is None else began

    def start(self, has_ended: Callable[[float], bool]) -> Callable[[], None]:
        """Write the first line, and the others on a thread; return what waits for the last line, for a moment."""
        self._lines.begin(start_line(self._facts))  # by the calling thread: a notebook shows it below the calling cell
        thread = threading.Thread(target=self._follow, args=(has_ended,), name="ekorn-progress", daemon=True)
        thread.start()
        atexit.register(thread.join, _LAST_LINE_S)
        return lambda: thread.join(_LAST_LINE_S)

    def run(self, has_ended: Callable[[float], bool]) -> None:
        """Write the lines until `has_ended(timeout_s)` returns True."""
        self._lines.begin(start_line(self._facts))
        self._follow(has_ended)

    def _follow(self, has_ended: Callable[[float], bool]) -> None:
        # The rate is that of the last seconds: one epoch may be longer than the time between two lines.
        samples = deque([_Sample(self._clock.monotonic(), 0)], maxlen=_SAMPLES)
        while not has_ended(self._interval_s):
            progress, now, before = self._view.progress(), self._clock.monotonic(), samples[0]
            rate = (progress.records_read - before.records_read) / max(0.001, now - before.at)
            samples.append(_Sample(now, progress.records_read))
            if self._rewrites and (self._has_place_of_its_own or self._view.is_in_foreground):
                self._lines.update(progress_line(progress, rate, self._clock.now_ms()))
        ended = self._view.progress()
        if ended.status is JobStatus.SUSPENDED and not self._has_place_of_its_own:
            self._lines.end(None)  # whoever suspended the job says so, and how to resume it
            return
        self._lines.end(end_line(self._facts.job_name, ended, self._clock.monotonic() - self._began))


def is_notebook(stream: TextIO) -> bool:
    """Return whether a stream is that of a notebook's cell."""
    return type(stream).__module__.startswith("ipykernel.")


class NotebookOutput:
    """The output of a cell.

    Args:
        display: IPython's function `display`; None to import it.
    """

    def __init__(self, display: Callable[..., Any] | None = None) -> None:
        self._display = display or importlib.import_module("IPython.display").display
        self._first = ""
        self._shown: Any = None

    def begin(self, line: str) -> None:
        self._first = line
        self._shown = self._display(_content(line), raw=True, display_id=True)

    def update(self, line: str) -> None:
        self._shown.update(_content(f"{self._first}\n{line}"), raw=True)

    def end(self, line: str | None) -> None:
        self._shown.update(_content(self._first if line is None else f"{self._first}\n{line}"), raw=True)


def _content(text: str) -> dict[str, str]:
    return {"text/plain": text}
