"""The contents that a window accumulates: all of its records, or one value.

`Contents` is the logic without a place to store anything. The layouts store accumulated contents in their own tables,
and `contents_state.py` stores them as keyed state per window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, assert_never

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import UnsupportedOperationError
from ekorn.functions.record_functions import FoldFunction, ReduceFunction
from ekorn.graph.specs import AggregateContents, FoldContents, ListContents, ReduceContents, WindowContents
from ekorn.operators.operator import method_of
from ekorn.state.codecs import PickledCodec
from ekorn.types.by_value import own
from ekorn.types.type_information import TypeInformation

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


class Contents(ABC):
    """Accumulates the records of a window. Accumulated contents are live: a snapshot copies them."""

    is_list = False
    """Whether the contents are a list of records; otherwise they are one value."""

    retains_records = False
    """Whether the contents may hold a record itself, rather than what an accumulator makes of it."""

    state_kind: ClassVar[str]
    """The kind of keyed state that holds the same contents per key and window."""

    def __init__(self) -> None:
        self.codec = PickledCodec("contents")  # encodes contents for a checkpoint

    @abstractmethod
    def generate_add(self, code: CodeBuilder, target: str, accumulated: str, value: str) -> None:
        """Generate the statements that add a record to `target`, whose contents `accumulated` holds, or MISSING."""

    @abstractmethod
    def first(self, value: Any) -> Any:
        """Return the contents after the first record."""

    @abstractmethod
    def add(self, accumulated: Any, value: Any) -> Any:
        """Return the contents after one more record."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """Return the contents of two windows that became one."""

    @abstractmethod
    def of_no_records(self) -> Any:
        """Return the result of a window whose records were all evicted, or None if it has none."""

    def of_records(self, values: list[Any]) -> Any:
        """Return the result of a window that has these records."""
        if not values:
            return self.of_no_records()
        accumulated = self.first(values[0])
        for value in values[1:]:
            accumulated = self.add(accumulated, value)
        return self.result(accumulated)

    def result(self, accumulated: Any) -> Any:
        """Return what a firing window emits or hands to its function. None emits nothing."""
        return accumulated

    def snapshot(self, accumulated: Any) -> Any:
        """Return an immutable form for a checkpoint, of built-in types."""
        return self.codec.stored(accumulated)

    def restore(self, saved: Any) -> Any:
        """Return the contents that `snapshot` saved."""
        return self.codec.loaded(saved)


class AllRecords(Contents):
    is_list = True
    retains_records = True
    state_kind = "list"

    def generate_add(self, code: CodeBuilder, target: str, accumulated: str, value: str) -> None:
        with code.block(f"if {accumulated} is {code.bind(MISSING, 'MISSING')}:"):
            code.line(f"{target} = [{value}]")
        with code.block("else:"):
            code.line(f"{accumulated}.append({value})")

    def first(self, value: Any) -> Any:
        return [value]

    def add(self, accumulated: Any, value: Any) -> Any:
        accumulated.append(value)
        return accumulated

    def merge(self, one: Any, other: Any) -> Any:
        return one + other

    def of_no_records(self) -> Any:
        return []

    def snapshot(self, accumulated: Any) -> Any:
        return [self.codec.stored(v) for v in accumulated]

    def restore(self, saved: Any) -> Any:
        return [self.codec.loaded(v) for v in saved]


class Reduced(Contents):
    retains_records = True
    state_kind = "reducing"

    def __init__(self, spec: ReduceContents) -> None:
        super().__init__()
        self._reduce = method_of(spec.function, ReduceFunction, "reduce")

    def generate_add(self, code: CodeBuilder, target: str, accumulated: str, value: str) -> None:
        missing, reduce = code.bind(MISSING, "MISSING"), code.bind(self._reduce, "reduce")
        code.line(f"{target} = {value} if {accumulated} is {missing} else {reduce}({accumulated}, {value})")

    def first(self, value: Any) -> Any:
        return value

    def add(self, accumulated: Any, value: Any) -> Any:
        return self._reduce(accumulated, value)

    def merge(self, one: Any, other: Any) -> Any:
        return self._reduce(one, other)

    def of_no_records(self) -> Any:
        return None


class Aggregated(Contents):
    state_kind = "aggregating"

    def __init__(self, spec: AggregateContents) -> None:
        super().__init__()
        self._function = spec.function

    def generate_add(self, code: CodeBuilder, target: str, accumulated: str, value: str) -> None:
        missing, add = code.bind(MISSING, "MISSING"), code.bind(self._function.add, "add")
        create = code.bind(self._function.create_accumulator, "create")
        code.line(f"{target} = {add}({value}, {create}() if {accumulated} is {missing} else {accumulated})")

    def first(self, value: Any) -> Any:
        return self._function.add(value, self._function.create_accumulator())

    def add(self, accumulated: Any, value: Any) -> Any:
        return self._function.add(value, accumulated)

    def merge(self, one: Any, other: Any) -> Any:
        return self._function.merge(one, other)

    def of_no_records(self) -> Any:
        return self.result(self._function.create_accumulator())

    def result(self, accumulated: Any) -> Any:
        return self._function.get_result(accumulated)


class Folded(Contents):
    state_kind = "folding"

    def __init__(self, spec: FoldContents) -> None:
        super().__init__()
        self._initial = spec.initial
        self._fold = method_of(spec.function, FoldFunction, "fold")

    def generate_add(self, code: CodeBuilder, target: str, accumulated: str, value: str) -> None:
        missing, fold = code.bind(MISSING, "MISSING"), code.bind(self._fold, "fold")
        copy, initial = code.bind(own, "own"), code.bind(self._initial, "initial")
        before = f"{copy}({initial}) if {accumulated} is {missing} else {accumulated}"
        code.line(f"{target} = {fold}({before}, {value})")

    def first(self, value: Any) -> Any:
        return self._fold(own(self._initial), value)

    def add(self, accumulated: Any, value: Any) -> Any:
        return self._fold(accumulated, value)

    def merge(self, one: Any, other: Any) -> Any:
        raise UnsupportedOperationError("a fold cannot be merged: use reduce or aggregate with windows that merge")

    def of_no_records(self) -> Any:
        return own(self._initial)


def contents_for(spec: WindowContents, record_type: TypeInformation | None = None) -> Contents:
    """Return the contents that a spec describes. A checkpoint describes retained records by their declared type."""
    match spec:
        case ListContents():
            return _with_record_type(AllRecords(), record_type)
        case ReduceContents():
            return _with_record_type(Reduced(spec), record_type)
        case AggregateContents():
            return Aggregated(spec)
        case FoldContents():
            return Folded(spec)
        case _:
            assert_never(spec)


def _with_record_type(contents: Contents, record_type: TypeInformation | None) -> Contents:
    contents.codec = PickledCodec("contents", record_type)
    return contents
