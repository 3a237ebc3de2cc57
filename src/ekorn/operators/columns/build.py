"""Builds a running operator on columns from its spec."""

from __future__ import annotations

from typing import assert_never

from ekorn.functions.windows.window_arithmetic import CountGrid, SessionGap, WindowGrid
from ekorn.graph import column_specs as specs
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns import batch_functions, conversions, keyed_batches, rolling_aggregates
from ekorn.operators.columns import column_timestamps as timestamps
from ekorn.operators.columns.column_windows import GridWindowOperator
from ekorn.operators.columns.count_windows import CountWindowOperator
from ekorn.operators.columns.session_windows import SessionWindowOperator
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
        case specs.MapBatchesWithTableSpec():
            return batch_functions.MapBatchesWithTableOperator(operator, spec, environment)
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
            return _windows(operator, spec, environment)
        case specs.KeyedBatchSpec() if spec.second_keys:
            return keyed_batches.KeyedCoBatchOperator(operator, spec, environment)
        case specs.KeyedBatchSpec():
            return keyed_batches.KeyedBatchOperator(operator, spec, environment)
        case _:
            assert_never(spec)


def _windows(operator: Operator, spec: specs.WindowAggregateSpec, environment: SubtaskEnvironment) -> RuntimeOperator:
    match spec.arithmetic:
        case WindowGrid() as grid:
            return GridWindowOperator(operator, spec, grid, environment)
        case SessionGap() as gap:
            return SessionWindowOperator(operator, spec, gap, environment)
        case CountGrid() as grid:
            return CountWindowOperator(operator, spec, grid, environment)
        case _:
            assert_never(spec.arithmetic)
