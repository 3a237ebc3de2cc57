"""Runs in Spark's Python processes: writes entries of keyed state from a DataFrame, in parallel and without a shuffle.

It writes all entries of an operator in the stored form, its timers, or one of its states, windows included. Each task
writes files by range of key groups, as for a DataFrame with a row for each key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.clock import SystemClock
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
from ekorn.state.declared import merged
from ekorn.state.snapshots import StateFile, StateInfo
from ekorn.state_processor.reading.entry_rows import EntryRows, StoredRows
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, configured_key
from ekorn.state_processor.spark.base_savepoint import WrittenSavepoint
from ekorn.state_processor.spark.source_options import SourceOptions
from ekorn.state_processor.spark.spark_values import PlainValues
from ekorn.state_processor.writing.key_digests import check_digests
from ekorn.state_processor.writing.key_state_files import EntryFiles, WrittenRanges, operator_metadata
from ekorn.state_processor.writing.new_savepoint import NewSavepoint
from ekorn.state_processor.writing.replaced_state import (
    check_key_groups,
    check_nothing_in_flight,
    keeping_operator_state,
    replacing_keyed_states,
)
from ekorn.state_processor.writing.written_states import StateRows, TimerRows

__all__ = ["EntryWriter"]


@dataclass
class _Written(WriterCommitMessage):  # type: ignore[misc]
    """The files that a task wrote, and the descriptions of their states."""

    ranges: WrittenRanges
    infos: list[StateInfo]


class EntryWriter(DataSourceWriter):  # type: ignore[misc]
    """Writes entries of one operator's keyed state. Everything else is copied from the savepoint `baseSavepoint`."""

    def __init__(self, options: dict[str, str], schema: Any) -> None:
        given = SourceOptions(options, writing=True)
        given.refuse("entries of keyed state", "keyColumn", "operatorStateKind")
        self._operator = given.operator
        self._row_type = row_type_from_spark(schema)
        self._hashed = configured_key() is not None
        self._savepoint = WrittenSavepoint(options)
        self._savepoint.check()
        before = self._savepoint.base_operator()
        self._rows = self._rows_of(given, before)
        self._set_key_groups(given, before)

    def _rows_of(self, given: SourceOptions, before: StoredOperator | None) -> EntryRows:
        if given.flag("storedForm", default=False):
            given.refuse("storedForm", "stateVarName", "stateKind", "writeRegisteredTimers")
            return StoredRows(self._row_type, before)
        if given.flag("writeRegisteredTimers", default=False):
            given.refuse("writeRegisteredTimers", "stateVarName", "stateKind")
            return TimerRows(self._row_type, before)
        name = given.text("stateVarName")
        return StateRows(name, self._row_type, before, given.text("stateKind"), SystemClock().now_ms())

    def _set_key_groups(self, given: SourceOptions, before: StoredOperator | None) -> None:
        if before is not None and self._rows.replaced is not None:
            given.refuse("baseSavepoint, whose operator keeps its other states", "parallelism", "maxParallelism")
            self._max_parallelism, self._parallelism = before.metadata.max_parallelism, before.metadata.parallelism
            return
        self._max_parallelism = given.number(
            "maxParallelism", 128 if before is None else before.metadata.max_parallelism
        )
        self._parallelism = given.parallelism(self._max_parallelism)
        if before is not None:
            check_key_groups(before, self._max_parallelism)
            check_nothing_in_flight(before)

    def write(self, iterator: Iterator[Any]) -> _Written:
        """Write the rows of a task."""
        target = EntryFiles(
            self._savepoint.directory(),
            parallelism=self._parallelism,
            max_parallelism=self._max_parallelism,
            hashed=self._hashed,
        )
        for row in map(PlainValues(self._row_type), iterator):
            target.add(*self._rows.entry(row))
        return _Written(target.finish(), self._rows.infos())

    def commit(self, messages: list[Any]) -> None:
        """Publish the savepoint: all tasks have succeeded."""
        ranges: dict[int, list[StateFile]] = {}
        digests: dict[int, list[StateFile]] = {}
        infos: list[StateInfo] = list(self._rows.infos())
        for message in messages:
            if message is not None:
                infos += message.infos
                for number, files in message.ranges.files.items():
                    ranges.setdefault(number, []).extend(files)
                for number, file in message.ranges.digests.items():
                    digests.setdefault(number, []).append(file)
        for number, digest_files in digests.items():
            check_digests(self._savepoint.directory(), digest_files, ranges.get(number, ()), of_entries=True)
        states = merged(infos)

        def written(savepoint: NewSavepoint, before: StoredOperator | None) -> OperatorMetadata:
            replaced = self._rows.replaced
            if before is not None and replaced is not None:
                return replacing_keyed_states(savepoint, before, replaced, states, ranges)
            new = operator_metadata(self._operator, states, ranges, self._parallelism, self._max_parallelism)
            if before is None:
                return new
            return keeping_operator_state(savepoint, before, replace(new, name=before.metadata.name))

        self._savepoint.publish(written)

    def abort(self, messages: list[Any]) -> None:
        """Remove the files of the tasks that succeeded."""
        self._savepoint.remove()
