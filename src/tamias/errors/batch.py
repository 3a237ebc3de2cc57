"""Errors of DataSet programs."""

from __future__ import annotations

from tamias.errors.base import ErrorArgument, TamiasError
from tamias.errors.records import MalformedRecordError


class OutputExistsError(TamiasError):
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
