"""Sources: splits read by readers, and functions that push from a thread of their own.

A source is the head of its chain. Each epoch it is asked for records until its budget is spent or nothing more
is there; positions are operator state, taken at the end of the epoch that carries the checkpoint.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tamias.codegen.chain_operator import Emit
from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.source_contract import Batch, Boundedness, SourceContext, SourceFunction, Split, SplitReader
from tamias.functions.state_descriptors import ListStateDescriptor
from tamias.functions.state_handles import ListState
from tamias.functions.watermark_strategy import Watermark, WatermarkAlignment
from tamias.graph.job_graph import Operator
from tamias.graph.specs import SourceFunctionSpec, SourceSpec
from tamias.keygroups import stable_hash
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.operator import RuntimeOperator
from tamias.operators.watermarks import SourceEvent, SplitWatermarks

BATCH_RECORDS = 4096
_SPLITS = ListStateDescriptor("_splits")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a source subtask may read in one epoch."""

    max_records: int
    max_ms: int
    group_watermarks: Mapping[str, int] = field(default_factory=dict)  # how far each alignment group has come


@dataclass(slots=True)
class SourceProgress:
    """How an epoch went for a source subtask."""

    records: int = 0
    backlog: bool = False  # it stopped because its budget was spent: there was more
    finished: bool = False


class SourceHead(RuntimeOperator):
    """The head of a source's chain."""

    @abstractmethod
    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Runs of records and what lies between them, until the budget is spent or nothing more is there."""

    def cut(self, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Stop the source where it stands; what it had handed over by then. `after_snapshot` lets it go on."""
        return iter(())

    def group_watermarks(self) -> dict[str, int]:
        """Return the watermark of the source's alignment group; empty without a group, or while idle."""
        return {}

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        emit(value, time)


class SplitSourceOperator(SourceHead):
    """Reads the splits of a `Source` that fall to this subtask, in turn."""

    def __init__(self, operator: Operator, spec: SourceSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._source = spec.source
        self._readers: dict[str, tuple[Split, SplitReader]] = {}
        self._known: set[str] = set()  # every split ever seen, by any subtask, so that none is read twice
        self._done: dict[str, Split] = {}
        self._next_discovery_ms: int | None = None
        self.watermarks: SplitWatermarks | None = None
        self.alignment: WatermarkAlignment | None = None
        if spec.watermarks is not None:
            settings = environment.graph.settings
            periodic = settings.auto_watermark_interval_ms > 0
            self.watermarks = SplitWatermarks(
                spec.watermarks, environment.clock, batch=settings.batch, periodic=periodic
            )
            self.alignment = None if settings.batch else spec.watermarks.alignment

    def initialize(self) -> None:
        super().initialize()
        # Flink keeps splits in the enumerator. Here a source that looks for new splits shows every subtask all of
        # them (union), so that none is taken for new; each then takes its own. Without such search a subtask needs
        # its own only, and a plain list lets subtasks finish one by one: their splits are needed no more.
        saved = list(self._saved.get())
        for split_id, what, position, finished in saved:
            self._known.add(split_id)
            if self._searches and not self._is_mine(split_id):
                continue
            split = Split(split_id, what)
            if finished:
                self._done[split_id] = split
            else:
                self._readers[split_id] = (split, self._source.create_reader(split, position))

    @property
    def _searches(self) -> bool:
        return self._source.discovery_interval_ms is not None

    @property
    def _saved(self) -> ListState[Any]:
        return (self.states.get_union_list_state if self._searches else self.states.get_list_state)(_SPLITS)

    def _is_mine(self, split_id: str) -> bool:
        # By its id alone: subtasks look at different times, so what is third for one may be fourth for another.
        return stable_hash(split_id) % self.environment.vertex.parallelism == self.environment.index

    def open(self) -> None:
        super().open()
        if self._restored is None:
            self._discover()
        interval = self._source.discovery_interval_ms
        self._next_discovery_ms = None if interval is None else self.environment.clock.now_ms() + interval

    def _discover(self) -> None:
        parallelism = self.environment.vertex.parallelism
        for number, split in enumerate(self._source.discover_splits(parallelism)):
            if split.id not in self._known:
                self._known.add(split.id)
                mine = self._is_mine(split.id) if self._searches else number % parallelism == self.environment.index
                if mine:
                    self._readers[split.id] = (split, self._source.create_reader(split, None))

    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        yield from self._read_splits(budget, progress)
        if self.watermarks is not None and not progress.finished:
            yield from self.watermarks.emit_periodic()

    def _read_splits(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        clock = self.environment.clock
        stop_ms = clock.now_ms() + budget.max_ms
        if self._next_discovery_ms is not None and clock.now_ms() >= self._next_discovery_ms:
            self._discover()
            self._next_discovery_ms = clock.now_ms() + (self._source.discovery_interval_ms or 0)
        if self.watermarks is not None:
            for split_id in self._readers:
                self.watermarks.add(split_id)
        idle = False
        while self._readers and not idle:
            idle = True
            for split_id, (split, reader) in list(self._readers.items()):
                left = budget.max_records - progress.records
                if left <= 0 or clock.now_ms() >= stop_ms:
                    progress.backlog = True
                    return
                if self._is_too_far_ahead(budget):
                    return
                batch = reader.read(min(BATCH_RECORDS, left))
                if batch.values:
                    idle = False
                    progress.records += len(batch.values)
                    yield from self._stamped(split_id, batch)
                if reader.finished:
                    idle = False
                    reader.close()
                    del self._readers[split_id]
                    self._done[split_id] = split
                    if self.watermarks is not None:
                        yield from self.watermarks.remove(split_id)
        bounded = self._source.boundedness is Boundedness.BOUNDED
        progress.finished = bounded and not self._readers

    def _stamped(self, split_id: str, batch: Batch) -> Iterator[Batch | SourceEvent]:
        if self.watermarks is None:
            yield batch
            return
        yield from self.watermarks.stamp(split_id, batch)
        if self.alignment is not None:  # to know in time that it is too far ahead
            yield from self.watermarks.emit_periodic()

    def group_watermarks(self) -> dict[str, int]:
        if self.alignment is None or self.watermarks is None or self.watermarks.idle:
            return {}
        return {self.alignment.group: self.watermarks.watermark_ms}

    def _is_too_far_ahead(self, budget: Budget) -> bool:
        """Whether others of its alignment group have to catch up before it may read on."""
        if self.alignment is None or self.watermarks is None:
            return False
        slowest_ms = budget.group_watermarks.get(self.alignment.group)
        return slowest_ms is not None and self.watermarks.watermark_ms > slowest_ms + self.alignment.max_drift_ms

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        super().before_snapshot(checkpoint_id, now_ms)
        saved = [(s.id, s.what, r.position(), False) for s, r in self._readers.values()]
        saved += [(s.id, s.what, None, True) for s in self._done.values()]
        self._saved.update(saved)

    def close(self) -> None:
        for _, reader in self._readers.values():
            reader.close()
        self._readers.clear()
        super().close()


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
