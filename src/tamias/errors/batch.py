"""Errors of DataSet programs."""

from __future__ import annotations

from tamias.errors.base import ErrorArgument, TamiasError


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
