"""Sources that consist of splits, each read by a reader.

Some of these sources read in steps that all subtasks share.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ekorn.columns.columns_type import has_columns, row_count
from ekorn.functions.source_contract import Batch, Malformed, SourceConnection, Split, SplitReader, SteppedReader
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.functions.state.state_handles import ListState
from ekorn.functions.watermark_strategy import WatermarkAlignment
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import SourceSpec
from ekorn.keygroups import stable_hash
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.sources.source_head import Budget, ColumnReadSize, ReadSize, SourceHead, SourceProgress
from ekorn.operators.time.held_watermark import HeldWatermark
from ekorn.operators.time.watermarks import SourceEvent, SplitWatermarks

_log = logging.getLogger(__name__)
BATCH_RECORDS = 4096
BATCH_ROWS = 1 << 17  # of columns
_NO_LIMIT = 1 << 62
_SPLITS = ListStateDescriptor("_splits")


class SplitSourceOperator(SourceHead):
    """Reads the splits of a `Source` that belong to this subtask, in turn."""

    def __init__(self, operator: Operator, spec: SourceSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._source = spec.source.for_job(checkpointing=environment.graph.settings.checkpointing)
        self._readers: dict[str, tuple[Split, SplitReader]] = {}
        self._known: set[str] = set()  # the splits that were discovered; none is read twice
        self._done: dict[str, Split] = {}
        self._connection: SourceConnection | None = None
        self._ended_at: dict[str, Any] = {}  # the positions of splits that were read to their end in this attempt
        self._captured: dict[int, dict[str, Any]] = {}  # positions by checkpoint in progress, oldest first
        self._next_discovery: float | None = None  # the monotonic time of the next discovery
        self._cut_short: str | None = None  # the split that was being read when the last budget was spent
        # Subtasks learn each other's stage as they learn the watermarks of an alignment group: through the driver.
        self._stage_group = f"stages of {operator.id}" if self._source.stage_count > 1 else None
        columns = has_columns(operator.output_type)
        self._read_size = ColumnReadSize(BATCH_ROWS) if columns else ReadSize(BATCH_RECORDS)
        self._count = row_count if columns else len
        self._checked = operator.output_type if columns else None  # the columns, which a source may fail to give
        self.watermarks: SplitWatermarks | None = None
        self.alignment: WatermarkAlignment | None = None
        if spec.watermarks is not None:
            settings = environment.graph.settings
            periodic = settings.auto_watermark_interval_ms > 0
            self.watermarks = _watermarks_of(columns=columns)(
                spec.watermarks, environment.clock, batch=settings.batch, periodic=periodic, hint=self.hint
            )
            self.alignment = None if settings.batch else spec.watermarks.alignment
        self._held = HeldWatermark[str](environment.graph.settings.held_watermark_warning_ms)

    def initialize(self) -> None:
        super().initialize()
        # Flink: the enumerator keeps the splits. Here, where a source discovers new splits, the union list state shows
        # every subtask all known splits, so that none is taken for a new one, and each subtask keeps its own. Without
        # discovery a subtask needs only its own splits, and a plain list state lets subtasks finish one by one.
        self._connection = self._source.connect(self.environment.index)
        saved = list(self._saved.get())
        for split_id, what, position, finished in saved:
            self._known.add(split_id)
            if self._searches and not self._is_mine(split_id):
                continue
            split = Split(split_id, what)
            if finished:
                self._done[split_id] = split
            else:
                self._readers[split_id] = (split, self._connection.create_reader(split, position))

    @property
    def _searches(self) -> bool:
        return self._source.discovery_interval_ms is not None

    @property
    def _saved(self) -> ListState[Any]:
        return (self.states.get_union_list_state if self._searches else self.states.get_list_state)(_SPLITS)

    def _is_mine(self, split_id: str) -> bool:
        # The id alone decides: subtasks discover at different times, so the number of a split differs between them.
        parallelism = self.environment.vertex.parallelism
        owner = self._source.owner(split_id, parallelism)
        return (stable_hash(split_id) % parallelism if owner is None else owner) == self.environment.index

    def open(self) -> None:
        super().open()
        if self._restored is None:
            self._discover(first=True)
        self._plan_discovery()

    def _plan_discovery(self) -> None:
        interval_ms = self._source.discovery_interval_ms
        if interval_ms is not None:
            self._next_discovery = self.environment.clock.monotonic() + interval_ms / 1000

    def _discover(self, *, first: bool) -> None:
        parallelism = self.environment.vertex.parallelism
        assert self._connection is not None, "initialize() comes first"
        found = self._connection.discover_splits(parallelism, first=first)
        if self._source.forgets_vanished_splits:
            # Without this, the state of a source that runs for years would hold every file that ever existed.
            self._known &= {split.id for split in found} | self._readers.keys()
            self._done = {split_id: split for split_id, split in self._done.items() if split_id in self._known}
            self._ended_at = {split_id: at for split_id, at in self._ended_at.items() if split_id in self._known}
        for number, split in enumerate(found):
            if split.id not in self._known:
                self._known.add(split.id)
                mine = self._is_mine(split.id) if self._searches else number % parallelism == self.environment.index
                if mine:
                    self._readers[split.id] = (split, self._connection.create_reader(split, None))

    def periodic_events(self) -> Iterator[SourceEvent]:
        if self.watermarks is not None:
            yield from self.watermarks.emit_periodic()
            held = self._held.check(self.watermarks.by_split(), self.environment.clock.monotonic())
            if held is not None:
                reader = f"{self.operator.name!r} (subtask {self.environment.index})"
                _log.warning("split %r of %s %s", held.input, reader, held)

    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        clock = self.environment.clock
        if self._next_discovery is not None and clock.monotonic() >= self._next_discovery:
            self._discover(first=False)
            self._plan_discovery()
        # The deadline is counted from here, after the discovery. Otherwise discoveries that take as long as an epoch
        # would leave no time for records.
        deadline = clock.monotonic() + budget.max_ms / 1000
        readers = self._readers_of_stage(budget)
        first, self._cut_short = self._cut_short, None
        if self.watermarks is not None:
            for split_id in readers:
                self.watermarks.add(split_id)
        idle = False
        while readers and not idle:
            idle = True
            for split_id, (split, reader) in _in_turn(readers, first):
                left = budget.max_records - progress.records
                left_bytes = budget.max_bytes - progress.bytes_read
                if left <= 0 or left_bytes <= 0 or clock.monotonic() >= deadline or budget.is_cut():
                    progress.backlog = True
                    self._cut_short = split_id
                    return
                if self._is_too_far_ahead(budget):
                    return
                batch = reader.read(self._read_size.next_batch(left, left_bytes))
                if batch.values:
                    idle = False
                    if self._checked is not None:
                        batch = batch._replace(values=self._as_declared(split_id, batch.values))
                    progress.records += self._count(batch.values)
                    progress.bytes_read += self._read_size.measure(batch.values)
                    yield from self._stamped(split_id, batch)
                if batch.malformed:
                    idle = False
                    self._refuse(batch.malformed)
                if reader.finished:
                    idle = False
                    self._ended_at[split_id] = reader.position()
                    reader.close()
                    del self._readers[split_id]
                    readers.pop(split_id, None)
                    self._done[split_id] = split
                    if self.watermarks is not None:
                        yield from self.watermarks.remove(split_id)
        # A short pause of a fast source does not end its backlog. An epoch without any record may be an outage.
        progress.backlog = progress.records > 0 and any(reader.behind for _, reader in readers.values())
        progress.finished = self._source.ends and not self._readers

    def _as_declared(self, split_id: str, values: Sequence[Any]) -> list[Any]:
        from ekorn.operators.columns.source_batches import checked_batches  # which loads PyArrow

        return checked_batches(values, self._checked, split_id, self.record_errors)

    def _refuse(self, malformed: Sequence[Malformed]) -> None:
        """Skip content that is not a record, or fail with its error, as configured."""
        for content, error in malformed:
            if self.record_errors is None:
                raise error
            self.record_errors.skip_malformed(content, error)

    def _readers_of_stage(self, budget: Budget) -> dict[str, tuple[Split, SplitReader]]:
        """Return the readers whose splits may be read now."""
        if self._stage_group is None:
            return self._readers
        stage_of, stage = self._source.stage_of, budget.group_watermarks.get(self._stage_group, 0)
        return {split_id: each for split_id, each in self._readers.items() if stage_of(split_id) <= stage}

    def _stamped(self, split_id: str, batch: Batch) -> Iterator[Batch | SourceEvent]:
        if self.watermarks is None:
            yield batch
            return
        yield from self.watermarks.stamp(split_id, batch)
        if self.alignment is not None:  # shows in time that this source is too far ahead
            yield from self.watermarks.emit_periodic()

    def group_watermarks(self) -> dict[str, int]:
        found: dict[str, int] = {}
        if self._stage_group is not None:
            found[self._stage_group] = min(map(self._source.stage_of, self._readers), default=self._source.stage_count)
        if self.alignment is not None and self.watermarks is not None and not self.watermarks.idle:
            found[self.alignment.group] = self.watermarks.watermark_ms
        return found

    def _is_too_far_ahead(self, budget: Budget) -> bool:
        """Return whether other sources of the alignment group have to catch up first."""
        if self.alignment is None or self.watermarks is None:
            return False
        slowest_ms = budget.group_watermarks.get(self.alignment.group)
        return slowest_ms is not None and self.watermarks.watermark_ms > slowest_ms + self.alignment.max_drift_ms

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        saved = [(s.id, s.what, r.position(), False) for s, r in self._readers.values()]
        self._captured[checkpoint_id] = {split_id: position for split_id, _, position, _ in saved} | self._ended_at
        saved += [(s.id, s.what, None, True) for s in self._done.values()]
        self._saved.update(saved)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        positions = self._captured.get(checkpoint_id)
        self._captured = {i: p for i, p in self._captured.items() if i > checkpoint_id}
        if positions and self._connection is not None:
            self._connection.checkpoint_completed(positions)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        super().checkpoint_aborted(checkpoint_id)
        self._captured.pop(checkpoint_id, None)

    def close(self) -> None:
        for _, reader in self._readers.values():
            reader.close()
        self._readers.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        super().close()


def _watermarks_of(*, columns: bool) -> type[SplitWatermarks]:
    """Return the class of the watermarks of a source of rows, or of columns."""
    if not columns:
        return SplitWatermarks
    from ekorn.operators.columns.column_timestamps import ColumnSplitWatermarks  # which loads PyArrow

    return ColumnSplitWatermarks


def _in_turn(
    readers: Mapping[str, tuple[Split, SplitReader]], first: str | None
) -> list[tuple[str, tuple[Split, SplitReader]]]:
    """Return the readers, beginning with the one whose turn it is.

    Otherwise a first split with a backlog would use up every budget.
    """
    in_order = list(readers.items())
    if first is None or first not in readers:
        return in_order
    at = list(readers).index(first)
    return in_order[at:] + in_order[:at]


class SteppedSourceOperator(SplitSourceOperator):
    """Reads the splits of this subtask to the end of the step that the order names.

    All subtasks read the same steps in an epoch, so that every checkpoint lies between two steps. The subtasks agree
    through the driver, as those of an alignment group do: each reports the last step that it could read, and the next
    epoch's order has the lowest of them. An epoch reads whole steps, whatever its budget is; the source keeps its steps
    short.
    """

    def __init__(self, operator: Operator, spec: SourceSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._step_group = f"steps of {operator.id}"

    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        step = budget.group_watermarks.get(self._step_group)
        if step is not None:
            for reader in self._stepped():
                reader.allow(step)
        no_limit = Budget(_NO_LIMIT, _NO_LIMIT, _NO_LIMIT)
        whole_steps = replace(no_limit, group_watermarks=budget.group_watermarks, wait_s=budget.wait_s)
        yield from super().read(whole_steps, progress)
        progress.backlog = step is not None and any(reader.last_step() > step for reader in self._stepped())

    def group_watermarks(self) -> dict[str, int]:
        found = super().group_watermarks()
        if self._readers:
            found[self._step_group] = min(reader.last_step() for reader in self._stepped())
        return found

    def _stepped(self) -> Iterator[SteppedReader]:
        for _, reader in self._readers.values():
            assert isinstance(reader, SteppedReader), f"{self._source!r} says that it reads in steps"
            yield reader
