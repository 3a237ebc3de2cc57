"""Source functions, which push records from a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ekorn.functions.assigned_timestamps import whole_ms
from ekorn.functions.source_contract import Batch, SourceContext, SourceFunction
from ekorn.functions.watermark_strategy import Watermark
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import SourceFunctionSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.sources.source_head import Budget, ReadSize, SourceHead, SourceProgress
from ekorn.operators.time.watermarks import SourceEvent
from ekorn.types.by_value import size_of

BUFFER_RECORDS = 50_000  # records that a function may be ahead of the job
BUFFER_BYTES = 16 << 20  # the estimated bytes that a function may be ahead of the job
_FIRST_LOOK = 8  # the number of records before their size is estimated for the first time
_GROWTH = 4
_MOST_BETWEEN_LOOKS = 256
_SAMPLED = 64  # the most items that are measured to estimate the bytes of the collected items


class SourceFunctionOperator(SourceHead):
    """Runs a `SourceFunction` on a thread and takes the records that it collected.

    The checkpoint lock separates the function's thread from the job's. Records are taken, and the function's offset is
    captured, while the function is between two of its locked steps.
    """

    def __init__(self, operator: Operator, spec: SourceFunctionSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function: SourceFunction[Any] = spec.function
        self._context = SourceBuffer()
        self._read_size = ReadSize(BUFFER_RECORDS)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._hold: _LockHolder | None = None  # holds the lock from `cut` to `after_snapshot`

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def _run(self) -> None:
        try:
            self._function.run(self._context)
        except BaseException as error:  # `read` raises the error on the job's thread
            if not self._context.cancelled:
                self._error = error
        finally:
            self._context.finish()

    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"source {self.operator.name}", daemon=True)
            self._thread.start()
        clock = self.environment.clock
        deadline = clock.monotonic() + budget.max_ms / 1000
        while True:
            ended = self._context.finished  # read before the buffer, so that the records collected last are taken below
            items = self._context.take(wait_s=0.0 if progress.records else budget.wait_s)
            if self._error is not None:
                raise self._error
            if not items:
                progress.finished = ended
                return
            records = [item[0] for item in items[:: -(-len(items) // _SAMPLED)] if not isinstance(item, SourceEvent)]
            if records:
                progress.bytes_read += self._read_size.measure(records) * len(items) // len(records)
            yield from _runs(items, progress)
            spent = progress.records >= budget.max_records or progress.bytes_read >= budget.max_bytes
            if spent or clock.monotonic() >= deadline or budget.is_cut():
                progress.backlog = True
                return

    def cut(self, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        # The function may hold the lock while it waits for room in the buffer: take records until the lock is free.
        self._hold = _LockHolder(self._context.lock)
        while not self._hold.acquired.wait(0.005):
            yield from _runs(self._context.take(wait_s=0.0), progress)
        yield from _runs(self._context.take(wait_s=0.0), progress)

    def after_snapshot(self) -> None:
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    def close(self) -> None:
        self._context.cancel()
        self.after_snapshot()  # releases the lock if an epoch failed after its cut
        if self._thread is not None and self._thread.is_alive():
            self._function.cancel()
            self._thread.join(timeout=10.0)
        super().close()


class _LockHolder:
    """Holds the checkpoint lock on a thread of its own, since acquirer and releaser may be different threads."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.acquired = threading.Event()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoint-lock", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._lock:
            self.acquired.set()
            self._released.wait()

    def release(self) -> None:
        """Release the lock now, or as soon as the pending acquire succeeds."""
        self._released.set()
        if self.acquired.is_set():
            self._thread.join()


class SourceBuffer(SourceContext[Any]):
    """The buffer between a source function's thread and the job. A function that collects into a full buffer waits.

    The buffer is full at `most_records`, or at about `most_bytes`: the size of a record is measured from time to time,
    and more often if records are large.
    """

    def __init__(self, most_records: int = BUFFER_RECORDS, most_bytes: int = BUFFER_BYTES) -> None:
        self.lock = threading.RLock()
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._changed = threading.Condition(threading.Lock())
        self._items: deque[Any] = deque()
        self._bytes = 0.0  # the estimated bytes of the items that were counted so far
        self._counted = 0  # items that `_bytes` covers
        self._between_looks = _FIRST_LOOK
        self._look_at = _FIRST_LOOK  # the number of items in the buffer at which the size is estimated next
        self._idle = False
        self.is_full = False  # whether the function waits for room
        self.cancelled = False
        self.finished = False

    def collect(self, element: Any) -> None:
        if self._idle:
            self._set_idle(False)
        self._put((element, None))

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        if self._idle:
            self._set_idle(False)
        if timestamp.__class__ is not int:
            timestamp = whole_ms(timestamp, element, "collect_with_timestamp() was given")
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
        """Release nothing: the operator owns the buffer."""

    def _put(self, item: Any) -> None:
        with self._changed:
            if len(self._items) >= self._look_at:
                self._look(item)
            if self.cancelled:
                raise _Cancelled
            self._items.append(item)
            if len(self._items) == 1:
                self._changed.notify_all()

    def _look(self, item: Any) -> None:
        """Estimate the bytes in the buffer from the next item, and wait while the buffer is full."""
        is_event = isinstance(item, SourceEvent)
        if is_event and len(self._items) < self._most_records:
            return  # a watermark says nothing about the size of records, so the next record is measured instead
        size_bytes = 1 if is_event else max(1, size_of(item[0]))
        self._bytes += size_bytes * (len(self._items) - self._counted)
        self._counted = len(self._items)
        # The function may hold the checkpoint lock here. A full buffer is emptied without the lock, so waiting
        # for room cannot deadlock.
        while (len(self._items) >= self._most_records or self._bytes >= self._most_bytes) and not self.cancelled:
            self.is_full = True
            self._changed.wait()
        self.is_full = False
        affordable = int((self._most_bytes - self._bytes) / size_bytes)
        self._between_looks = max(1, min(affordable, self._between_looks * _GROWTH, _MOST_BETWEEN_LOOKS))
        self._look_at = min(len(self._items) + self._between_looks, self._most_records)

    def take(self, wait_s: float) -> list[Any]:
        """Remove and return all items; wait at most `wait_s` for the first."""
        with self._changed:
            if not self._items and not self.finished and wait_s:
                self._changed.wait(wait_s)
            items = list(self._items)
            self._items.clear()
            self._bytes, self._counted, self._look_at = 0.0, 0, self._between_looks
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
    """Ends a source function that still collects after the job has ended."""


def _runs(items: list[Any], progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
    """Yield items as runs of records, with events between them. All or none of a run's records have timestamps."""
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
