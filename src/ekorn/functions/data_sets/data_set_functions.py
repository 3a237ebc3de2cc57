"""Functions of the DataSet API that the DataStream API does not have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from ekorn.functions.record_functions import Function

__all__ = [
    "BroadcastVariableInitializer",
    "CrossFunction",
    "GroupCombineFunction",
    "GroupReduceFunction",
    "MapPartitionFunction",
]

T = TypeVar("T")
Made = TypeVar("Made")


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


class BroadcastVariableInitializer(ABC, Generic[T, Made]):
    """Makes a structure of a broadcast variable, such as a dict, once for all subtasks of a worker."""

    @abstractmethod
    def initialize_broadcast_variable(self, data: Iterable[T]) -> Made:
        """Return the structure."""
