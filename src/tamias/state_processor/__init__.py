"""Savepoints as data: read the state of a job, and write the state that a job starts from."""

from tamias.state_processor.operator_identifier import OperatorIdentifier
from tamias.state_processor.reader_functions import KeyedStateReaderFunction, WindowReaderFunction
from tamias.state_processor.savepoint_reader import SavepointReader, WindowSavepointReader

__all__ = [
    "KeyedStateReaderFunction",
    "OperatorIdentifier",
    "SavepointReader",
    "WindowReaderFunction",
    "WindowSavepointReader",
]
