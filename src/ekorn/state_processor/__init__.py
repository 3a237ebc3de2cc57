"""Savepoints as data: read the state of a job, and write the state that a job starts from."""

from ekorn.state_processor.operator_identifier import OperatorIdentifier
from ekorn.state_processor.reading.reader_functions import KeyedStateReaderFunction, WindowReaderFunction
from ekorn.state_processor.reading.savepoint_reader import SavepointReader, WindowSavepointReader
from ekorn.state_processor.tools.editing import Edited, edit_savepoint
from ekorn.state_processor.writing.bootstrap_functions import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    StateBootstrapFunction,
)
from ekorn.state_processor.writing.operator_transformation import OperatorTransformation, StateBootstrapTransformation
from ekorn.state_processor.writing.savepoint_writer import SavepointWriter

__all__ = [
    "BroadcastStateBootstrapFunction",
    "Edited",
    "KeyedStateBootstrapFunction",
    "KeyedStateReaderFunction",
    "OperatorIdentifier",
    "OperatorTransformation",
    "SavepointReader",
    "SavepointWriter",
    "StateBootstrapFunction",
    "StateBootstrapTransformation",
    "WindowReaderFunction",
    "WindowSavepointReader",
    "edit_savepoint",
]
