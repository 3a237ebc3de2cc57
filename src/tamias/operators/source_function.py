"""Source functions, which push records from a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from tamias.functions.source_contract import Batch, SourceContext, SourceFunction
from tamias.functions.watermark_strategy import Watermark
from tamias.graph.job_graph import Operator
from tamias.graph.specs import SourceFunctionSpec
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.source_head import Budget, SourceHead, SourceProgress
from tamias.operators.watermarks import SourceEvent


class SourceFunctionOperator(SourceHead):
    """Runs a `SourceFunction` on a thread and hands over what it collected.

    The function's thread and the job meet under the checkpoint lock: a batch is taken, and its offset
    snapshotted, while the function is between two steps of its own.
    """

    def __init__(self, operator: Operator, spec: SourceFunctionSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function: SourceFunction[Any] = spec.function
        self._context = _Collector()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._hold: _Hold | None = None  # between `cut` and `after_snapshot`

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def _run(self) -> None:
        try:
            self._function.run(self._context)
        except BaseException as error:
            if not self._context.cancelled:
                self._error = error
        finally:
            self._context.finish()

    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"source {self.operator.name}", daemon=True)
            self._thread.start()
        clock = self.environment.clock
        stop_ms = clock.now_ms() + budget.max_ms
        while True:
            ended = self._context.finished  # before looking: what it collected last is then seen below
            items = self._context.take(wait_s=0.002 if not progress.records else 0.0)
            if self._error is not None:
                raise self._error
            if not items:
                progress.finished = ended
                return
            yield from _runs(items, progress)
            if progress.records >= budget.max_records or clock.now_ms() >= stop_ms:
                progress.backlog = True
                return

    def cut(self, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        # The function may hold the lock while it waits for room in the buffer, so keep taking until we have it.
        items: list[Any] = []
        self._hold = _Hold(self._context.lock)
        while not self._hold.has_it.wait(0.005):
            items += self._context.take(wait_s=0.0)
        items += self._context.take(wait_s=0.0)
        yield from _runs(items, progress)

    def after_snapshot(self) -> None:
        if self._hold is not None:
            self._hold.let_go()
            self._hold = None

    def close(self) -> None:
        self._context.cancel()
        self.after_snapshot()  # of an epoch that failed behind its cut
        if self._thread is not None and self._thread.is_alive():
            self._function.cancel()
            self._thread.join(timeout=10.0)
        super().close()


class _Hold:
    """Holds the checkpoint lock on a thread of its own: who lets go of it may be another thread than who took it."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.has_it = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoint-lock", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._lock:
            self.has_it.set()
            self._over.wait()

    def let_go(self) -> None:
        """The lock is free when this returns; or will be let go of when it is had, should it not be ours yet."""
        self._over.set()
        if self.has_it.is_set():
            self._thread.join()


class _Collector(SourceContext[Any]):
    """The buffer between a source function's thread and the job."""

    _CAPACITY = 50_000

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._changed = threading.Condition(threading.Lock())
        self._items: deque[Any] = deque()
        self._idle = False
        self.cancelled = False
        self.finished = False

    def collect(self, element: Any) -> None:
        if self._idle:
            self._set_idle(False)
        self._put((element, None))

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        if self._idle:
            self._set_idle(False)
        self._put((element, timestamp))

    def emit_watermark(self, watermark: Watermark) -> None:
        if self._idle:
            self._set_idle(False)
        self._put(SourceEvent(watermark_ms=watermark.timestamp))

    def mark_as_temporarily_idle(self) -> None:
        if not self._idle:
            self._set_idle(True)

    def _set_idle(self, idle: bool) -> None:
        self._idle = idle
        self._put(SourceEvent(idle=idle))

    def get_checkpoint_lock(self) -> Any:
        return self.lock

    def close(self) -> None:
        """Nothing to release."""

    def _put(self, item: Any) -> None:
        with self._changed:
            # The function may hold the checkpoint lock here. A full buffer is emptied without that lock, so
            # waiting for room cannot wait for ourselves.
            while len(self._items) >= self._CAPACITY and not self.cancelled:
                self._changed.wait()
            if self.cancelled:
                raise _Cancelled
            self._items.append(item)
            if len(self._items) == 1:
                self._changed.notify_all()

    def take(self, wait_s: float) -> list[Any]:
        """What was collected; waits a moment for the first item."""
        with self._changed:
            if not self._items and not self.finished and wait_s:
                self._changed.wait(wait_s)
            items = list(self._items)
            self._items.clear()
            self._changed.notify_all()
        return items

    def finish(self) -> None:
        with self._changed:
            self.finished = True
            self._changed.notify_all()

    def cancel(self) -> None:
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()


class _Cancelled(BaseException):
    """Unwinds a source function that is still collecting when the job has ended."""


def _runs(items: list[Any], progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
    """Items as runs of records that all have, or all lack, a timestamp, with events between them."""
    values: list[Any] = []
    times: list[int] = []
    for item in items:
        if isinstance(item, SourceEvent):
            if values:
                yield Batch(values, times or None)
                values, times = [], []
            yield item
            continue
        value, time = item
        if values and (time is None) == bool(times):
            yield Batch(values, times or None)
            values, times = [], []
        values.append(value)
        if time is not None:
            times.append(time)
        progress.records += 1
    if values:
        yield Batch(values, times or None)
