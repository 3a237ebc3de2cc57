"""Runs in Spark's Python processes: the DataSource `ekorn`, by which Spark reads the rows that a job commits.

spark.readStream.format("ekorn").load(path)     an offset is an entry of the commit log
spark.read.format("ekorn").load(path)           all rows that are committed now
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ekorn.connectors.data_frames.commit_log import CommitLog, path_of
from ekorn.connectors.data_frames.written_rows import RowFile
from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import open_files
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import join

__all__ = ["SCHEMA_FILE", "EkornSource", "as_spark_expects"]

SCHEMA_FILE = "_schema.json"
_ENTRY = "entry"


class EkornSource(DataSource):  # type: ignore[misc]
    """Reads the folder of `DataStream.to_streaming_data_frame`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ekorn"

    def schema(self) -> Any:
        """Return the columns that the folder was begun with."""
        try:
            return StructType.fromJson(json.loads(open_files(self._path()).read(SCHEMA_FILE)))
        except FileNotFoundError:
            raise ConfigurationError(
                f"{open_files(self._path()).url!r} does not contain the rows of a job: "
                "to_streaming_data_frame(path=...) creates it"
            ) from None

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader of all rows that are committed now."""
        return _BoundedReader(self._path(), schema)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        return _StreamReader(self._path(), schema)

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise ConfigurationError(
                "the format ekorn needs the path that was passed to to_streaming_data_frame(path=...)"
            )
        return str(path)


class _BoundedReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, address: str, schema: Any) -> None:
        self._address = address
        self._schema = schema

    def partitions(self) -> Sequence[Any]:
        return _partitions(CommitLog(open_files(self._address)).all_files())

    def read(self, partition: Any) -> Iterator[Any]:
        return _batches(self._address, self._schema, partition)


class _StreamReader(DataSourceStreamReader):  # type: ignore[misc]
    def __init__(self, address: str, schema: Any) -> None:
        self._address = address
        self._schema = schema
        self._log: CommitLog | None = None

    def _opened(self) -> CommitLog:
        if self._log is None:  # not in the constructor: the reader is also pickled for the tasks
            self._log = CommitLog(open_files(self._address))
        return self._log

    def initialOffset(self) -> dict[str, int]:
        return {_ENTRY: 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return {_ENTRY: self._opened().advance()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Any]:
        return _partitions(self._opened().files_between(start[_ENTRY], end[_ENTRY]))

    def read(self, partition: Any) -> Iterator[Any]:
        return _batches(self._address, self._schema, partition)

    def commit(self, end: dict[str, int]) -> None:
        """Keep everything: other queries may read the folder too."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_address": self._address, "_schema": self._schema, "_log": None}


def _partitions(files: Sequence[RowFile]) -> Sequence[Any]:
    return [InputPartition(tuple(file)) for file in files]


def _batches(address: str, schema: Any, partition: Any) -> Iterator[Any]:
    """Yield the rows of a file."""
    import pyarrow.parquet

    with open_input(join(address, path_of(RowFile(*partition.value)))) as stream:
        yield from as_spark_expects(pyarrow.parquet.ParquetFile(stream).iter_batches(), schema)


def as_spark_expects(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Yield batches of Arrow in exactly the types that Spark expects of a schema."""
    import pyarrow

    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    expected = to_arrow_schema(schema, **zone)
    for batch in batches:
        table = pyarrow.Table.from_batches([batch]).select(expected.names)
        yield from table.cast(expected).to_batches()
