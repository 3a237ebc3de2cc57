"""`SavepointFormatType`: the format of the state in a savepoint."""

from __future__ import annotations

from enum import Enum

__all__ = ["SavepointFormatType"]


class SavepointFormatType(Enum):
    """The format of a savepoint."""

    CANONICAL = "CANONICAL"
    """Every state backend reads it, so the job can be resumed with another backend."""

    NATIVE = "NATIVE"
    """The format of the job's state backend, written and restored faster. On the heap it is the canonical one."""
