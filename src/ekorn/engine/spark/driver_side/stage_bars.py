"""Runs in the driver: keeps Spark's stage bars off the terminal while jobs run.

Spark draws a bar on standard error for a stage that takes longer than half a second, over whatever stands on the line.
A session that ekorn starts has none (`spark.ui.showConsoleProgress`). A session of the user draws them by default, and
Spark has no way to turn them off later. So the thread that draws them is stopped, and a new one takes its place when
the last job has ended.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_hidden: Counter[str] = Counter()  # jobs for which the bars of an application are hidden


class StageBars:
    """The stage bars of a session, for one job.

    Args:
        context: Spark's context.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._application: str | None = None  # whose bars are hidden for this job

    def hide(self) -> None:
        """Draw no bars from now on."""
        try:
            with _lock:
                application = self._context.applicationId
                shown = self._context._jsc.sc().progressBar()
                if shown.isDefined():
                    self._replace(self._context._jvm.scala.Option.empty())
                    shown.get().finishAll()  # clears what stands on the line
                    shown.get().stop()
                elif not _hidden[application]:
                    return  # the session draws none
                _hidden[application] += 1
                self._application = application
        except Exception as error:  # Spark's internals differ between versions: the job runs all the same
            _log.info("Spark's stage bars stay on the terminal; set spark.ui.showConsoleProgress=false: %s", error)

    def show(self) -> None:
        """Draw bars again, unless another job of the session still runs."""
        application, self._application = self._application, None
        if application is None:
            return
        with _lock:
            _hidden[application] -= 1
            if _hidden[application]:
                return
            del _hidden[application]
            try:
                bar = getattr(self._context._jvm, "org.apache.spark.ui.ConsoleProgressBar")
                self._replace(self._context._jvm.scala.Option.apply(bar(self._context._jsc.sc())))
            except Exception as error:  # the user may have stopped the session already
                _log.info("Spark's stage bars do not come back: %s", error)

    def _replace(self, bar: Any) -> None:
        java = self._context._jsc.sc()
        field = java.getClass().getDeclaredField("_progressBar")
        field.setAccessible(True)
        field.set(java, bar)
