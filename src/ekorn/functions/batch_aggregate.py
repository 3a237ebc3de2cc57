"""`BatchAggregate`: an aggregate of a user, whose accumulators are arrays with an element for each key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ekorn.types.data_type import DataType

__all__ = ["BatchAggregate"]


class BatchAggregate(ABC):
    """Aggregates columns per key, beside `Sum` and its kind: `aggregate(mean=WeightedMean("price", "pieces"))`.

    The accumulators of all keys are NumPy arrays of one dimension, and `keys` says for each row which element of them
    is its key's. A key occurs several times in a batch, in the order of its rows. On streams of rows the methods are
    called with batches of one row, and the state is the same.

    The elements of the accumulators are part of checkpoints: numbers, texts, bytes, or other values that pickle.

    Args:
        columns: The columns that `add` is given. They may have nulls.

    Example:
        >>> import numpy as np
        >>> from ekorn.common import Row, Types
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> from ekorn.table import DataTypes
        >>> class WeightedMean(BatchAggregate):
        ...     def create(self, count):
        ...         return [np.zeros(count), np.zeros(count)]
        ...     def add(self, accumulators, keys, columns):
        ...         values, weights = (column.to_numpy(zero_copy_only=False) for column in columns)
        ...         np.add.at(accumulators[0], keys, values * weights)
        ...         np.add.at(accumulators[1], keys, weights)
        ...     def merge(self, accumulators, keys, others):
        ...         for mine, theirs in zip(accumulators, others):
        ...             np.add.at(mine, keys, theirs)
        ...     def results(self, accumulators):
        ...         return accumulators[0] / accumulators[1]
        ...     def result_type(self, columns):
        ...         return DataTypes.DOUBLE()
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sale = Types.ROW_NAMED(["item", "price", "pieces"], [Types.STRING(), Types.LONG(), Types.LONG()])
        >>> sales = env.from_collection([Row("pen", 4, 1), Row("pen", 1, 3)], sale).to_columns()
        >>> sales.key_by("item").aggregate(mean=WeightedMean("price", "pieces")).row_type.field_names()
        ['item', 'mean']
    """

    columns: tuple[str, ...] = ()

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    @abstractmethod
    def create(self, count: int) -> Sequence[Any]:
        """Return the accumulators of keys without rows: always as many arrays, each with `count` elements."""

    @abstractmethod
    def add(self, accumulators: Sequence[Any], keys: Any, columns: Sequence[Any]) -> None:
        """Take the rows of a batch into the accumulators, in place.

        Args:
            accumulators: The arrays.
            keys: For each row the element of its key, as an array of ints. `numpy.add.at` and its kind take keys that
                occur several times.
            columns: The columns of the batch, as arrays of PyArrow.
        """

    @abstractmethod
    def merge(self, accumulators: Sequence[Any], keys: Any, others: Sequence[Any]) -> None:
        """Take other accumulators, whose rows come later, into the elements `keys` of the accumulators, in place."""

    @abstractmethod
    def results(self, accumulators: Sequence[Any]) -> Any:
        """Return the result of each element, as an array of NumPy or PyArrow, or a list."""

    @abstractmethod
    def result_type(self, columns: Sequence[DataType]) -> DataType:
        """Return the type of the results for columns of some types."""

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.columns))})"
