"""`RowBatchesSource`: reads the batches of a streaming query, each row exactly once and each lane in order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tamias.connectors.data_frames.lane_rows import LanePlace, LaneRows
from tamias.connectors.data_frames.parquet_rows import RowColumns
from tamias.connectors.data_frames.row_batches import Lane, RowBatches, batch_path
from tamias.errors import RowFilesGone, StreamingQueryFailed
from tamias.functions.source_contract import Batch, Boundedness, Source, SourceConnection, Split, SplitReader
from tamias.storage.file_store import open_files
from tamias.storage.locations import join, shown
from tamias.types.data_type_info import row_type_info
from tamias.types.data_types import RowType
from tamias.types.type_information import TypeInformation

__all__ = ["LaneConnection", "RowBatchesSource"]

_LOOK_INTERVAL_MS = 100


class RowBatchesSource(Source):
    """Reads a folder of batches. A split is a lane, which a job keeps when it is rescaled.

    Args:
        address: The folder.
        row_type: The columns of the rows.
        lanes: The number of lanes: of subtasks that read at the same time, when the job first starts.
        bounded: Whether the query ends by itself.
        look_interval_ms: How often the folder is looked at for a new batch.
    """

    def __init__(
        self, address: str, row_type: RowType, *, lanes: int, bounded: bool, look_interval_ms: int = _LOOK_INTERVAL_MS
    ) -> None:
        self._address = address
        self._row_type = row_type
        self._lanes = lanes
        self._bounded = bounded
        self._look_interval_ms = look_interval_ms

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the query ends by itself."""
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def ends(self) -> bool:
        """Return True: the source ends with its query, also with one that somebody stops."""
        return True

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return row_type_info(self._row_type)

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the lanes."""
        return [Split(f"lane-{number}", (number, self._lanes)) for number in range(self._lanes)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a lane at the position of an earlier reader, or at the first batch that no checkpoint has covered."""
        return _LaneReader(self._address, self._row_type, Lane(*split.what), position, self._look_interval_ms / 1000)

    def connect(self, subtask_index: int) -> SourceConnection:
        """Open the connection of one subtask, which reports completed checkpoints to the query."""
        return LaneConnection(self, RowBatches(open_files(self._address)))

    def __repr__(self) -> str:
        return f"RowBatchesSource({shown(self._address)!r})"


class LaneConnection(SourceConnection):
    """Tells the writer of batches which of them a completed checkpoint covers.

    What a lane's split holds begins with the lane, and its position with the batch at which the lane continues.
    """

    def __init__(self, source: Source, batches: RowBatches) -> None:
        self._source = source
        self._batches = batches
        self._lanes: dict[str, Lane] = {}
        self._marked: dict[str, int] = {}

    def discover_splits(self, parallelism: int, *, first: bool) -> Sequence[Split]:
        return self._source.discover_splits(parallelism)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        self._lanes[split.id] = Lane(*split.what[:2])
        return self._source.create_reader(split, position)

    def checkpoint_completed(self, positions: Mapping[str, Any]) -> None:
        for split_id, position in positions.items():
            if position is None or split_id not in self._lanes:
                continue
            batch_id = position[0]
            if self._marked.get(split_id) != batch_id:
                self._batches.mark_read(self._lanes[split_id], batch_id)
                self._marked[split_id] = batch_id


class _LaneReader(SplitReader):
    def __init__(
        self, address: str, row_type: RowType, lane: Lane, position: Any | None, look_interval_s: float
    ) -> None:
        self._address = address
        self._batches = RowBatches(open_files(address))
        self._batches.ask_again()
        self._columns = RowColumns(row_type)
        self._lane = lane
        self._place: LanePlace | None = None if position is None else LanePlace(*position)  # while no batch is open
        self._first = self._batches.first_batch() if position is None else None
        self._look_interval_s = look_interval_s
        self._next_look = 0.0  # on the monotonic clock
        self._rows: LaneRows | None = None  # of the current batch
        self._finished = False

    def read(self, max_records: int) -> Batch:
        while not self._finished:
            if self._rows is not None:
                rows = self._rows.read(max_records)
                if rows:
                    return Batch(rows)
                self._place = LanePlace(self._rows.place.batch_id + 1)
                self._rows = None
            elif not self._begin_batch():
                break
        return Batch([])

    def _begin_batch(self) -> bool:
        """Begin the current batch, or the first one; return False if it is not there yet."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        ended = self._batches.ended()  # looked at first: a batch that was written before the end is then seen below
        ready = self._batches.ready()
        if self._place is None:
            waiting = [batch_id for batch_id in ready if self._first is None or batch_id >= self._first]
            if waiting:
                self._place = LanePlace(waiting[0])
        if self._place is not None and self._place.batch_id in ready:
            files = self._batches.manifest_of(self._place.batch_id).files
            self._rows = LaneRows(self._address, self._columns, self._lane, files, self._place)
            return True
        if self._place is not None and any(batch_id > self._place.batch_id for batch_id in ready):
            raise RowFilesGone(join(shown(self._address), batch_path(self._place.batch_id)))
        if ended is not None:
            if ended.failure is not None:
                raise StreamingQueryFailed(ended.query, ended.failure)
            self._finished = True
            return True
        self._next_look = now + self._look_interval_s
        return False

    def position(self) -> tuple[int, ...] | None:
        place = self._place if self._rows is None else self._rows.place
        return None if place is None else tuple(place)

    @property
    def finished(self) -> bool:
        return self._finished

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
