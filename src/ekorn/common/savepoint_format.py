"""`SavepointFormatType`: the format of the state in a savepoint."""

from ekorn.config.savepoint_format import SavepointFormatType

__all__ = ["SavepointFormatType"]
