"""Runs in Spark's Python processes: writes a savepoint from a DataFrame, in parallel and without a shuffle.

Each task sorts its rows by ranges of key groups and writes files for each range. The files of a range, from all tasks,
are the keyed state of one subtask. The driver publishes the metadata when all tasks have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from tamias.checkpoint.metadata import OperatorMetadata
from tamias.engine.spark.data_frames.spark_schemas import row_type_from_spark
from tamias.errors import ConfigurationError
from tamias.state.snapshots import StateFile
from tamias.state_processor.key_digests import check_digests
from tamias.state_processor.key_state_files import KeyStateFiles, StatesByColumn, WrittenRanges, operator_metadata
from tamias.state_processor.new_savepoint import NewSavepoint
from tamias.state_processor.spark.base_savepoint import WrittenSavepoint
from tamias.state_processor.spark.source_options import SourceOptions, configured_key
from tamias.state_processor.spark.spark_values import plain_row
from tamias.state_processor.stored_savepoint import StoredOperator
from tamias.state_processor.written_operator_state import keeping_operator_state
from tamias.types.row import Row

__all__ = ["StateWriter"]


@dataclass
class _Written(WriterCommitMessage):  # type: ignore[misc]
    """The files that a task wrote."""

    ranges: WrittenRanges


class StateWriter(DataSourceWriter):  # type: ignore[misc]
    """Writes the keyed state of one operator of a new savepoint.

    The other operators are copied from the savepoint `baseSavepoint`, and so is the operator state of this one.

    The column `key`, or the one that `keyColumn` names, is the key; a struct is a tuple. Every other column is a state:
    an array is list state, a map is map state, and anything else is value state. Each key may have one row.
    """

    def __init__(self, options: dict[str, str], schema: Any) -> None:
        given = SourceOptions(options, writing=True)
        self._options = options
        self._key_column = given.text("keyColumn", "key")
        names = [field.name for field in schema.fields]
        if self._key_column not in names:
            raise ConfigurationError(f"the DataFrame has no column {self._key_column!r} for the key; it has {names}")
        self._columns = StatesByColumn(row_type_from_spark(schema), self._key_column)
        self._max_parallelism = given.number("maxParallelism", 128)
        self._parallelism = min(given.number("parallelism", 8), self._max_parallelism)
        self._hashed = configured_key() is not None
        given.refuse("the columns of keyed state", "operatorStateKind", "storedForm")
        self._savepoint = WrittenSavepoint(options)
        self._savepoint.check()

    def write(self, iterator: Iterator[Any]) -> _Written:
        """Write the rows of a task."""
        target = KeyStateFiles(
            self._savepoint.directory(),
            self._columns,
            parallelism=self._parallelism,
            max_parallelism=self._max_parallelism,
            hashed=self._hashed,
        )
        for row in iterator:
            values = plain_row(row)
            key = values.pop(self._key_column)
            target.add(tuple(key) if isinstance(key, Row) else key, values)
        return _Written(target.finish())

    def commit(self, messages: list[Any]) -> None:
        """Publish the savepoint: all tasks have succeeded."""
        ranges: dict[int, list[StateFile]] = {}
        digests: dict[int, list[str]] = {}
        for message in messages:
            if message is not None:
                for number, files in message.ranges.files.items():
                    ranges.setdefault(number, []).extend(files)
                for number, name in message.ranges.digests.items():
                    digests.setdefault(number, []).append(name)
        for number, names in digests.items():
            check_digests(self._savepoint.directory(), names, ranges.get(number, ()))
        operator = SourceOptions(self._options, writing=True).operator
        new = operator_metadata(operator, self._columns.infos, ranges, self._parallelism, self._max_parallelism)

        def written(savepoint: NewSavepoint, before: StoredOperator | None) -> OperatorMetadata:
            return new if before is None else keeping_operator_state(savepoint, before, new)

        self._savepoint.publish(written)

    def abort(self, messages: list[Any]) -> None:
        """Remove the files of the tasks that succeeded."""
        self._savepoint.remove()
