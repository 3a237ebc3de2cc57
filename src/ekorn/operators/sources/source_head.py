"""A source at the head of its chain.

Each epoch the source is asked for records until its budget is spent or no more records are available. Positions are
operator state, captured at the end of the epoch that carries the checkpoint.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.columns_type import row_count
from ekorn.functions.source_contract import Batch
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.time.watermarks import SourceEvent
from ekorn.types.by_value import size_of

_FIRST_BATCH = 256
_GROWTH = 4
_SAMPLE = 4  # the number of records of a batch that are measured


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits what a source subtask reads in one epoch."""

    max_records: int
    max_ms: int
    max_bytes: int = 1 << 62
    group_watermarks: Mapping[str, int] = field(default_factory=dict)  # the lowest watermark of each alignment group
    wait_s: float = 0.002  # how long to wait for the first record
    is_cut: Callable[[], bool] = lambda: False  # whether to stop now, whatever is left


@dataclass(slots=True)
class SourceProgress:
    """The input that a source subtask read in one epoch."""

    records: int = 0
    bytes_read: int = 0  # estimated from samples
    backlog: bool = False  # the budget was spent before all available records were read
    finished: bool = False


class ReadSize:
    """Decides how many records a source reads at a time, and estimates their bytes from a sample.

    The first batch is small, and a batch is at most four times as long as the batch before it. A source therefore
    reads past its budget of bytes by one batch at most, whose length follows the average of the last sample.
    """

    def __init__(self, most_records: int) -> None:
        self._most_records = most_records
        self._length = min(_FIRST_BATCH, most_records)
        self._record_bytes = 0.0  # the average record size of the last sample

    def next_batch(self, left_records: int, left_bytes: int) -> int:
        """Return how many records the next batch may have, at least 1."""
        affordable = left_bytes if self._record_bytes < 1 else int(left_bytes / self._record_bytes)
        return max(1, min(self._length, left_records, affordable))

    def measure(self, values: Sequence[Any]) -> int:
        """Return the estimated bytes of a batch that was read, and adapt the length of the next."""
        count = len(values)
        sample = values[:: -(-count // _SAMPLE)]
        self._record_bytes = sum(map(size_of, sample)) / len(sample)
        self._length = min(self._most_records, max(self._length, count * _GROWTH))
        return int(self._record_bytes * count)


class ColumnReadSize(ReadSize):
    """Decides how many rows a source of columns reads at a time. The bytes of a batch are known."""

    def measure(self, values: Sequence[Any]) -> int:
        rows = row_count(list(values))
        size: int = sum(batch.size_bytes for batch in values)
        if rows:
            self._record_bytes = size / rows
            self._length = min(self._most_records, max(self._length, rows * _GROWTH))
        return size


class SourceHead(RuntimeOperator):
    """The head of a source's chain."""

    @abstractmethod
    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Yield runs of records, and events between them, until the budget is spent or no records are available."""

    def periodic_events(self) -> Iterator[SourceEvent]:
        """Yield the watermark that is due, after a `read` that did not end the source."""
        return iter(())

    def cut(self, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Stop the source, and yield the records it has handed over. The source continues after `after_snapshot`."""
        return iter(())

    def group_watermarks(self) -> dict[str, int]:
        """Return the watermark of the source's alignment group.

        The result is empty without a group, or while the source is idle.
        """
        return {}

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        emit(value, time)
