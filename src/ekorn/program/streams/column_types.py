"""The types of columns, as programs give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.errors import InvalidProgramError
from ekorn.extras import need
from ekorn.functions.batch_aggregate import BatchAggregate
from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.windows.named_aggregates import WINDOW_END, WINDOW_START
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type import DataType
from ekorn.types.data_type_info import data_type_of
from ekorn.types.data_types import DataTypes, RowField, RowType
from ekorn.types.type_information import TypeInformation

AnyAggregate = ColumnAggregate | BatchAggregate

__all__ = [
    "AnyAggregate",
    "adapted",
    "checked_library",
    "column_names",
    "columns_of",
    "expression_types",
    "is_expression",
    "result_fields",
    "row_type_from",
    "window_fields",
]


def row_type_from(given: Any, call: str) -> RowType:
    """Return the columns that a program declares.

    Raises:
        TypeError: It is not a row type.
    """
    need("columns", f"{call}()")
    if isinstance(given, RowType):
        return given
    if isinstance(given, RowTypeInfo):
        found = data_type_of(given, f"{call}()")
        assert isinstance(found, RowType)
        return found
    import pyarrow as pa

    if isinstance(given, pa.Schema):
        from ekorn.columns.row_columns import row_type_of_arrow

        return row_type_of_arrow(given)
    raise TypeError(
        f"{call}() takes columns as DataTypes.ROW([DataTypes.FIELD('id', DataTypes.BIGINT())]), as "
        f"Types.ROW_NAMED(['id'], [Types.LONG()]) or as a schema of Arrow, got {given!r}"
    )


def checked_library(library: str) -> None:
    """Refuse what is no library of batch functions, or is not installed."""
    if library not in ("arrow", "pandas", "polars", "numpy"):
        raise ValueError(f"map_batches() takes library 'arrow', 'pandas', 'polars' or 'numpy', got {library!r}")
    if library != "arrow":
        need({"pandas": "pandas", "polars": "polars", "numpy": "columns"}[library], "map_batches()")


def columns_of(row_type: RowType) -> ColumnsTypeInfo:
    """Return the type of a stream of columns."""
    from ekorn.columns.row_columns import RowColumns

    return ColumnsTypeInfo(RowColumns(row_type).schema)


def column_names(row_type: RowType, names: tuple[Any, ...], call: str) -> None:
    """Refuse names that are no columns.

    Raises:
        InvalidProgramError: There is no such column.
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{call}() on a stream of columns takes names of columns, got {name!r}")
        if name not in row_type.field_names():
            raise InvalidProgramError(
                f"{call}(): there is no column {name!r}; the columns are {row_type.field_names()}"
            )


def is_expression(given: Any) -> bool:
    """Return whether a program gave an expression of PyArrow."""
    return type(given).__module__.startswith("pyarrow") and type(given).__name__ == "Expression"


def expression_types(row_type: RowType, expressions: Mapping[str, Any], call: str) -> dict[str, DataType]:
    """Return the types of the values of expressions over columns.

    Raises:
        InvalidProgramError: An expression does not fit the columns.
    """
    if not expressions:
        return {}
    import pyarrow as pa

    from ekorn.columns.expressions import evaluated
    from ekorn.columns.row_columns import RowColumns, row_type_of_arrow

    empty = RowColumns(row_type).schema.empty_table().combine_chunks().to_batches()
    schema = RowColumns(row_type).schema
    data = empty[0] if empty else pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    found: dict[str, DataType] = {}
    for name, expression in expressions.items():
        if not is_expression(expression):
            raise TypeError(
                f"{call}() takes expressions such as pyarrow.compute.field('amount') * 2, got {expression!r}"
            )
        try:
            (column,) = evaluated(data, [expression])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowTypeError) as error:
            raise InvalidProgramError(
                f"{call}(): the expression {expression} does not fit the columns {row_type.field_names()}: {error}"
            ) from None
        found[name] = row_type_of_arrow(pa.schema([pa.field(name, column.type)]), exact=True).field_types()[0]
    return found


def adapted(row_type: RowType, aggregates: Mapping[str, AnyAggregate]) -> dict[str, ColumnAggregate]:
    """Return aggregates with those that a user wrote as aggregates of the columns of a stream.

    Raises:
        InvalidProgramError: A column is missing, or the type of results is none.
    """
    from ekorn.columns.batch_aggregates import AdaptedAggregate

    found: dict[str, ColumnAggregate] = {}
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, BatchAggregate):
            found[name] = aggregate
            continue
        column_names(row_type, aggregate.columns, "aggregate")
        read = (row_type[column] for column in aggregate.columns)
        inputs = RowType([RowField(f"f{n}", field.data_type) for n, field in enumerate(read)])
        declared = aggregate.result_type(inputs.field_types())
        if isinstance(declared, TypeInformation):
            declared = data_type_of(declared, f"result_type() of {aggregate}")
        if not isinstance(declared, DataType):
            raise InvalidProgramError(
                f"result_type() of {aggregate} must return a type such as DataTypes.DOUBLE(), and returned {declared!r}"
            )
        check_sendable("aggregate", aggregate)
        found[name] = AdaptedAggregate("", aggregate, inputs, declared)
        found[name].create()  # refuses accumulators that are no arrays
    return found


def result_fields(
    row_type: RowType, keys: tuple[str, ...], aggregates: Mapping[str, ColumnAggregate]
) -> list[RowField]:
    """Return the columns of results: the keys, and then the aggregates.

    Raises:
        InvalidProgramError: A name is taken, a column is missing or has values that cannot be aggregated so.
    """
    if not aggregates:
        raise InvalidProgramError("aggregate() needs at least one aggregate, such as aggregate(total=Sum('amount'))")
    fields = [row_type[name] for name in keys]
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, ColumnAggregate):
            raise TypeError(f"aggregate() takes aggregates such as Sum('amount'), got {name}={aggregate!r}")
        if name in keys:
            raise InvalidProgramError(f"aggregate(): {name!r} is a key column; give the aggregate another name")
        column: DataType = DataTypes.BIGINT()
        if aggregate.column:
            column_names(row_type, (aggregate.column,), "aggregate")
            column = row_type[aggregate.column].data_type
        fields.append(RowField(name, aggregate.result_type(column)))
    return fields


def window_fields(
    row_type: RowType, keys: tuple[str, ...], aggregates: Mapping[str, ColumnAggregate], *, bounds: bool
) -> RowType:
    """Return the columns of the results of windows: the keys, the bounds of a time window, and the aggregates.

    Raises:
        InvalidProgramError: As `result_fields`; or a name is that of a bound.
    """
    fields = result_fields(row_type, keys, aggregates)
    if not bounds:
        return RowType(fields)
    taken = [field.name for field in fields if field.name in (WINDOW_START, WINDOW_END)]
    if taken:
        raise InvalidProgramError(
            f"aggregate(): the results of windows have a column {taken[0]!r} with a bound of the window; give the "
            "aggregate or the key column of this name another one"
        )
    between = [RowField(name, DataTypes.BIGINT()) for name in (WINDOW_START, WINDOW_END)]
    return RowType([*fields[: len(keys)], *between, *fields[len(keys) :]])
