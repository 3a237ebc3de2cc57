"""Runs in Spark's Python processes: the data source `ekorn-state`, the keyed state of a savepoint as a table.

spark.read.format("ekorn-state").option("operatorUid", uid).load(path)    one row for each key
df.write.format("ekorn-state").option("operatorUid", uid).mode("append").save(path)   a new savepoint

Options for reading: `stateVarName` reads one state, a row for each entry, in the shape of Spark's `statestore` format;
`flattenCollectionTypes` false keeps lists and maps in one row; `readRegisteredTimers` reads the timers; `changeStart`
names an earlier savepoint or checkpoint, and reads what changed in a state since. `operatorState` reads list, union,
broadcast or raw state, and writes it. `storedForm` reads and writes all keyed state, with windows and timers;
`writeRegisteredTimers` writes timers, and `stateVarName` one state, from the rows in which they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition

from ekorn.engine.spark.data_frames.ekorn_source import as_spark_expects
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark, spark_schema
from ekorn.errors import ConfigurationError
from ekorn.state_processor.spark.entry_writer import EntryWriter
from ekorn.state_processor.spark.operator_state_writer import OperatorStateWriter
from ekorn.state_processor.spark.source_options import SourceOptions
from ekorn.state_processor.spark.state_writer import StateWriter
from ekorn.state_processor.tools.export import arrow_batches

__all__ = ["EkornStateSource"]


class EkornStateSource(DataSource):  # type: ignore[misc]
    """Reads and writes the state of one operator."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ekorn-state"

    def schema(self) -> Any:
        """Return the columns: of declared types, or of the types that the first rows have."""
        return spark_schema(SourceOptions(self.options).table().row_type())

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader, with a partition for each part of the operator's keyed state."""
        return _StateReader(dict(self.options), schema)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a new savepoint."""
        if overwrite:
            raise ConfigurationError("a savepoint is never written over another: use mode('append') and a new path")
        options = dict(self.options)
        given = SourceOptions(options, writing=True)
        if given.text("operatorState"):
            return OperatorStateWriter(options, schema)
        of_entries = given.text("stateVarName") or given.flag("writeRegisteredTimers", default=False)
        if of_entries or given.flag("storedForm", default=False):
            return EntryWriter(options, schema)
        return StateWriter(options, schema)


class _StateReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: dict[str, str], schema: Any) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[Any]:
        return [InputPartition(part) for part in range(SourceOptions(self._options).table().part_count)]

    def read(self, partition: Any) -> Iterator[Any]:
        table = SourceOptions(self._options).table()
        batches = arrow_batches(table, partition.value, row_type_from_spark(self._schema))
        return as_spark_expects(batches, self._schema)
