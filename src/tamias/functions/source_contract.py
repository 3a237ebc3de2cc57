"""What a source is: splits that can be read from a position, and the older push style.

A `Source` names its splits (files, Kafka partitions, ranges of a sequence) and makes a `SplitReader` for
each. The runtime assigns splits to subtasks, keeps every split's position as operator state and hands it
back on restore, at any parallelism. A source therefore holds no state of its own and needs no coordinator.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from tamias.functions.record_functions import Function
from tamias.functions.watermark_strategy import Watermark

T = TypeVar("T")


class Boundedness(enum.Enum):
    """Whether a source ends by itself."""

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "continuous-unbounded"


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that one subtask reads: an id unique within the source, and what to read."""

    id: str
    what: Any = None


class Batch(NamedTuple):
    """A run of records read at once; `timestamps` is None when the source assigns none."""

    values: list[Any]
    timestamps: list[int] | None = None


class SplitReader(ABC):
    """Reads one split from a position. Used by one thread only."""

    @abstractmethod
    def read(self, max_records: int) -> Batch:
        """Read up to `max_records` records without waiting; an empty batch says that nothing is there now."""

    @abstractmethod
    def position(self) -> Any:
        """Where reading goes on: plain data (numbers, strings, tuples, dicts) that a new reader starts from."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Return whether the split is read to its end; it is then never read again."""

    def close(self) -> None:  # noqa: B027 - most readers have nothing to release
        """Release files and connections."""


class Source(ABC):
    """A source of records for `env.from_source`."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Return whether the source ends by itself."""

    @abstractmethod
    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Name the splits there are now, the same on every subtask.

        Called when a job starts without restored positions, and again every `discovery_interval_ms`.
        Splits already known (by id) are kept as they are.
        """

    @abstractmethod
    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a split at a position taken by an earlier reader, or at its start when that is None."""

    @property
    def discovery_interval_ms(self) -> int | None:
        """How often to look for new splits; None looks once."""
        return None


class SourceContext(ABC, Generic[T]):
    """Handed to `SourceFunction.run`: where records go."""

    @abstractmethod
    def collect(self, element: T) -> None:
        """Emit a record without a timestamp; waits while the buffer to the job is full."""

    @abstractmethod
    def collect_with_timestamp(self, element: T, timestamp: int) -> None:
        """Emit a record with an event timestamp in milliseconds."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Say that no record with a timestamp at or below the watermark's will follow."""

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """Take this source out of the watermark until its next record."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return the lock under which emitting a record and advancing the offset are one step for checkpoints."""


class SourceFunction(Function, ABC, Generic[T]):
    """A source that pushes: `run` emits through the context until it is done or `cancel` was called.

    `run` has a thread of its own. A function with an offset to restore also extends `CheckpointedFunction`
    or `ListCheckpointed`, and emits and advances under the checkpoint lock:

        while self.running and self.offset < self.end:
            with ctx.get_checkpoint_lock():
                ctx.collect(self.offset)
                self.offset += 1
    """

    @abstractmethod
    def run(self, ctx: SourceContext[T]) -> None:
        """Emit records; return at the end of a bounded source."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return soon. Called from another thread."""


class ParallelSourceFunction(SourceFunction[T], ABC, Generic[T]):
    """A `SourceFunction` that may run with a parallelism above 1, one instance per subtask."""
