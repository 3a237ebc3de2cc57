"""Runs in Spark's Python processes: writes an operator state of a savepoint from a DataFrame.

Each task writes the elements of its rows to a file. The driver combines them into one file for each subtask. Operator
state fits into memory, since every subtask keeps its own there.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
from ekorn.errors import ConfigurationError
from ekorn.state.snapshots import OperatorSnapshot, StateFile
from ekorn.state.state_files import read_state, write_state
from ekorn.state_processor.reading.operator_state_rows import ElementRows, GatheredElements
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.spark.base_savepoint import WrittenSavepoint
from ekorn.state_processor.spark.source_options import SourceOptions
from ekorn.state_processor.spark.spark_values import PlainValues
from ekorn.state_processor.writing.new_savepoint import NewSavepoint, new_file_name
from ekorn.state_processor.writing.replaced_state import replacing_operator_state
from ekorn.types.by_value import dumps

__all__ = ["OperatorStateWriter"]


@dataclass
class _Written(WriterCommitMessage):  # type: ignore[misc]
    """The file that a task wrote, with the digest that the driver checks before it loads the pickle."""

    file: StateFile


class OperatorStateWriter(DataSourceWriter):  # type: ignore[misc]
    """Writes one operator state of a new savepoint; everything else is copied from the savepoint `baseSavepoint`."""

    def __init__(self, options: dict[str, str], schema: Any) -> None:
        given = SourceOptions(options, writing=True)
        given.refuse("operatorState", "keyColumn", "stateVarName", "stateKind", "writeRegisteredTimers")
        self._operator = given.operator
        self._max_parallelism = given.number("maxParallelism", 128)
        self._parallelism = given.parallelism(self._max_parallelism)
        self._savepoint = WrittenSavepoint(options)
        self._savepoint.check()
        name, operator = given.text("operatorState"), self._savepoint.base_operator()
        known = None
        if operator is not None:
            given.refuse("baseSavepoint, which has the operator", "parallelism", "maxParallelism")
            known = next((info for info in operator.metadata.states if info.of_subtask and info.name == name), None)
        kind = given.text("operatorStateKind") or (known.kind if known is not None else "")
        if not kind:
            raise ConfigurationError(
                f"ekorn-state needs the option operatorStateKind: no savepoint defines the kind of {name!r}"
            )
        stored_form = given.flag("storedForm", default=False)
        self._row_type = row_type_from_spark(schema)
        self._rows = ElementRows(name, kind, self._row_type, known, stored_form=stored_form)

    def write(self, iterator: Iterator[Any]) -> _Written:
        """Write the rows of a task."""
        gathered = self._rows.gather(map(PlainValues(self._row_type), iterator))
        name = f"rows-{new_file_name()}"
        return _Written(write_state(self._savepoint.directory(), name, dumps(gathered), 0, hashed=True))

    def commit(self, messages: list[Any]) -> None:
        """Publish the savepoint: all tasks have succeeded. The files of the tasks are not part of it.

        Raises:
            CorruptFileError: A file is not the one that a task wrote.
        """
        files = self._savepoint.directory()
        written_files = [message.file for message in messages if message is not None]
        gathered: list[GatheredElements] = [pickle.loads(read_state(files, file)) for file in written_files]

        def written(savepoint: NewSavepoint, before: StoredOperator | None) -> OperatorMetadata:
            operator = before or self._new_operator(files.address)
            return replacing_operator_state(savepoint, operator, self._rows, gathered or [self._rows.gather(())])

        self._savepoint.publish(written)

    def _new_operator(self, address: str) -> StoredOperator:
        """Return an operator without any state."""
        operator, parallelism = self._operator, self._parallelism
        name = operator.uid or operator.operator_id
        empty = OperatorSnapshot(operator.operator_id, operator.uid, name)
        subtasks, finished = (empty,) * parallelism, (False,) * parallelism
        metadata = OperatorMetadata(
            operator.operator_id, operator.uid, name, parallelism, self._max_parallelism, subtasks, finished
        )
        return StoredOperator(address, 1, metadata)

    def abort(self, messages: list[Any]) -> None:
        """Remove the files of the tasks that succeeded."""
        self._savepoint.remove()
