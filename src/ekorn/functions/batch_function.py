"""`BatchFunction`: a function that is called with a batch of rows as columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ekorn.functions.record_functions import Function

__all__ = ["BatchFunction"]


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
        """Return the columns that a batch becomes: a batch, or an iterable of batches."""
