"""Runs in the driver: registers the data sources of savepoints with a session of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition

from ekorn.engine.spark.data_frames.ekorn_source import as_spark_expects
from ekorn.engine.spark.data_frames.result_frames import register_source
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark, spark_schema
from ekorn.errors import ConfigurationError
from ekorn.extras import need
from ekorn.state_processor.spark.entry_writer import EntryWriter
from ekorn.state_processor.spark.operator_state_writer import OperatorStateWriter
from ekorn.state_processor.spark.source_options import SourceOptions
from ekorn.state_processor.spark.state_writer import StateWriter
from ekorn.state_processor.tools.export import arrow_batches

__all__ = ["EkornStateMetadataSource", "EkornStateSource", "register_state_sources"]


def register_state_sources(session: Any) -> None:
    """Make the formats `ekorn-state` and `ekorn-state-metadata` known to a session of Spark.

    Example:
        register_state_sources(spark)
        spark.read.format("ekorn-state").option("operatorUid", "count").load("/savepoints/savepoint-1")
    """
    need("pyarrow", "register_state_sources()")
    register_source(session, EkornStateSource)
    register_source(session, EkornStateMetadataSource)


_COLUMNS = (
    "checkpoint_id long, kind string, job_id string, job_name string, operator_id string, operator_uid string, "
    "operator_name string, parallelism int, max_parallelism int, state_bytes long, state_name string, "
    "state_kind string, state_type string, has_ttl boolean"
)


class EkornStateMetadataSource(DataSource):  # type: ignore[misc]
    """Lists the operators and states of a savepoint. An operator without state has one row without a state."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ekorn-state-metadata"

    def schema(self) -> str:
        """Return the columns."""
        return _COLUMNS

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader."""
        return _MetadataReader(dict(self.options))


class _MetadataReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def read(self, partition: Any) -> Iterator[Any]:
        metadata = SourceOptions(self._options, metadata=True).savepoint().metadata
        of_savepoint = (metadata.checkpoint_id, metadata.kind, metadata.job_id, metadata.job_name)
        for operator in metadata.operators:
            of_operator = (
                *(operator.operator_id, operator.uid, operator.name, operator.parallelism, operator.max_parallelism),
                sum(file.size for file in operator.files()),
            )
            for info in operator.states:
                yield (*of_savepoint, *of_operator, info.name, info.kind, info.type_text, info.ttl)
            if not operator.states:
                yield (*of_savepoint, *of_operator, None, None, None, None)


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
