"""The rows of one lane in one batch (`row_batches.py`), read file by file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ekorn.connectors.data_frames.parquet_rows import ParquetRows, RowColumns
from ekorn.connectors.data_frames.row_batches import Lane, batch_path
from ekorn.connectors.data_frames.written_rows import RowFile
from ekorn.storage.locations import join
from ekorn.types.row import Row

__all__ = ["LanePlace", "LaneRows"]


class LanePlace(NamedTuple):
    """The next row of a lane. Checkpoints hold it as a plain tuple."""

    batch_id: int
    file_index: int = 0
    row: int = 0


class LaneRows:
    """Reads the files of a batch that belong to a lane.

    Attributes:
        place: The next row.
    """

    def __init__(
        self, address: str, columns: RowColumns, lane: Lane, files: Sequence[RowFile], place: LanePlace
    ) -> None:
        self.place = place
        self._folder = join(address, batch_path(place.batch_id))
        self._columns = columns
        self._lane = lane
        self._files = files
        self._file: ParquetRows | None = None

    def read(self, max_rows: int) -> list[Row]:
        """Return the next rows, at most `max_rows`; empty at the end of the batch."""
        while self._file is not None or self._open_next():
            assert self._file is not None
            rows = self._file.read(max_rows)
            if rows:
                self.place = self.place._replace(row=self.place.row + len(rows))
                return rows
            self.close()
            self.place = LanePlace(self.place.batch_id, self.place.file_index + 1)
        return []

    def _open_next(self) -> bool:
        """Open the next file of the lane at its row; return False if there is none."""
        batch_id, index, row = self.place
        while index < len(self._files) and not self._lane.holds(batch_id, index):
            index, row = index + 1, 0
        self.place = LanePlace(batch_id, index, row)
        if index == len(self._files):
            return False
        file = self._files[index]
        self._file = ParquetRows(join(self._folder, file.name), self._columns, row, size_bytes=file.size_bytes)
        return True

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None
