"""Savepoints as data: read the state of a job, and write the state that a job starts from."""

from tamias.state_processor.bootstrap_functions import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    StateBootstrapFunction,
)
from tamias.state_processor.editing import Edited, edit_savepoint
from tamias.state_processor.operator_identifier import OperatorIdentifier
from tamias.state_processor.operator_transformation import OperatorTransformation, StateBootstrapTransformation
from tamias.state_processor.reader_functions import KeyedStateReaderFunction, WindowReaderFunction
from tamias.state_processor.savepoint_reader import SavepointReader, WindowSavepointReader
from tamias.state_processor.savepoint_writer import SavepointWriter

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
