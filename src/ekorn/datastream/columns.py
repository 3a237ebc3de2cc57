"""Streams of columns: aggregates by name, functions of whole batches, and a generator of columns."""

from __future__ import annotations

from ekorn.connectors.column_generator import ColumnGeneratorSource
from ekorn.connectors.formats.avro_columns import AvroColumns
from ekorn.connectors.formats.json_columns import JsonColumns
from ekorn.connectors.formats.parquet_files import ParquetColumns
from ekorn.functions.batch_aggregate import BatchAggregate
from ekorn.functions.batch_function import BatchFunction
from ekorn.functions.column_aggregates import ColumnAggregate, Count, First, Last, Max, Mean, Min, Sum
from ekorn.functions.sketch_aggregates import ApproxCountDistinct, CountDistinct, Quantile
from ekorn.program.streams.column_stream import ColumnStream
from ekorn.program.streams.keyed_column_stream import KeyedColumnStream

__all__ = [
    "ApproxCountDistinct",
    "AvroColumns",
    "BatchAggregate",
    "BatchFunction",
    "ColumnAggregate",
    "ColumnGeneratorSource",
    "ColumnStream",
    "Count",
    "CountDistinct",
    "First",
    "JsonColumns",
    "KeyedColumnStream",
    "Last",
    "Max",
    "Mean",
    "Min",
    "ParquetColumns",
    "Quantile",
    "Sum",
]
