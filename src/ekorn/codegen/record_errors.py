"""Handles exceptions that a function raises for one record, where an operator is to skip such records."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

import ekorn
from ekorn.clock import Clock
from ekorn.codegen.blame import Blame, Blamed, message_of
from ekorn.codegen.chain_operator import Out
from ekorn.errors import (
    AggregateOverflowError,
    ColumnValueError,
    EkornError,
    InvalidKeyError,
    InvalidTimestampError,
    MalformedRecordError,
    RecordErrorLimitExceeded,
    RecordFormatError,
    RecordTooLargeError,
    RecordTypeError,
    preview,
)
from ekorn.functions.dead_letters import DeadLetter
from ekorn.graph.job_graph import Operator
from ekorn.storage.long_texts import cut_texts

_log = logging.getLogger(__name__)

ABOUT_A_RECORD = (
    AggregateOverflowError,
    ColumnValueError,
    InvalidKeyError,
    InvalidTimestampError,
    RecordTypeError,
    RecordTooLargeError,
    RecordFormatError,
    MalformedRecordError,
)
_ROCKSDB = os.path.join(os.path.dirname(ekorn.__file__), "state", "rocksdb")


class RecordErrors:
    """Decides about the exceptions of one operator in one subtask.

    Args:
        blame: Finds the operator that raised an exception.
        number: The operator's position in its chain.
        operator: The operator.
        subtask: The index of the subtask.
        limit: How many records may be skipped; None for any number.
        clock: The processing time.
        count: Called for each record that is skipped.
    """

    def __init__(
        self,
        blame: Blame,
        number: int,
        operator: Operator,
        *,
        subtask: int,
        limit: int | None,
        clock: Clock,
        count: Callable[[], None],
    ) -> None:
        self.dead_letters: Out | None = None  # set by the compiler, if the operator's dead letters are read
        self._blame = blame
        self._number = number
        self._operator = operator
        self._subtask = subtask
        self._limit = limit
        self._clock = clock
        self._count = count
        self._skipped = 0

    def handles(self, error: Exception, time_ms: int | None) -> bool:
        """Return whether an exception is handled; otherwise the caller raises it again.

        Raises:
            RecordErrorLimitExceeded: More records failed than the limit allows.
        """
        blamed = self._blame.locate(error, self._number)
        if blamed.number != self._number or not _is_about_a_record(blamed):
            return False
        self._skip(blamed.record, blamed.record_preview, blamed.error, blamed.traceback_text, time_ms)
        return True

    def is_about_a_record(self, error: Exception) -> bool:
        """Return whether an exception of a batch of columns is the fault of rows in it, and of this operator."""
        blamed = self._blame.locate(error, self._number)
        mine = blamed.number == self._number or isinstance(error, RecordTypeError)
        return mine and _is_about_a_record(blamed)

    def handles_row(self, row: Any, where: str, error: Exception, time_ms: int | None) -> bool:
        """Return whether the exception of one row of a batch of columns is handled.

        Args:
            row: The row.
            where: Its position in the batch.
            error: The exception.
            time_ms: The timestamp of the row.

        Raises:
            RecordErrorLimitExceeded: More records failed than the limit allows.
        """
        if not self.is_about_a_record(error):
            return False
        blamed = self._blame.locate(error, self._number)
        self._skip(row, f"{preview(row)} (at {where})", blamed.error, blamed.traceback_text, time_ms)
        return True

    def skip_malformed(self, content: Any, error: Exception) -> None:
        """Skip content of a source that is not a record; `error` says where it is and why.

        Raises:
            RecordErrorLimitExceeded: More records failed than the limit allows.
        """
        self._skip(content, preview(content), error, lambda: "", None)

    def _skip(
        self,
        record: Any,
        record_preview: str | None,
        error: BaseException,
        traceback_text: Callable[[], str],
        time_ms: int | None,
    ) -> None:
        self._skipped += 1
        reason = f"{type(error).__qualname__}: {cut_texts(message_of(error))[0]}"
        if self._limit is not None and self._skipped > self._limit:
            raise RecordErrorLimitExceeded(self._operator.name, self._limit, record_preview, reason) from error
        self._count()
        text = traceback_text()
        if self._skipped & (self._skipped - 1) == 0:  # 1, 2, 4, 8 ...
            _log.warning(
                "operator %r, subtask %d: skipped %d record(s); the last one is %s: %s%s",
                self._operator.name, self._subtask, self._skipped, record_preview, reason, text and f"\n{text}",
            )  # fmt: skip
        if self.dead_letters is not None:
            name, uid = self._operator.name, self._operator.uid
            letter = DeadLetter(record, name, uid, self._subtask, reason, text, time_ms, self._clock.now_ms())
            self.dead_letters(letter, time_ms)


def _is_about_a_record(blamed: Blamed) -> bool:
    """Return whether an exception is the fault of one record, and not of the process, the state or the program."""
    error = blamed.error
    if isinstance(error, EkornError):
        return isinstance(error, ABOUT_A_RECORD)
    return not isinstance(error, MemoryError) and not _raised_by_rocksdb(blamed.frames)


def _raised_by_rocksdb(frames: TracebackType | None) -> bool:
    innermost = frames
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    return innermost is not None and innermost.tb_frame.f_code.co_filename.startswith(_ROCKSDB)
