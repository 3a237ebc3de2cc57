"""`OffsetBatchesSource`: reads the batches in which a source of Spark is read, from one offset to the next.

All lanes read the same batches in an epoch, so a checkpoint lies between two batches, and a position is an offset of
the source. A job that is restored from a position does not use the files of an earlier job: the driver reads the source
again from the offset, and the batch may then consist of other files.
"""

from __future__ import annotations

import time
from typing import Any

from ekorn.connectors.data_frames.lane_source import LaneForm, LanePosition, LaneRows, LaneSource
from ekorn.connectors.data_frames.row_batches import Beginning, Lane, RowBatches, batch_path
from ekorn.connectors.data_frames.written_rows import Manifest
from ekorn.errors import RowFilesGone, SparkSourceFailed
from ekorn.functions.source_contract import Batch, Split, SteppedReader
from ekorn.storage.file_store import open_files
from ekorn.storage.locations import join, shown
from ekorn.types.data_types import RowType

__all__ = ["OffsetBatchesSource"]

_EPOCH_BYTES = 64 << 20  # the bytes of waiting batches that one epoch reads; a batch is always read whole
_END_STEP = 1 << 62


class OffsetBatchesSource(LaneSource):
    """Reads the batches of a source of Spark. A step is a batch.

    Args:
        address: The folder of this run of the job.
        home: The folder of the source, without credentials; a restored split has the folder of the job that began it.
        row_type: The columns of the rows.
        lanes: The number of lanes.
        bounded: Whether the batches end by themselves.
        as_columns: Whether the stream has columns instead of rows.
    """

    def __init__(
        self, address: str, home: str, row_type: RowType, *, lanes: int, bounded: bool, as_columns: bool = False
    ) -> None:
        super().__init__(address, row_type, lanes=lanes, bounded=bounded, as_columns=as_columns)
        self._home = home

    @property
    def reads_in_steps(self) -> bool:
        """Return True: an epoch reads whole batches."""
        return True

    def _lane(self, number: int) -> tuple[Any, ...]:
        return number, self._lanes, self._home

    def create_reader(self, split: Split, position: Any | None) -> SteppedReader:
        """Open a lane at the batch and offset of an earlier reader, or at the beginning."""
        number, lanes, home = split.what
        batch_id, offset = position or (0, None)
        return _SteppedLane(
            self._address,
            self._form(),
            Lane(number, lanes),
            Beginning(batch_id, offset, home),
            self._look_interval_ms / 1000,
        )


class _SteppedLane(SteppedReader):
    def __init__(self, address: str, form: LaneForm, lane: Lane, beginning: Beginning, look_interval_s: float) -> None:
        self._address = address
        self._batches = RowBatches(open_files(address))
        self._batches.begin_at(beginning)
        self._batches.ask_again()
        self._form = form
        self._lane = lane
        self._batch_id, self._offset, _ = beginning
        self._allowed = self._last_step = self._batch_id - 1
        self._look_interval_s = look_interval_s
        self._next_look = 0.0  # a monotonic time
        self._manifests: dict[int, Manifest] = {}  # the manifests of batches that are complete and not read yet
        self._rows: LaneRows | None = None  # the rows of the current batch
        self._finished = False

    def last_step(self) -> int:
        now = time.monotonic()
        if now >= self._next_look:
            self._last_step = self._look()
            self._next_look = now + self._look_interval_s
        return self._last_step

    def _look(self) -> int:
        ended = self._batches.ended()  # read before the batches, so that a batch written before the end is found below
        waiting = [batch_id for batch_id in self._batches.ready() if batch_id >= self._batch_id]
        if not waiting:
            if ended is None:
                return self._batch_id - 1
            if ended.failure is not None:
                raise SparkSourceFailed(ended.query, ended.failure)
            return _END_STEP
        last, size_bytes = self._batch_id, self._size_bytes(self._batch_id)
        while last + 1 in waiting and size_bytes + self._size_bytes(last + 1) <= _EPOCH_BYTES:
            last += 1
            size_bytes += self._size_bytes(last)
        return last

    def _size_bytes(self, batch_id: int) -> int:
        return sum(file.size_bytes for file in self._manifest(batch_id).files)

    def _manifest(self, batch_id: int) -> Manifest:
        if batch_id not in self._manifests:
            try:
                self._manifests[batch_id] = self._batches.manifest_of(batch_id)
            except FileNotFoundError:
                raise RowFilesGone(join(shown(self._address), batch_path(batch_id))) from None
        return self._manifests[batch_id]

    def allow(self, step: int) -> None:
        self._allowed = step

    def read(self, max_records: int) -> Batch:
        while self._batch_id <= self._allowed < _END_STEP:
            if self._rows is None:
                files, position = self._manifest(self._batch_id).files, LanePosition(self._batch_id)
                self._rows = LaneRows(self._address, self._form, self._lane, files, position)
            rows = self._rows.read(max_records)
            if rows:
                return Batch(rows)
            self._rows, self._offset = None, self._manifests.pop(self._batch_id).end_offset
            self._batch_id += 1
        self._finished = self._allowed == _END_STEP
        return Batch([])

    def position(self) -> tuple[int, str] | None:
        assert self._rows is None, "an epoch reads whole batches"
        return None if self._offset is None else (self._batch_id, self._offset)

    @property
    def finished(self) -> bool:
        return self._finished

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
