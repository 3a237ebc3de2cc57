"""`Grouping`: records by key, before a function over the groups is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tamias.batch.plan.keys import Keys
from tamias.batch.plan.specs import CombineGroupSpec, GroupReduceSpec, ReduceSpec, Spec
from tamias.batch.program.data_set import DataSet
from tamias.functions.data_set_functions import GroupCombineFunction, GroupReduceFunction
from tamias.functions.record_functions import ReduceFunction
from tamias.program.argument_checks import check_function, check_output_type, check_single_result
from tamias.types.type_information import TypeInformation

__all__ = ["Grouping"]


class Grouping:
    """The records of a data set by key."""

    def __init__(self, data_set: DataSet, keys: Keys) -> None:
        self.data_set = data_set
        self.keys = keys

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataSet:
        """Reduce each group to one record, pair by pair, in any order. The result must keep the key."""
        check_function("reduce", func, ReduceFunction, 2)
        check_single_result("reduce", func, "reduce")
        return self._next("Reduce", ReduceSpec(func, self.keys), self.data_set.get_type())

    def reduce_group(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | GroupReduceFunction,
        combinable: bool = False,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with each group.

        Args:
            func: A function of an iterator, which can be read once. It yields or returns the results.
            combinable: Whether parts of a group may be combined before the shuffle. A `GroupReduceFunction` that is a
                `GroupCombineFunction` too is combined by `combine`, any other function by itself.
            output_type: The type of the results.
        """
        check_function("reduce_group", func, GroupReduceFunction, 1)
        spec = GroupReduceSpec(func, self.keys, combinable=combinable or isinstance(func, GroupCombineFunction))
        return self._typed("reduce_group", self._next("GroupReduce", spec), output_type)

    def combine_group(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | GroupCombineFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with the records of a key that are in one partition, in one or more parts."""
        check_function("combine_group", func, GroupCombineFunction, 1)
        spec = CombineGroupSpec(func, self.keys)
        return self._typed("combine_group", self._next("GroupCombine", spec), output_type)

    def _next(self, kind: str, spec: Spec, known_type: TypeInformation | None = None) -> DataSet:
        return DataSet(self.data_set.environment, kind, spec, (self.data_set,), known_type)

    @staticmethod
    def _typed(call: str, data_set: DataSet, output_type: TypeInformation | None) -> DataSet:
        check_output_type(call, output_type)
        return data_set if output_type is None else data_set.returns(output_type)
