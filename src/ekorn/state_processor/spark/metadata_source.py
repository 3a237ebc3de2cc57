"""Runs in Spark's Python processes: the data source `ekorn-state-metadata`, a row for each state of a savepoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader

from ekorn.state_processor.spark.source_options import SourceOptions

__all__ = ["EkornStateMetadataSource"]

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
