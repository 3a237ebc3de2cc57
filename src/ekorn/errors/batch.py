"""Errors of DataSet programs."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields
from ekorn.errors.records import MalformedRecordError


@with_fields
class OutputExistsError(EkornError):
    """The file or directory that a sink is to write exists."""

    retryable = False

    address: str

    def __str__(self) -> str:
        return (
            f"cannot write {self.address!r}: it exists; remove it, write elsewhere, "
            "or replace it with write_mode=WriteMode.OVERWRITE"
        )


class MalformedInputError(MalformedRecordError):
    """A place of a DataSet program's input cannot be read as a record."""

    def __str__(self) -> str:
        place, reason, content = self.args
        return (
            f"cannot read {place}: {reason}; the content is {content}; correct it or, in a CSV file, skip such lines "
            "with ignore_invalid_lines()"
        )


@with_fields
class OutputsPartlyVisibleError(EkornError):
    """Some sinks of a job became visible, and one could not be made visible."""

    retryable = False

    failed: str
    cause: str
    visible: tuple[str, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        failed, cause, visible, missing = self.args
        others = f"; not visible either: {', '.join(missing)}" if missing else ""
        complete = f"visible and complete: {', '.join(visible)}" if visible else "no sink is visible"
        return (
            f"all records were written, but sink {failed} could not be made visible: {cause}; "
            f"its output may be partly visible; {complete}{others}; "
            "remove what is visible and run the job again"
        )


@with_fields
class RecomputedInputError(EkornError):
    """A partition was computed again after a loss, and its functions returned other records than before."""

    operator: str
    partition: int
    counted: int
    found: int

    def __str__(self) -> str:
        operator, partition, counted, found = self.args
        return (
            f"operator {operator!r} counted {counted} records in partition {partition}, and then read {found}; "
            "the partition was computed again after a loss, and the functions before it returned different records"
        )
