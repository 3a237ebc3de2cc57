"""`RowBatchesSource`: reads the batches of a streaming query, each row exactly once and each lane in order."""

from __future__ import annotations

import time
from typing import Any

from ekorn.connectors.data_frames.lane_source import LaneForm, LanePosition, LaneRows, LaneSource
from ekorn.connectors.data_frames.row_batches import Lane, RowBatches, batch_path
from ekorn.errors import RowFilesGone, StreamingQueryFailed
from ekorn.functions.source_contract import Batch, Split, SplitReader
from ekorn.storage.file_store import open_files
from ekorn.storage.locations import join, shown

__all__ = ["RowBatchesSource"]


class RowBatchesSource(LaneSource):
    """Reads the batches of a streaming query."""

    @property
    def ends(self) -> bool:
        """Return True: the source ends with its query, also if a user stops the query."""
        return True

    def _lane(self, number: int) -> tuple[Any, ...]:
        return number, self._lanes

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a lane at the position of an earlier reader, or at the first batch that no checkpoint has covered."""
        return _LaneReader(self._address, self._form(), Lane(*split.what), position, self._look_interval_ms / 1000)


class _LaneReader(SplitReader):
    def __init__(self, address: str, form: LaneForm, lane: Lane, position: Any | None, look_interval_s: float) -> None:
        self._address = address
        self._batches = RowBatches(open_files(address))
        self._batches.ask_again()
        self._form = form
        self._lane = lane
        # The position while no batch is open.
        self._position = None if position is None else LanePosition(*position)
        self._first = self._batches.first_batch() if position is None else None
        self._look_interval_s = look_interval_s
        self._next_look = 0.0  # a monotonic time
        self._rows: LaneRows | None = None  # the rows of the current batch
        self._finished = False

    def read(self, max_records: int) -> Batch:
        while not self._finished:
            if self._rows is not None:
                rows = self._rows.read(max_records)
                if rows:
                    return Batch(rows)
                self._position = LanePosition(self._rows.position.batch_id + 1)
                self._rows = None
            elif not self._begin_batch():
                break
        return Batch([])

    def _begin_batch(self) -> bool:
        """Begin the current batch, or the first one; return False if the batch does not exist yet."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        ended = self._batches.ended()  # read before the batches, so that a batch written before the end is found below
        ready = self._batches.ready()
        if self._position is None:
            waiting = [batch_id for batch_id in ready if self._first is None or batch_id >= self._first]
            if waiting:
                self._position = LanePosition(waiting[0])
        if self._position is not None and self._position.batch_id in ready:
            files = self._batches.manifest_of(self._position.batch_id).files
            self._rows = LaneRows(self._address, self._form, self._lane, files, self._position)
            return True
        if self._position is not None and any(batch_id > self._position.batch_id for batch_id in ready):
            raise RowFilesGone(join(shown(self._address), batch_path(self._position.batch_id)))
        if ended is not None:
            if ended.failure is not None:
                raise StreamingQueryFailed(ended.query, ended.failure)
            self._finished = True
            return True
        self._next_look = now + self._look_interval_s
        return False

    def position(self) -> tuple[int, ...] | None:
        position = self._position if self._rows is None else self._rows.position
        return None if position is None else tuple(position)

    @property
    def finished(self) -> bool:
        return self._finished

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
