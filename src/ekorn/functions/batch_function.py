"""`BatchFunction` and `TableBatchFunction`: functions that are called with a batch of rows as columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ekorn.functions.record_functions import Function

__all__ = ["BatchFunction", "TableBatchFunction"]


class BatchFunction(Function):
    """Turns each batch of columns into a batch of columns, with `open` and `close` around all of them.

    Example:
        >>> class Double(BatchFunction):
        ...     def map_batch(self, batch):
        ...         import pyarrow.compute as pc
        ...         return batch.set_column(0, "n", pc.multiply(batch.column("n"), 2))
    """

    @abstractmethod
    def map_batch(self, batch: Any) -> Any:
        """Return the columns that a batch becomes: a batch, or an iterable of batches.

        A pair of an `OutputTag` and a batch goes to a side output.
        """


class TableBatchFunction(Function):
    """Turns each batch of columns into a batch of columns, with a table that every subtask has.

    Example:
        >>> class InEuro(TableBatchFunction):
        ...     def map_batch(self, batch, table):
        ...         import pyarrow as pa
        ...         rates = pa.Table.from_batches([table])
        ...         return pa.Table.from_batches([batch]).join(rates, "currency")
    """

    @abstractmethod
    def map_batch(self, batch: Any, table: Any) -> Any:
        """Return the columns that a batch becomes, given the rows of the table as they are now."""
