"""Streams of columns: aggregates by name, functions of batches, with state per key too, and a generator."""

from __future__ import annotations

from ekorn.connectors.column_generator import ColumnGeneratorSource
from ekorn.connectors.formats.avro_columns import AvroColumns
from ekorn.connectors.formats.column_files import ArrowColumns, OrcColumns, ParquetColumns
from ekorn.connectors.formats.csv_column_files import CsvColumns
from ekorn.connectors.formats.json_columns import JsonColumns
from ekorn.functions.batch_aggregate import BatchAggregate
from ekorn.functions.batch_function import BatchFunction, TableBatchFunction
from ekorn.functions.batch_operators import Absence, Deduplicate, TopK
from ekorn.functions.column_aggregates import ColumnAggregate, Count, First, Last, Max, Mean, Min, Sum
from ekorn.functions.keyed_batch_function import KeyedBatchContext, KeyedBatchFunction, KeyedCoBatchFunction, KeyOfBatch
from ekorn.functions.sketch_aggregates import ApproxCountDistinct, CountDistinct, Quantile
from ekorn.functions.state.batch_states import (
    BatchAggregatingState,
    BatchListState,
    BatchMapState,
    BatchReducingState,
    BatchRuntimeContext,
    BatchState,
    BatchValueState,
)
from ekorn.program.streams.column_stream import ColumnStream
from ekorn.program.streams.keyed_column_stream import KeyedColumnStream
from ekorn.program.streams.table_stream import TableConnectedStream, TableStream

__all__ = [
    "Absence",
    "ApproxCountDistinct",
    "ArrowColumns",
    "AvroColumns",
    "BatchAggregate",
    "BatchAggregatingState",
    "BatchFunction",
    "BatchListState",
    "BatchMapState",
    "BatchReducingState",
    "BatchRuntimeContext",
    "BatchState",
    "BatchValueState",
    "ColumnAggregate",
    "ColumnGeneratorSource",
    "ColumnStream",
    "Count",
    "CountDistinct",
    "CsvColumns",
    "Deduplicate",
    "First",
    "JsonColumns",
    "KeyOfBatch",
    "KeyedBatchContext",
    "KeyedBatchFunction",
    "KeyedCoBatchFunction",
    "KeyedColumnStream",
    "Last",
    "Max",
    "Mean",
    "Min",
    "OrcColumns",
    "ParquetColumns",
    "Quantile",
    "Sum",
    "TableBatchFunction",
    "TableConnectedStream",
    "TableStream",
    "TopK",
]
