"""`SavepointFormatType`: the format of the state in a savepoint."""

from ekorn.config.choices import SavepointFormatType

__all__ = ["SavepointFormatType"]
