"""The two kinds of sources: `Source`, whose splits are read from a position, and `SourceFunction`, which pushes.

A `Source` lists its splits (files, Kafka partitions, ranges of a sequence) and creates a `SplitReader` for each. The
runtime assigns splits to subtasks, keeps the position of every split as operator state, and passes the position to a
new reader on restore, at any parallelism. A source therefore has no state of its own and needs no coordinator.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ekorn.functions.record_functions import Function
from ekorn.functions.watermark_strategy import Watermark

T = TypeVar("T")


class Boundedness(enum.Enum):
    """Says whether a source ends by itself."""

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "continuous-unbounded"


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that one subtask reads: an id that is unique within the source, and what to read."""

    id: str
    what: Any = None


class Malformed(NamedTuple):
    """Content that is not a record: the content as it was read, and the error that says where it is and why."""

    content: Any
    error: Exception


class Batch(NamedTuple):
    """A run of records read at once; `timestamps` is None if the source assigns no timestamps.

    `malformed` is what the reader passed over between these records. The operator fails the job with its error, or
    skips it, or sends it to the dead letters, as `ekorn.on-record-error` says.
    """

    values: list[Any]
    timestamps: list[int] | None = None
    malformed: Sequence[Malformed] = ()


class SplitReader(ABC):
    """Reads one split from a position. Used by one thread only."""

    holds_file = False
    """Whether the reader keeps a file open between two reads; a source of files opens only some of them at a time."""

    @abstractmethod
    def read(self, max_records: int) -> Batch:
        """Read up to `max_records` records without waiting; return an empty batch if none is available now."""

    @abstractmethod
    def position(self) -> Any:
        """Return the position at which a new reader continues: plain data (numbers, strings, tuples, dicts)."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Return whether the split is read to its end; a finished split is never read again."""

    @property
    def behind(self) -> bool:
        """Return whether the split is known to have more records, although none of them is here yet."""
        return False

    def close(self) -> None:  # noqa: B027 - most readers have nothing to release
        """Release files and connections."""


class SteppedReader(SplitReader):
    """Reads its split in steps, which have the same numbers in all splits of the source.

    In an epoch every subtask reads to the end of the same step. A checkpoint therefore lies between two steps, at the
    same place in all splits, and a position may mean something for the source as a whole.
    """

    @abstractmethod
    def last_step(self) -> int:
        """Return the last step that every split can read now without waiting."""

    @abstractmethod
    def allow(self, step: int) -> None:
        """Let `read` go on to the end of this step, and no further."""


class SourceConnection(ABC):
    """One subtask's connection to the system that a source reads, shared by the readers of the subtask."""

    @abstractmethod
    def discover_splits(self, parallelism: int, *, first: bool) -> Sequence[Split]:
        """Return the present splits, as `Source.discover_splits` does.

        Args:
            parallelism: The number of subtasks.
            first: Whether the job starts without restored positions. Later calls find splits that are new.
        """

    @abstractmethod
    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a split, as `Source.create_reader` does."""

    def checkpoint_completed(self, positions: Mapping[str, Any]) -> None:  # noqa: B027 - most sources report nothing
        """Take note that a checkpoint is complete that holds these positions, by the id of the split."""

    def close(self) -> None:  # noqa: B027 - most sources have nothing to release
        """Close the connection, after its readers."""


class Source(ABC):
    """A source of records for `env.from_source`."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Return whether the source ends by itself."""

    @abstractmethod
    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the present splits, the same on every subtask.

        Called when a job starts without restored positions, and again every `discovery_interval_ms`. Splits with a
        known id keep their reader and position.
        """

    @abstractmethod
    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a split at the position of an earlier reader, or at its start if the position is None."""

    @property
    def discovery_interval_ms(self) -> int | None:
        """Return the interval at which new splits are looked for, or None to look once."""
        return None

    @property
    def ends(self) -> bool:
        """Return whether the source ends with the last of its splits. An unbounded source may: where it is told to."""
        return self.boundedness is Boundedness.BOUNDED

    @property
    def reads_in_steps(self) -> bool:
        """Return whether the readers are `SteppedReader`s."""
        return False

    @property
    def forgets_vanished_splits(self) -> bool:
        """Return whether a split that was read to its end is forgotten once it is no longer discovered.

        The state is then bounded by the splits that are present. A split of that id that appears later is a new one.
        """
        return False

    @property
    def stage_count(self) -> int:
        """Return the number of stages that are read one after the other."""
        return 1

    def stage_of(self, split_id: str) -> int:
        """Return the stage of a split, from 0: it is read when no subtask has a split of an earlier stage left."""
        return 0

    def owner(self, split_id: str, parallelism: int) -> int | None:
        """Return the subtask that reads a split, for sources that look for new splits; None: by a hash of the id."""
        return None

    def for_job(self, *, checkpointing: bool) -> Source:
        """Return this source for a job with or without checkpoints."""
        return self

    def connect(self, subtask_index: int) -> SourceConnection:
        """Open the connection of one subtask. Overridden by sources whose readers share one."""
        return _NoConnection(self)


class _NoConnection(SourceConnection):
    """The connection of a source whose readers share nothing."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def discover_splits(self, parallelism: int, *, first: bool) -> Sequence[Split]:
        return self._source.discover_splits(parallelism)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return self._source.create_reader(split, position)


class SourceContext(ABC, Generic[T]):
    """Passed to `SourceFunction.run`, which emits records through it."""

    @abstractmethod
    def collect(self, element: T) -> None:
        """Emit a record without a timestamp. Blocks while the buffer to the job is full."""

    @abstractmethod
    def collect_with_timestamp(self, element: T, timestamp: int) -> None:
        """Emit a record with an event timestamp in milliseconds."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Declare that no record with a timestamp at or below the watermark will follow."""

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """Exclude this source from the watermark until its next record."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return the lock that makes emitting a record and advancing the offset one step for checkpoints."""


class SourceFunction(Function, ABC, Generic[T]):
    """A source that pushes: `run` emits through the context until the end of the input or until `cancel` is called.

    `run` has a thread of its own. A function that restores an offset also extends `CheckpointedFunction` or
    `ListCheckpointed`, and emits and advances under the checkpoint lock:

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
    """A `SourceFunction` that may run at a parallelism above 1, with one instance per subtask."""
