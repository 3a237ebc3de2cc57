"""`LaneSource`: the base of sources that read a folder of batches (`row_batches.py`) by lanes, file by file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ekorn.columns.row_columns import RowColumns
from ekorn.connectors.data_frames.parquet_rows import ParquetRows
from ekorn.connectors.data_frames.row_batches import Lane, RowBatches, batch_path
from ekorn.connectors.data_frames.written_rows import RowFile, form_of_rows
from ekorn.functions.source_contract import Boundedness, Source, SourceConnection, Split, SplitReader
from ekorn.storage.file_store import open_files
from ekorn.storage.locations import join, shown
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

__all__ = ["LaneForm", "LanePosition", "LaneRows", "LaneSource"]

_LOOK_INTERVAL_MS = 100


class LaneSource(Source):
    """Reads a folder of batches. A split is a lane, which a job keeps when it is rescaled.

    Args:
        address: The folder.
        row_type: The columns of the rows.
        lanes: The number of lanes: of subtasks that read at the same time, when the job first starts.
        bounded: Whether the batches end by themselves.
        as_columns: Whether the stream has columns instead of rows. Positions are the same.
        look_interval_ms: How often the folder is looked at for a new batch.
    """

    def __init__(
        self,
        address: str,
        row_type: RowType,
        *,
        lanes: int,
        bounded: bool,
        as_columns: bool = False,
        look_interval_ms: int = _LOOK_INTERVAL_MS,
    ) -> None:
        self._as_columns = as_columns
        self._address = address
        self._row_type = row_type
        self._lanes = lanes
        self._bounded = bounded
        self._look_interval_ms = look_interval_ms

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the batches end by themselves."""
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows, or the columns."""
        return form_of_rows(self._row_type, as_columns=self._as_columns)

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the lanes."""
        return [Split(f"lane-{number}", self._lane(number)) for number in range(self._lanes)]

    def _form(self) -> LaneForm:
        return LaneForm(RowColumns(self._row_type), self._as_columns)

    @abstractmethod
    def _lane(self, number: int) -> tuple[Any, ...]:
        """Return the content of a lane's split, which begins with the lane."""

    def connect(self, subtask_index: int) -> SourceConnection:
        """Open the connection of one subtask, which reports the batches of completed checkpoints to the writer."""
        return _LaneConnection(self, RowBatches(open_files(self._address)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shown(self._address)!r})"


class _LaneConnection(SourceConnection):
    """Tells the writer of batches which of them a completed checkpoint covers.

    The content of a lane's split begins with the lane. Its position begins with the batch at which the lane continues.
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


class LanePosition(NamedTuple):
    """The next row of a lane. Checkpoints hold it as a plain tuple."""

    batch_id: int
    file_index: int = 0
    row: int = 0


class LaneForm(NamedTuple):
    """The columns of the rows, and whether the stream has columns."""

    columns: RowColumns
    as_columns: bool


class LaneRows:
    """Reads the files of a batch that belong to a lane.

    Attributes:
        position: The next row.
    """

    def __init__(
        self, address: str, form: LaneForm, lane: Lane, files: Sequence[RowFile], position: LanePosition
    ) -> None:
        self.position = position
        self._folder = join(address, batch_path(position.batch_id))
        self._form = form
        self._lane = lane
        self._files = files
        self._file: ParquetRows | None = None

    def read(self, max_rows: int) -> list[Any]:
        """Return the next records, which have at most `max_rows` rows; none at the end of the batch."""
        while self._file is not None or self._open_next():
            assert self._file is not None
            records, count = self._file.read_records(max_rows)
            if count:
                self.position = self.position._replace(row=self.position.row + count)
                return records
            self.close()
            self.position = LanePosition(self.position.batch_id, self.position.file_index + 1)
        return []

    def _open_next(self) -> bool:
        """Open the next file of the lane at its row; return False if there is none."""
        batch_id, index, row = self.position
        while index < len(self._files) and not self._lane.holds(batch_id, index):
            index, row = index + 1, 0
        self.position = LanePosition(batch_id, index, row)
        if index == len(self._files):
            return False
        file = self._files[index]
        address, (columns, as_columns) = join(self._folder, file.name), self._form
        self._file = ParquetRows(address, columns, row, size_bytes=file.size_bytes, as_columns=as_columns)
        return True

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None
