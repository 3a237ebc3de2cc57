"""Joins, co-groups and crosses: the keys of the two inputs, then the function or the projection of the pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

from ekorn.batch.plan.data_set_specs import CoGroupSpec, CrossSpec, JoinHint, JoinKind, JoinSpec, Order
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.program.data_set import DataSet, Key
from ekorn.batch.program.key_arguments import (
    check_keys_match,
    checked_keys,
    checked_partitioner,
    checked_positions,
    checked_sort_field,
)
from ekorn.batch.program.unfinished import Unfinished
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.data_set_functions import CrossFunction
from ekorn.functions.record_functions import Partitioner
from ekorn.functions.windows.window_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from ekorn.program.checks.argument_checks import check_function, check_single_result
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.type_information import TypeInformation

__all__ = [
    "CoGroup",
    "CoGroupKeys",
    "CoGroupOtherKeys",
    "CrossOperator",
    "Inputs",
    "JoinKeys",
    "JoinOperator",
    "JoinOtherKeys",
    "OuterJoin",
    "OuterJoinKeys",
    "OuterJoinOtherKeys",
    "ProjectedPairs",
]

_REFUSED_HINTS = {
    JoinKind.INNER: (),
    JoinKind.LEFT: (JoinHint.BROADCAST_HASH_FIRST,),
    JoinKind.RIGHT: (JoinHint.BROADCAST_HASH_SECOND,),
    JoinKind.FULL: (JoinHint.BROADCAST_HASH_FIRST, JoinHint.BROADCAST_HASH_SECOND),
}


class Inputs(NamedTuple):
    """The two data sets of a join, a co-group or a cross."""

    first: DataSet
    second: DataSet


class JoinInputs(Unfinished):
    """What a join has before it has keys."""

    missing_call = "where(...).equal_to(...)"

    def __init__(self, first: DataSet, second: DataSet, kind: JoinKind, hint: JoinHint) -> None:
        first.check_other(kind.value, second)
        if not isinstance(hint, JoinHint):
            raise TypeError(f"{kind.value}() takes a JoinHint, got {hint!r}")
        if hint in _REFUSED_HINTS[kind]:
            raise InvalidProgramError(
                f"{kind.value}() cannot run with the hint {hint.name}: records of the broadcast input that have no "
                "partner would appear in every subtask; use REPARTITION_HASH_FIRST or REPARTITION_HASH_SECOND"
            )
        self.inputs = Inputs(first, second)
        self.kind = kind
        self.hint = hint

    def first_keys(self, keys: tuple[Key, ...]) -> Keys:
        """Return the checked keys of the first input."""
        return checked_keys("where", keys, self.inputs.first.get_type())

    def spec(self, first_keys: Keys, keys: tuple[Key, ...]) -> JoinSpec:
        """Return the join on the keys of both inputs."""
        first, second = self.inputs
        checked = checked_keys("equal_to", keys, second.get_type())
        check_keys_match("equal_to", first_keys, first.get_type(), checked, second.get_type())
        return JoinSpec(self.kind, first_keys, checked, self.hint)


class JoinKeys(JoinInputs):
    """A join without keys yet."""

    def where(self, *keys: Key) -> JoinOtherKeys:
        """Set the key of the first input."""
        return JoinOtherKeys(self, self.first_keys(keys))


class JoinOtherKeys(Unfinished):
    """A join without the key of its second input yet."""

    missing_call = "equal_to(...)"

    def __init__(self, join: JoinInputs, first_keys: Keys) -> None:
        self._join = join
        self._first_keys = first_keys

    def equal_to(self, *keys: Key) -> JoinOperator:
        """Set the key of the second input."""
        return JoinOperator(self._join.inputs, self._join.spec(self._first_keys, keys))


class OuterJoinKeys(JoinInputs):
    """An outer join without keys yet."""

    def where(self, *keys: Key) -> OuterJoinOtherKeys:
        """Set the key of the first input."""
        return OuterJoinOtherKeys(self, self.first_keys(keys))


class OuterJoinOtherKeys(Unfinished):
    """An outer join without the key of its second input yet."""

    missing_call = "equal_to(...)"

    def __init__(self, join: JoinInputs, first_keys: Keys) -> None:
        self._join = join
        self._first_keys = first_keys

    def equal_to(self, *keys: Key) -> OuterJoin:
        """Set the key of the second input."""
        return OuterJoin(self._join.inputs, self._join.spec(self._first_keys, keys))


class JoinFunctions:
    """How a join gets its function: what inner and outer joins share."""

    _inputs: Inputs
    _join: JoinSpec

    def using(
        self,
        func: JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any, Any] | Callable[[Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with each pair. A `FlatJoinFunction` returns any number of results, all others one."""
        if isinstance(func, FlatJoinFunction):
            check_function("using", func, FlatJoinFunction, None)
            return self._result(replace(self._join, function=func, flat=True), output_type)
        check_function("using", func, JoinFunction, 2)
        check_single_result("using", func, "join")
        return self._result(replace(self._join, function=func), output_type)

    with_ = using

    def using_flat(
        self,
        func: FlatJoinFunction[Any, Any, Any] | Callable[[Any, Any], Iterable[Any] | None],
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with each pair. It yields or returns any number of results."""
        check_function("using_flat", func, FlatJoinFunction, 2)
        return self._result(replace(self._join, function=func, flat=True), output_type)

    def with_partitioner(self, partitioner: Partitioner | Callable[[Any, int], int]) -> Self:
        """Let a function of the key choose the partition where records meet."""
        checked_partitioner("with_partitioner", partitioner, self._join.first_keys)
        self._join = replace(self._join, partitioner=partitioner)
        return self

    def _result(self, spec: JoinSpec, output_type: TypeInformation | None) -> DataSet:
        data_set = DataSet(self._inputs.first.environment, _kind_name(spec), spec, tuple(self._inputs))
        return data_set.declared("using", output_type)


class OuterJoin(JoinFunctions, Unfinished):
    """An outer join without a function yet. It needs one: Flink has no tuples with a missing side."""

    missing_call = "using(function)"

    def __init__(self, inputs: Inputs, spec: JoinSpec) -> None:
        self._inputs = inputs
        self._join = spec


class JoinOperator(JoinFunctions, DataSet):
    """The pairs of a join, (first, second); `using` or a projection makes something else of them."""

    def __init__(self, inputs: Inputs, spec: JoinSpec) -> None:
        self._inputs = inputs
        types = [each.get_type() for each in inputs]
        known = None if None in types else TupleTypeInfo([each for each in types if each is not None])
        DataSet.__init__(self, inputs.first.environment, _kind_name(spec), spec, tuple(inputs), known)
        self._join = spec

    def with_partitioner(self, partitioner: Partitioner | Callable[[Any, int], int]) -> Self:
        """Let a function of the key choose the partition where records meet."""
        super().with_partitioner(partitioner)
        self.spec = self._join
        return self

    def project_first(self, *fields: int) -> ProjectedPairs:
        """Make tuples that begin with fields of the first input, or with its whole record."""
        return ProjectedPairs(self._inputs, self._join, "Join").project_first(*fields)

    def project_second(self, *fields: int) -> ProjectedPairs:
        """Make tuples that begin with fields of the second input, or with its whole record."""
        return ProjectedPairs(self._inputs, self._join, "Join").project_second(*fields)


class PairField(NamedTuple):
    """A field of a pair: of the first or the second record, by position; None for the whole record."""

    of_second: bool
    position: int | None


class PairProjection:
    """Makes a tuple of fields of a pair. It is the function of a projected join or cross."""

    def __init__(self, fields: tuple[PairField, ...]) -> None:
        self._fields = fields

    def __call__(self, first: Any, second: Any) -> tuple[Any, ...]:  # hot
        """Return the fields of a pair."""
        pair = (first, second)
        return tuple(
            [pair[of_second] if position is None else pair[of_second][position] for of_second, position in self._fields]
        )


class ProjectedPairs(DataSet):
    """Tuples of fields of the pairs of a join or a cross, in the order of the calls."""

    def __init__(self, inputs: Inputs, spec: Any, kind: str) -> None:
        self._fields: tuple[PairField, ...] = ()
        self._pairs = spec
        super().__init__(inputs.first.environment, kind, spec, tuple(inputs))

    def project_first(self, *fields: int) -> Self:
        """Add fields of the first input, or its whole record."""
        return self._project("project_first", False, fields)

    def project_second(self, *fields: int) -> Self:
        """Add fields of the second input, or its whole record."""
        return self._project("project_second", True, fields)

    def _project(self, call: str, of_second: bool, fields: tuple[int, ...]) -> Self:
        if fields:
            checked_positions(call, fields, self.inputs[of_second].get_type())
        self._fields += tuple([PairField(of_second, field) for field in fields or (None,)])
        self.spec = replace(self._pairs, function=PairProjection(self._fields))
        return self


class CoGroupKeys(Unfinished):
    """A co-group without keys yet."""

    missing_call = "where(...).equal_to(...).using(function)"

    def __init__(self, first: DataSet, second: DataSet) -> None:
        first.check_other("co_group", second)
        self._inputs = Inputs(first, second)

    def where(self, *keys: Key) -> CoGroupOtherKeys:
        """Set the key of the first input."""
        return CoGroupOtherKeys(self._inputs, checked_keys("where", keys, self._inputs.first.get_type()))


class CoGroupOtherKeys(Unfinished):
    """A co-group without the key of its second input yet."""

    missing_call = "equal_to(...).using(function)"

    def __init__(self, inputs: Inputs, first_keys: Keys) -> None:
        self._inputs = inputs
        self._first_keys = first_keys

    def equal_to(self, *keys: Key) -> CoGroup:
        """Set the key of the second input."""
        first, second = self._inputs
        checked = checked_keys("equal_to", keys, second.get_type())
        check_keys_match("equal_to", self._first_keys, first.get_type(), checked, second.get_type())
        return CoGroup(self._inputs, CoGroupSpec(None, self._first_keys, checked))


class CoGroup(Unfinished):
    """A co-group without a function yet."""

    missing_call = "using(function)"

    def __init__(self, inputs: Inputs, spec: CoGroupSpec) -> None:
        self._inputs = inputs
        self._spec = spec

    def sort_first_group(self, field: Key, order: Order = Order.ASCENDING) -> Self:
        """Sort the groups of the first input by a field. Further calls add fields."""
        further = checked_sort_field("sort_first_group", field, order, self._inputs.first.get_type())
        self._spec = replace(self._spec, first_sort=(*self._spec.first_sort, further))
        return self

    def sort_second_group(self, field: Key, order: Order = Order.ASCENDING) -> Self:
        """Sort the groups of the second input by a field. Further calls add fields."""
        further = checked_sort_field("sort_second_group", field, order, self._inputs.second.get_type())
        self._spec = replace(self._spec, second_sort=(*self._spec.second_sort, further))
        return self

    def with_partitioner(self, partitioner: Partitioner | Callable[[Any, int], int]) -> Self:
        """Let a function of the key choose the partition where groups meet."""
        checked_partitioner("with_partitioner", partitioner, self._spec.first_keys)
        self._spec = replace(self._spec, partitioner=partitioner)
        return self

    def using(
        self,
        func: CoGroupFunction[Any, Any, Any] | Callable[[Iterator[Any], Iterator[Any]], Iterable[Any] | None],
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with the two groups of each key that either input has. A missing group is empty."""
        check_function("using", func, CoGroupFunction, 2)
        spec = replace(self._spec, function=func)
        data_set = DataSet(self._inputs.first.environment, "CoGroup", spec, tuple(self._inputs))
        return data_set.declared("using", output_type)

    with_ = using


class CrossOperator(DataSet):
    """All pairs, (first, second); `using` or a projection makes something else of them."""

    def __init__(self, first: DataSet, second: DataSet, broadcast_first: bool | None) -> None:
        first.check_other("cross", second)
        self._inputs = Inputs(first, second)
        self._cross = CrossSpec(None, broadcast_first)
        types = [first.get_type(), second.get_type()]
        known = None if None in types else TupleTypeInfo([each for each in types if each is not None])
        super().__init__(first.environment, "Cross", self._cross, tuple(self._inputs), known)

    def using(
        self, func: CrossFunction | Callable[[Any, Any], Any], output_type: TypeInformation | None = None
    ) -> DataSet:
        """Call a function with each pair."""
        check_function("using", func, CrossFunction, 2)
        check_single_result("using", func, "cross")
        spec = replace(self._cross, function=func)
        return DataSet(self.environment, "Cross", spec, tuple(self._inputs)).declared("using", output_type)

    with_ = using

    def project_first(self, *fields: int) -> ProjectedPairs:
        """Make tuples that begin with fields of the first input, or with its whole record."""
        return ProjectedPairs(self._inputs, self._cross, "Cross").project_first(*fields)

    def project_second(self, *fields: int) -> ProjectedPairs:
        """Make tuples that begin with fields of the second input, or with its whole record."""
        return ProjectedPairs(self._inputs, self._cross, "Cross").project_second(*fields)


def _kind_name(spec: JoinSpec) -> str:
    return "Join" if spec.kind is JoinKind.INNER else f"{spec.kind.name.capitalize()}OuterJoin"
