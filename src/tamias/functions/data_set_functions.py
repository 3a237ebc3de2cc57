"""Functions of the DataSet API that the DataStream API does not have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from tamias.functions.record_functions import Function

__all__ = ["CrossFunction", "GroupCombineFunction", "GroupReduceFunction", "MapPartitionFunction"]


class MapPartitionFunction(Function):
    """Turns a whole partition into records."""

    @abstractmethod
    def map_partition(self, values: Iterator[Any]) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that a partition becomes. Called once for each partition.

        An empty partition counts. The values can be read once.
        """


class GroupReduceFunction(Function):
    """Turns a group into records."""

    @abstractmethod
    def reduce(self, values: Iterator[Any]) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that a group becomes. The values can be read once."""


class GroupCombineFunction(Function):
    """Turns a part of a group into records.

    A class that is a `GroupReduceFunction` as well is combinable: `combine` then returns records of the type that it
    takes, and is called any number of times on parts of a group before `reduce` sees the results.
    """

    @abstractmethod
    def combine(self, values: Iterator[Any]) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that a part of a group becomes."""


class CrossFunction(Function):
    """Turns a pair of records, one of each input, into one record."""

    @abstractmethod
    def cross(self, first: Any, second: Any) -> Any:
        """Return the result of a pair."""
