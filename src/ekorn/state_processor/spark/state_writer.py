"""Runs in Spark's Python processes: writes a savepoint from a DataFrame, in parallel and without a shuffle.

Each task sorts its rows by ranges of key groups and writes files for each range. The files of a range, from all tasks,
are the keyed state of one subtask. The driver publishes the metadata when all tasks have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
from ekorn.state.snapshots import StateFile
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, configured_key
from ekorn.state_processor.spark.base_savepoint import WrittenSavepoint
from ekorn.state_processor.spark.source_options import SourceOptions
from ekorn.state_processor.spark.spark_values import PlainValues, as_key
from ekorn.state_processor.writing.key_digests import check_digests
from ekorn.state_processor.writing.key_state_files import (
    KeyStateFiles,
    StatesByColumn,
    WrittenRanges,
    operator_metadata,
)
from ekorn.state_processor.writing.new_savepoint import NewSavepoint
from ekorn.state_processor.writing.replaced_state import (
    check_key_groups,
    check_nothing_in_flight,
    keeping_operator_state,
)

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
        given.refuse("the columns of keyed state", "operatorStateKind", "stateKind")
        self._operator = given.operator
        self._key_column = given.text("keyColumn", "key")
        self._row_type = row_type_from_spark(schema)
        self._columns = StatesByColumn(self._row_type, self._key_column)
        self._hashed = configured_key() is not None
        self._savepoint = WrittenSavepoint(options)
        self._savepoint.check()
        before = self._savepoint.base_operator()
        self._max_parallelism = given.number(
            "maxParallelism", 128 if before is None else before.metadata.max_parallelism
        )
        self._parallelism = given.parallelism(self._max_parallelism)
        if before is not None:
            check_key_groups(before, self._max_parallelism)
            check_nothing_in_flight(before)

    def write(self, iterator: Iterator[Any]) -> _Written:
        """Write the rows of a task."""
        target = KeyStateFiles(
            self._savepoint.directory(),
            self._columns,
            parallelism=self._parallelism,
            max_parallelism=self._max_parallelism,
            hashed=self._hashed,
        )
        for values in map(PlainValues(self._row_type), iterator):
            key = values.pop(self._key_column)
            target.add(as_key(key), values)
        return _Written(target.finish())

    def commit(self, messages: list[Any]) -> None:
        """Publish the savepoint: all tasks have succeeded."""
        ranges: dict[int, list[StateFile]] = {}
        digests: dict[int, list[StateFile]] = {}
        for message in messages:
            if message is not None:
                for number, files in message.ranges.files.items():
                    ranges.setdefault(number, []).extend(files)
                for number, file in message.ranges.digests.items():
                    digests.setdefault(number, []).append(file)
        for number, digest_files in digests.items():
            check_digests(self._savepoint.directory(), digest_files, ranges.get(number, ()))
        new = operator_metadata(self._operator, self._columns.infos, ranges, self._parallelism, self._max_parallelism)

        def written(savepoint: NewSavepoint, before: StoredOperator | None) -> OperatorMetadata:
            return new if before is None else keeping_operator_state(savepoint, before, new)

        self._savepoint.publish(written)

    def abort(self, messages: list[Any]) -> None:
        """Remove the files of the tasks that succeeded."""
        self._savepoint.remove()
