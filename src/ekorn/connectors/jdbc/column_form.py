"""What both sinks share: the values of batches of columns, and the statement that is run for each row."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from ekorn.columns.row_columns import RowColumns
from ekorn.connectors.jdbc.database import Binding, Database, RowValues, Statement, Values
from ekorn.connectors.jdbc.repeated_transactions import Transactions
from ekorn.functions.sink_contract import WrittenBatch
from ekorn.types.data_type_info import type_info_of
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

_PART_ROWS = 4096  # rows of a batch that are Python objects at the same time, besides those that wait
_FEWEST_COPIED = 100  # rows for which it is worth while to ask the database whether they can be copied


@dataclass(frozen=True)
class RowStatement:
    """A statement that is run for each of many rows."""

    database: Database
    statement: Statement
    types: tuple[TypeInformation, ...]  # of the values
    copies: bool = False  # whether rows may be copied into the table instead, where that has the same effect

    def run(self, cursor: Any, chunks: Iterable[Sequence[Values]], row_count: int) -> None:
        """Write rows, which come in chunks."""
        may_copy = self.copies and row_count >= _FEWEST_COPIED
        if may_copy and self.database.copy_rows(cursor, self.statement, self.types, chunks):
            return
        sql = self.database.spelled(self.statement)
        for rows in chunks:
            cursor.executemany(sql, rows)


class ColumnValues:
    """The values that a statement takes, from batches of columns.

    No row can be refused: `of_columns` has found the types of the columns to be those of the statement.
    """

    def __init__(self, row_type: RowType, bindings: Sequence[tuple[int, Binding]]) -> None:
        self._row_type = row_type
        self._bindings = bindings
        self._columns: RowColumns | None = None  # made in the slot

    def parts(self, batch: WrittenBatch) -> Iterable[list[Values]]:
        """Yield the values of the rows of a batch, some rows at a time."""
        if self._columns is None:
            self._columns = RowColumns(self._row_type)
        data = batch.data
        for start in range(0, len(batch), _PART_ROWS):
            part = data.slice(start, _PART_ROWS)
            lists = self._columns.lists([part.column(name) for name in self._columns.names])
            for position, binding in self._bindings:
                lists[position] = [None if value is None else binding(value) for value in lists[position]]
            yield list(zip(*lists, strict=True))


def of_columns(values: RowValues, row_type: RowType) -> ColumnValues | None:
    """Return the values of batches of a row type; None unless their types are those of the statement's fields.

    Columns are found by name, as fields of rows are.
    """
    names, types = values.type_info.get_field_names(), values.type_info.get_field_types()
    if not names or not set(row_type.field_names()).issuperset(names):
        return None
    columns = RowType([row_type[name] for name in names])
    if [type_info_of(each) for each in columns.field_types()] != types:
        return None
    return ColumnValues(columns, values.bindings)


class ColumnForm:
    """A sink that takes rows, and batches of columns if their types are those of its fields."""

    _values: RowValues
    _writing: RowStatement
    _transactions: Transactions
    _rows: list[Values]
    _column_values: ColumnValues | None = None

    def with_columns(self, row_type: RowType) -> Self | None:
        """Return this sink for batches of columns, or None if it takes rows of them."""
        column_values = of_columns(self._values, row_type)
        if column_values is None:
            return None
        found = copy.copy(self)
        found._column_values = column_values
        found._writing = replace(self._writing, copies=True)
        found._transactions = copy.copy(self._transactions)
        found._rows = []
        return found

    def _take_batch(self, batch: WrittenBatch, most_rows: int) -> Iterable[bool]:
        """Add the rows of a batch to those that wait. Yield whether so many wait; 0 or less is any number."""
        assert self._column_values is not None, "the sink was made for columns"
        for values in self._column_values.parts(batch):
            start = 0
            while start < len(values):
                taken = values[start : start + most_rows - len(self._rows)] if most_rows > 0 else values
                self._rows += taken
                start += len(taken)
                yield len(self._rows) == most_rows
