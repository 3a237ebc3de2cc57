"""Runs in Spark's Python processes: writes a savepoint from a DataFrame, in parallel and without a shuffle.

Each task sorts its rows by ranges of key groups and writes files for each range. The files of a range, from all tasks,
are the keyed state of one subtask. The driver publishes the metadata when all tasks have succeeded.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from tamias.checkpoint.file_names import METADATA
from tamias.checkpoint.metadata import OperatorMetadata
from tamias.engine.spark.data_frames.spark_schemas import row_type_from_spark
from tamias.errors import CheckpointError, ConfigurationError, StateError
from tamias.state.snapshots import StateFile
from tamias.state_processor.key_digests import check_digests
from tamias.state_processor.key_state_files import KeyStateFiles, StatesByColumn, WrittenRanges, operator_metadata
from tamias.state_processor.new_savepoint import NewSavepoint
from tamias.state_processor.spark.source_options import SourceOptions, configured_key
from tamias.state_processor.stored_savepoint import StoredSavepoint, open_savepoint
from tamias.storage.file_store import FileStore, open_files
from tamias.types.row import Row

__all__ = ["StateWriter"]


@dataclass
class _Written(WriterCommitMessage):  # type: ignore[misc]
    """The files that a task wrote."""

    ranges: WrittenRanges


class StateWriter(DataSourceWriter):  # type: ignore[misc]
    """Writes one operator of a new savepoint, and copies the others from the savepoint `baseSavepoint`.

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
        self._base()  # a wrong path is a mistake of the call
        files = open_files(given.path)
        if files.list():
            raise CheckpointError(f"{files.url!r} holds files already: a savepoint is written to a new directory")

    def _base(self) -> StoredSavepoint | None:
        path = SourceOptions(self._options, writing=True).text("baseSavepoint")
        return open_savepoint(path, configured_key()) if path else None

    def _directory(self) -> FileStore:
        return open_files(SourceOptions(self._options, writing=True).path)

    def write(self, iterator: Iterator[Any]) -> _Written:
        """Write the rows of a task."""
        target = KeyStateFiles(
            self._directory(),
            self._columns,
            parallelism=self._parallelism,
            max_parallelism=self._max_parallelism,
            hashed=self._hashed,
        )
        for row in iterator:
            values = {name: _value(value) for name, value in zip(row.__fields__, row, strict=True)}
            key = values.pop(self._key_column)
            target.add(tuple(key) if isinstance(key, Row) else key, values)
        return _Written(target.finish())

    def commit(self, messages: list[Any]) -> None:
        """Publish the savepoint: all tasks have succeeded."""
        given, base = SourceOptions(self._options, writing=True), self._base()
        ranges: dict[int, list[StateFile]] = {}
        digests: dict[int, list[str]] = {}
        for message in messages:
            if message is not None:
                for number, files in message.ranges.files.items():
                    ranges.setdefault(number, []).extend(files)
                for number, name in message.ranges.digests.items():
                    digests.setdefault(number, []).append(name)
        for number, names in digests.items():
            check_digests(self._directory(), names, ranges.get(number, ()))
        written = operator_metadata(
            given.operator, self._columns.infos, ranges, self._parallelism, self._max_parallelism
        )
        number, job_id, job_name = 1, secrets.token_hex(16), "write savepoint"
        if base is not None:
            metadata = base.metadata
            number, job_id, job_name = metadata.checkpoint_id, metadata.job_id, metadata.job_name
        savepoint = NewSavepoint(self._directory(), configured_key(), number, job_id, job_name)
        savepoint.publish([*self._others(base, savepoint), written])

    def _others(self, base: StoredSavepoint | None, savepoint: NewSavepoint) -> list[OperatorMetadata]:
        if base is None:
            return []
        mine = SourceOptions(self._options, writing=True).operator.operator_id
        return savepoint.copied([stored for stored in base.operators() if stored.metadata.operator_id != mine])

    def abort(self, messages: list[Any]) -> None:
        """Remove the files of the tasks that succeeded."""
        files = self._directory()
        if files.exists(METADATA):
            raise StateError(f"{files.url!r} holds a savepoint of another writer")
        for name in files.list():
            files.delete(name)


def _value(value: Any) -> Any:
    """Return a value of Spark as a program has it: rows of Tamias, lists and dicts."""
    if hasattr(value, "__fields__"):
        return Row(**{name: _value(each) for name, each in zip(value.__fields__, value, strict=True)})
    if isinstance(value, list):
        return [_value(each) for each in value]
    if isinstance(value, dict):
        return {_value(key): _value(each) for key, each in value.items()}
    return value
