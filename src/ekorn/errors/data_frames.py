"""Errors of DataFrames that a job reads or feeds."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields


@with_fields
class RowFilesGone(EkornError):
    """A file with rows of a DataFrame, at which a job is to continue, no longer exists."""

    retryable = False

    address: str

    def __str__(self) -> str:
        return (
            f"cannot read {self.address!r}: the file with rows of a DataFrame is gone; it exists until its job has "
            "finished, and rows of a streaming DataFrame until a checkpoint covers them: start from the newest "
            "checkpoint, or from the beginning"
        )


@with_fields
class RowFilesDamaged(EkornError):
    """A file with rows of a DataFrame, or the list of such files, is not what was written."""

    retryable = False

    address: str
    found: str
    expected: str

    def __str__(self) -> str:
        address, found, expected = self.args
        return (
            f"cannot read {address!r}: found {found}, expected {expected}; restore the file from a copy, or start the "
            "job from the beginning"
        )


@with_fields
class StreamingQueryFailed(EkornError):
    """The streaming query of Spark that feeds a job has failed. Another attempt of the job starts it again."""

    query: str
    reason: str

    def __str__(self) -> str:
        query, reason = self.args
        return (
            f"the streaming query {query!r}, whose rows the job reads, failed: {reason}; correct the query and start "
            "the program again: the query continues from its checkpoint location, and the job from its checkpoint"
        )


@with_fields
class SparkSourceFailed(EkornError):
    """The source of Spark that feeds a job has failed. Another attempt of the job opens it again."""

    source: str
    reason: str

    def __str__(self) -> str:
        source, reason = self.args
        return (
            f"the source {source!r} of Spark, whose rows the job reads, failed: {reason}; correct it and start the "
            "program again: the job continues from the offset in its checkpoint"
        )
