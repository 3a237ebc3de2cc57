"""Errors of DataSet programs."""

from __future__ import annotations

from ekorn.errors.base import EkornError, ErrorArgument
from ekorn.errors.records import MalformedRecordError


class OutputExistsError(EkornError):
    """The file or directory that a sink is to write exists."""

    retryable = False

    def __init__(self, address: str) -> None:
        super().__init__(address)

    address = ErrorArgument[str](0)

    def __str__(self) -> str:
        return (
            f"cannot write {self.args[0]!r}: it exists; remove it, write elsewhere, "
            "or replace it with write_mode=WriteMode.OVERWRITE"
        )


class MalformedInputError(MalformedRecordError):
    """A place of a DataSet program's input cannot be read as a record."""

    def __str__(self) -> str:
        place, reason, content = self.args
        return (
            f"cannot read {place}: {reason}; the content is {content}; correct it, or, in a CSV file, pass over such "
            "lines with ignore_invalid_lines()"
        )


class OutputsPartlyVisibleError(EkornError):
    """Some sinks of a job became visible, and one could not be made visible."""

    retryable = False

    def __init__(self, failed: str, cause: str, visible: tuple[str, ...], missing: tuple[str, ...]) -> None:
        super().__init__(failed, cause, visible, missing)

    failed = ErrorArgument[str](0)
    cause = ErrorArgument[str](1)
    visible = ErrorArgument[tuple[str, ...]](2)
    missing = ErrorArgument[tuple[str, ...]](3)

    def __str__(self) -> str:
        failed, cause, visible, missing = self.args
        others = f"; not visible either: {', '.join(missing)}" if missing else ""
        complete = f"visible and complete: {', '.join(visible)}" if visible else "no sink is visible"
        return (
            f"all records were written, but sink {failed} could not be made visible: {cause}; "
            f"what it wrote may be visible in part; {complete}{others}; "
            "remove what is visible and run the job again"
        )


class RecomputedInputError(EkornError):
    """A partition has other records than when it was counted: an executor was lost, and its functions vary."""

    def __init__(self, operator: str, partition: int, counted: int, found: int) -> None:
        super().__init__(operator, partition, counted, found)

    operator = ErrorArgument[str](0)
    partition = ErrorArgument[int](1)
    counted = ErrorArgument[int](2)
    found = ErrorArgument[int](3)

    def __str__(self) -> str:
        operator, partition, counted, found = self.args
        return (
            f"operator {operator!r} counted {counted} records in partition {partition}, and then read {found}; "
            "the partition was computed again after a loss, and the functions before it gave other records"
        )
