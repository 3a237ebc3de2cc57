"""`SavepointFormatType`: how the state in a savepoint is written."""

from __future__ import annotations

from enum import Enum

__all__ = ["SavepointFormatType"]


class SavepointFormatType(Enum):
    """The format of a savepoint."""

    CANONICAL = "CANONICAL"
    """One that all state backends read: the job may go on with another one."""

    NATIVE = "NATIVE"
    """The state backend's own: written and restored faster; for the heap the same as the canonical one."""
