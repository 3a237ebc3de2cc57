"""Errors of DataFrames that a job reads or feeds."""

from __future__ import annotations

from ekorn.errors.base import EkornError, ErrorArgument


class RowFilesGone(EkornError):
    """A file with rows of a DataFrame, at which a job is to continue, no longer exists."""

    retryable = False

    def __init__(self, address: str) -> None:
        super().__init__(address)

    address = ErrorArgument[str](0)

    def __str__(self) -> str:
        return (
            f"cannot read {self.args[0]!r}: the file with rows of a DataFrame is gone; it exists until its job has "
            "finished, and rows of a streaming DataFrame until a checkpoint covers them: start from the newest "
            "checkpoint, or from the beginning"
        )


class RowFilesDamaged(EkornError):
    """A file with rows of a DataFrame, or the list of such files, is not what was written."""

    retryable = False

    def __init__(self, address: str, found: str, expected: str) -> None:
        super().__init__(address, found, expected)

    address = ErrorArgument[str](0)
    found = ErrorArgument[str](1)
    expected = ErrorArgument[str](2)

    def __str__(self) -> str:
        address, found, expected = self.args
        return (
            f"cannot read {address!r}: found {found}, expected {expected}; restore the file from a copy, or start the "
            "job from the beginning"
        )


class StreamingQueryFailed(EkornError):
    """The streaming query of Spark that feeds a job has failed. Another attempt of the job starts it again."""

    def __init__(self, query: str, reason: str) -> None:
        super().__init__(query, reason)

    query = ErrorArgument[str](0)
    reason = ErrorArgument[str](1)

    def __str__(self) -> str:
        query, reason = self.args
        return (
            f"the streaming query {query!r}, whose rows the job reads, failed: {reason}; correct the query and start "
            "the program again: the query continues from its checkpoint location, and the job from its checkpoint"
        )


class SparkSourceFailed(EkornError):
    """The source of Spark that feeds a job has failed. Another attempt of the job opens it again."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)

    source = ErrorArgument[str](0)
    reason = ErrorArgument[str](1)

    def __str__(self) -> str:
        source, reason = self.args
        return (
            f"the source {source!r} of Spark, whose rows the job reads, failed: {reason}; correct it and start the "
            "program again: the job continues from the offset in its checkpoint"
        )
