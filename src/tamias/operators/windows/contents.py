"""What a window keeps of its records: all of them, or one value made of them.

`Contents` is the arithmetic, without a place: the tight operators keep the values in tables of their own. `Kept`
puts the same into state per key and window, for the general operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, assert_never

from tamias.codegen.code_builder import CodeBuilder
from tamias.errors import UnsupportedOperationError
from tamias.functions.record_functions import FoldFunction, ReduceFunction
from tamias.functions.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
)
from tamias.graph.specs import AggregateContents, FoldContents, ListContents, ReduceContents, WindowContents
from tamias.operators.operator import method_of
from tamias.state.codecs import PickledCodec
from tamias.state.keyed_backend import KeyedStates
from tamias.types.by_value import own
from tamias.types.type_information import TypeInformation

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


class Contents(ABC):
    """How a window's records become what it keeps. What is kept is live: it is copied when it is checkpointed."""

    listed = False
    """Whether a list of records is kept, or else one value."""

    retains = False
    """Whether a record itself may be kept, rather than what an accumulator makes of it."""

    def __init__(self) -> None:
        self.codec = PickledCodec("contents")  # how what is kept gets into a checkpoint

    @abstractmethod
    def generate_add(self, code: CodeBuilder, target: str, kept: str, value: str) -> None:
        """Generate the statements that add a record: `kept` holds what was found at `target`, or MISSING."""

    @abstractmethod
    def first(self, value: Any) -> Any:
        """What is kept of one record."""

    @abstractmethod
    def more(self, kept: Any, value: Any) -> Any:
        """What is kept after one more record."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """What is kept of two windows that became one."""

    def result(self, kept: Any) -> Any:
        """What goes to the window function, or on; None is nothing."""
        return kept

    def freeze(self, kept: Any) -> Any:
        """The form for a checkpoint: built-in, and nobody can change it."""
        return self.codec.stored(kept)

    def thaw(self, frozen: Any) -> Any:
        """Back from a checkpoint."""
        return self.codec.loaded(frozen)


class AllRecords(Contents):
    listed = True
    retains = True

    def generate_add(self, code: CodeBuilder, target: str, kept: str, value: str) -> None:
        with code.block(f"if {kept} is {code.bind(MISSING, 'MISSING')}:"):
            code.line(f"{target} = [{value}]")
        with code.block("else:"):
            code.line(f"{kept}.append({value})")

    def first(self, value: Any) -> Any:
        return [value]

    def more(self, kept: Any, value: Any) -> Any:
        kept.append(value)
        return kept

    def merge(self, one: Any, other: Any) -> Any:
        return one + other

    def freeze(self, kept: Any) -> Any:
        return [self.codec.stored(v) for v in kept]

    def thaw(self, frozen: Any) -> Any:
        return [self.codec.loaded(v) for v in frozen]


class Reduced(Contents):
    retains = True

    def __init__(self, spec: ReduceContents) -> None:
        super().__init__()
        self._reduce = method_of(spec.function, ReduceFunction, "reduce")

    def generate_add(self, code: CodeBuilder, target: str, kept: str, value: str) -> None:
        missing, reduce = code.bind(MISSING, "MISSING"), code.bind(self._reduce, "reduce")
        code.line(f"{target} = {value} if {kept} is {missing} else {reduce}({kept}, {value})")

    def first(self, value: Any) -> Any:
        return value

    def more(self, kept: Any, value: Any) -> Any:
        return self._reduce(kept, value)

    def merge(self, one: Any, other: Any) -> Any:
        return self._reduce(one, other)


class Aggregated(Contents):
    def __init__(self, spec: AggregateContents) -> None:
        super().__init__()
        self._function = spec.function

    def generate_add(self, code: CodeBuilder, target: str, kept: str, value: str) -> None:
        missing, add = code.bind(MISSING, "MISSING"), code.bind(self._function.add, "add")
        create = code.bind(self._function.create_accumulator, "create")
        code.line(f"{target} = {add}({value}, {create}() if {kept} is {missing} else {kept})")

    def first(self, value: Any) -> Any:
        return self._function.add(value, self._function.create_accumulator())

    def more(self, kept: Any, value: Any) -> Any:
        return self._function.add(value, kept)

    def merge(self, one: Any, other: Any) -> Any:
        return self._function.merge(one, other)

    def result(self, kept: Any) -> Any:
        return self._function.get_result(kept)


class Folded(Contents):
    def __init__(self, spec: FoldContents) -> None:
        super().__init__()
        self._initial = spec.initial
        self._fold = method_of(spec.function, FoldFunction, "fold")

    def generate_add(self, code: CodeBuilder, target: str, kept: str, value: str) -> None:
        missing, fold = code.bind(MISSING, "MISSING"), code.bind(self._fold, "fold")
        copy, initial = code.bind(own, "own"), code.bind(self._initial, "initial")
        code.line(f"{target} = {fold}({copy}({initial}) if {kept} is {missing} else {kept}, {value})")

    def first(self, value: Any) -> Any:
        return self._fold(own(self._initial), value)

    def more(self, kept: Any, value: Any) -> Any:
        return self._fold(kept, value)

    def merge(self, one: Any, other: Any) -> Any:
        raise UnsupportedOperationError("a fold cannot be merged: use reduce or aggregate with windows that merge")


def contents_for(spec: WindowContents, record_type: TypeInformation | None = None) -> Contents:
    """The arithmetic of a spec; what is kept as records is described by their declared type in checkpoints."""
    match spec:
        case ListContents():
            return _of_records(AllRecords(), record_type)
        case ReduceContents():
            return _of_records(Reduced(spec), record_type)
        case AggregateContents():
            return Aggregated(spec)
        case FoldContents():
            return Folded(spec)
        case _:
            assert_never(spec)


def _of_records(contents: Contents, record_type: TypeInformation | None) -> Contents:
    contents.codec = PickledCodec("contents", record_type)
    return contents


class _Records(ListStateDescriptor):
    """Records were held against their declared type on the way here."""

    checks_values = False


class _Record(ReducingStateDescriptor):
    """Likewise."""

    checks_values = False


class Kept:
    """The contents of the current key and window, as state."""

    def __init__(
        self, states: KeyedStates, spec: WindowContents, name: str, record_type: TypeInformation | None = None
    ) -> None:
        self._listed = False
        self._state: Any
        match spec:
            case ListContents():
                self._state, self._listed = states.list_state(_Records(name, record_type)), True
            case ReduceContents(function):
                self._state = states.reducing_state(_Record(name, function, record_type))
            case AggregateContents(function):
                self._state = states.aggregating_state(AggregatingStateDescriptor(name, function))
            case FoldContents(initial, function):
                self._state = states.folding_state(FoldingStateDescriptor(name, initial, function))
            case _:
                assert_never(spec)
        self.add = self._state.add
        self.clear = self._state.clear
        self.merge = self._state.merge

    def get(self) -> Any:
        """What goes to the window function: a list or a value; None when nothing is kept."""
        if self._listed:
            return list(self._state.get()) or None
        return self._state.get()

    def replace(self, records: list[Any]) -> None:
        """Keep these records instead; of a list only."""
        self._state.update(records)
