"""Halves batches that fail, down to the rows at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ekorn.columns.column_batch import ColumnBatch
from ekorn.errors import preview
from ekorn.errors.base import PREVIEW_CHARS

__all__ = ["BatchRow", "RefusedRows", "RowSender", "by_parts", "row_at_fault"]


class BatchRow:
    """A row of a batch, for an error: the row as a stream of rows has it, and where it is.

    Attributes:
        row: The row.
        where: Its position in the batch, and that in the source if it is known.
    """

    __slots__ = ("row", "where")

    def __init__(self, batch: ColumnBatch, position: int, rows: int | None = None, start: int = 0) -> None:
        """Look up a row.

        Args:
            batch: The batch.
            position: The row's position in it.
            rows: The number of rows of the whole batch, if `batch` is a part of it.
            start: The position of the part in it.
        """
        self.row = batch.row(position)
        self.where = f"position {start + position} of a batch of {len(batch) if rows is None else rows}"
        if batch.origin is not None:
            self.where += f": {batch.origin.of_row(position)}"

    def __repr__(self) -> str:
        return f"{preview(self.row, max(20, PREVIEW_CHARS - len(self.where) - 6))} (at {self.where})"


class RefusedRows(Protocol):
    """Decides about the exceptions of single rows. See `codegen/record_errors.py`."""

    def is_about_a_record(self, error: Exception) -> bool:
        """Return whether an exception is the fault of a row, and the caller's own."""

    def handles_row(self, row: Any, where: str, error: Exception, time_ms: int | None) -> bool:
        """Return whether the exception of one row is handled; otherwise the caller raises it again."""


def by_parts(
    batch: ColumnBatch, attempt: Callable[[ColumnBatch], list[ColumnBatch]], refused: RefusedRows
) -> Iterator[ColumnBatch]:
    """Yield the results for a batch, without the rows that fail.

    A batch that fails is halved until the rows at fault are alone. No result leaves before its part is processed.

    Args:
        batch: The rows.
        attempt: Processes a part as a whole. If it raises an exception, nothing has changed.
        refused: Gets each row at fault.
    """
    left = [(batch, 0)]  # parts, each with its position in the batch; the next one last
    while left:
        part, start = left.pop()
        try:
            results = attempt(part)
        except Exception as error:
            if not refused.is_about_a_record(error):
                raise
            half = len(part) // 2
            if half:
                left += (part.slice(half, len(part) - half), start + half), (part.slice(0, half), start)
                continue
            row = BatchRow(part, 0, len(batch), start)
            time_ms = None if part.times is None else int(part.times[0])
            if not refused.handles_row(row.row, row.where, error, time_ms):
                raise
            continue
        yield from results


def row_at_fault(batch: ColumnBatch, attempt: Callable[[ColumnBatch], Any], error: Exception) -> BatchRow | None:
    """Return the first row with which a call that has failed fails again; None if there is no such row.

    Args:
        batch: The rows.
        attempt: Processes rows, and changes nothing.
        error: The exception of the whole batch.
    """
    start, end = 0, len(batch)
    if not end or isinstance(error, MemoryError | OSError):  # not the fault of a row
        return None
    while end - start > 1:
        half = (start + end) // 2
        if _fails(batch.slice(start, half - start), attempt, type(error)):
            end = half
        else:
            start = half
    alone = _fails(batch.slice(start, 1), attempt, type(error))
    return BatchRow(batch, start) if alone else None


class RowSender:
    """Sends batches to the subtasks that a user's function chooses, and names the rows with which it fails.

    Args:
        send: Sends a batch as a whole, or raises an exception and sends nothing.
        choose: Calls the function, and sends nothing.
        refused: Gets the rows at fault; if None, they fail the job.
    """

    def __init__(
        self, send: Callable[[ColumnBatch], None], choose: Callable[[ColumnBatch], Any], refused: RefusedRows | None
    ) -> None:
        self._send = send
        self._choose = choose
        self._refused = refused

    def send(self, batch: ColumnBatch) -> None:
        """Send the rows of a batch."""
        if self._refused is not None:
            for _ in by_parts(batch, self._attempt, self._refused):
                pass
            return
        try:
            self._send(batch)
        except Exception as error:
            _failed_row_of_batch = row_at_fault(batch, self._choose, error)  # `Blame` reads the variable
            raise

    def _attempt(self, part: ColumnBatch) -> list[ColumnBatch]:
        self._send(part)
        return []


def _fails(part: ColumnBatch, attempt: Callable[[ColumnBatch], Any], kind: type[Exception]) -> bool:
    try:
        attempt(part)
    except Exception as error:  # the same call has failed already; only whether it fails again is asked
        return isinstance(error, kind)
    return False
