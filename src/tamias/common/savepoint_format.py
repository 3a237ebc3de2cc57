"""`SavepointFormatType`: how the state in a savepoint is written."""

from tamias.config.savepoint_format import SavepointFormatType

__all__ = ["SavepointFormatType"]
