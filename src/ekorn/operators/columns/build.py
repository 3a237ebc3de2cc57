"""Builds a running operator on columns from its spec."""

from __future__ import annotations

from typing import assert_never

from ekorn.graph import column_specs as specs
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns import batch_functions, column_windows, conversions, keyed_batches, rolling_aggregates
from ekorn.operators.columns import column_timestamps as timestamps
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator


def build_column_operator(
    operator: Operator, spec: specs.ColumnSpec, environment: SubtaskEnvironment
) -> RuntimeOperator:
    """Build one operator of a subtask."""
    match spec:
        case specs.ToRowsSpec():
            return conversions.ToRowsOperator(operator, spec, environment)
        case specs.ToColumnsSpec():
            return conversions.ToColumnsOperator(operator, spec, environment)
        case specs.MapBatchesSpec():
            return batch_functions.MapBatchesOperator(operator, spec, environment)
        case specs.SelectRowsSpec():
            return batch_functions.SelectRowsOperator(operator, spec, environment)
        case specs.SelectColumnsSpec():
            return batch_functions.SelectColumnsOperator(operator, spec, environment)
        case specs.ColumnTimestampsSpec():
            return timestamps.ColumnTimestampsOperator(operator, spec, environment)
        case specs.RollingAggregateSpec() if spec.on_columns:
            return rolling_aggregates.ColumnAggregateOperator(operator, spec, environment)
        case specs.RollingAggregateSpec():
            return rolling_aggregates.RowAggregateOperator(operator, spec, environment)
        case specs.WindowAggregateSpec():
            return column_windows.ColumnWindowOperator(operator, spec, environment)
        case specs.KeyedBatchSpec():
            return keyed_batches.KeyedBatchOperator(operator, spec, environment)
        case _:
            assert_never(spec)
