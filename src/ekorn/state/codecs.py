"""Codecs: how the values of one state are kept, by their declared type or by the program's serializer.

The kept form is what tables and files hold. An immutable value of a built-in type is kept as itself; any other value is
kept as a `bytearray` with its pickle, or with what its serializer wrote. All backends use the same kept form.

A backend asks for the `Declaration` of each descriptor and uses its codecs:

    declared = declare(descriptor, kind, self.key_type)   # declared.py
    kept = declared.value.stored(value)                   # when a user's value is written
    value = declared.value.loaded(kept)                   # when it is read
    key = declared.map_key.stored(user_key)               # likewise, for keys of map state
    infos() -> declared.saved_as(some_key)                # what a checkpoint records about the state
    migrate(saved_info, declared, operator)               # evolution/restore_checks.py: converts restored values
"""

from __future__ import annotations

import pickle
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from io import BytesIO
from typing import Any

from ekorn.errors import RecordTypeError, StateError, preview
from ekorn.state.evolution.pickled_classes import ClassFields, Noting
from ekorn.state.evolution.type_descriptions import Schema, describe, describe_serializer
from ekorn.types.basic_types import BasicTypeInfo, IntegerTypeInfo, PickledBytesTypeInfo
from ekorn.types.by_value import IMMUTABLE, dumps, own
from ekorn.types.composite_types import RowTypeInfo, TupleTypeInfo
from ekorn.types.row import Row
from ekorn.types.serializer import SerializerTypeInfo
from ekorn.types.type_information import TypeInformation

PLAIN: frozenset[type] = IMMUTABLE - {type, types.FunctionType, types.BuiltinFunctionType}
"""Types whose values are kept as they are. Not classes and functions: their use must be noted for the checkpoint."""


def _is_plain(value: Any) -> bool:  # hot
    cls = type(value)
    if cls in PLAIN:
        return True
    if cls is not tuple and cls is not frozenset:
        return False
    for field in value:  # noqa: SIM110 - a generator takes three times as long
        if type(field) not in PLAIN and not _is_plain(field):
            return False
    return True


class Codec(ABC):
    """Convert the values of one type to and from the form in which one state keeps them."""

    as_is: frozenset[type] = frozenset()
    """Classes whose values are kept as they are, so that a handle need not call `stored`."""

    def __init__(self, state: str, type_info: TypeInformation | None) -> None:
        self.state = state
        self.type_info = type_info

    @abstractmethod
    def stored(self, value: Any) -> Any:
        """Return the kept form of a value, which is immutable to the program.

        Raises:
            StateError: The value does not fit the declared type.
        """

    @abstractmethod
    def loaded(self, kept: Any) -> Any:
        """Return the value; a new object each time if it is mutable."""

    def schema(self) -> Schema:
        """Return the description of the type for a checkpoint."""
        return describe(self.type_info)

    def classes(self) -> ClassFields:
        """Return the classes of the values, for a checkpoint."""
        return {}

    def carry(self, classes: ClassFields) -> None:  # noqa: B027
        """Note the classes of restored values."""


class PickledCodec(Codec):
    """Keep any value: for state without a declared type, or whose values are checked elsewhere."""

    as_is = PLAIN

    def __init__(self, state: str, type_info: TypeInformation | None = None) -> None:
        super().__init__(state, type_info)
        self._noting = Noting()

    def stored(self, value: Any) -> Any:
        return value if _is_plain(value) else bytearray(self._noting.dumps(value))

    def loaded(self, kept: Any) -> Any:
        return pickle.loads(kept) if type(kept) is bytearray else kept

    def classes(self) -> ClassFields:
        return self._noting.described()

    def carry(self, classes: ClassFields) -> None:
        self._noting.carried = dict(classes)


class TypedCodec(PickledCodec):
    """Keep values of a declared type.

    Flink: a value that does not fit fails the job. A value that fits after a conversion is returned as it was given, as
    PyFlink does while the value is in its cache: 1 in a state of DOUBLE stays 1.
    """

    def __init__(self, state: str, type_info: TypeInformation) -> None:
        super().__init__(state, type_info)
        self.as_is = _FITTING.get(str(type_info), frozenset())
        fits = quick_check(type_info)
        self._fits = fits if fits is not None else _never
        if fits is not None and _is_of_plain(type_info):
            slow = self._checked
            self.stored = lambda value: value if fits(value) else slow(value)  # type: ignore[method-assign]

    def stored(self, value: Any) -> Any:
        return bytearray(self._noting.dumps(value)) if self._fits(value) else self._checked(value)

    def _checked(self, value: Any) -> Any:
        if value is None:  # a value of map state; other kinds of state never pass None
            return None
        assert self.type_info is not None
        try:
            self.type_info.conform([value])
        except RecordTypeError as misfit:
            raise StateError(
                f"state {self.state!r} is declared as {self.type_info} and cannot hold {misfit.value_preview}: "
                f"{misfit.reason}"
            ) from None
        return super().stored(value)


class ExactCodec(TypedCodec):
    """Keep values of a declared type, and refuse one that the type would change, such as 0.5 in a state of LONG.

    A running job keeps such a value as it was given. In a savepoint that is made from data such a value is a mistake.
    It would be found only when the state is read as a table, or by another program.
    """

    def _checked(self, value: Any) -> Any:
        kept = super()._checked(value)
        if value is not None and self.type_info is not None:
            (fitting,) = self.type_info.conform([value])
            if _loses(value, fitting):
                raise StateError(
                    f"state {self.state!r} is declared as {self.type_info} and cannot hold {preview(value)}, which "
                    f"would be stored as {preview(fitting)}: convert it, or declare another type"
                )
        return kept


def _loses(value: Any, fitting: Any) -> bool:
    """Return whether a whole number of a conformed value is not the number that was given. Floats may be rounded."""
    match fitting:
        case int():
            return bool(fitting != value)
        case dict():
            return any(map(_loses, value.values(), fitting.values())) or any(map(_loses, value, fitting))
        case list() | tuple() | Row():
            return any(map(_loses, value, fitting))
        case _:
            return False


EXACT: ContextVar[bool] = ContextVar("EXACT", default=False)
"""Whether states that are declared now refuse values that their type would change."""


def _never(value: Any) -> bool:
    return False


_FITTING: dict[str, frozenset[type]] = {
    "String": frozenset({str}),
    "Boolean": frozenset({bool}),
    "Double": frozenset({float}),
    "BigInteger": frozenset({int}),
}


def quick_check(type_info: TypeInformation) -> Callable[[Any], bool] | None:
    """Compile the check that a value fits its type unconverted to one expression; return None if the type has none.

    `conform` is made for runs of records. For one value of the commonest types the expression takes a tenth of its
    time.

    >>> from ekorn.common import Types
    >>> fits = quick_check(Types.TUPLE([Types.STRING(), Types.INT()]))
    >>> fits(("a", 1)), fits(("a", 2**40)), fits(["a", 1])
    (True, False, False)
    """
    condition = _condition(type_info, "v")
    return None if condition is None else _compiled(condition)


@lru_cache(maxsize=1000)
def _compiled(condition: str) -> Callable[[Any], bool]:
    # The expression contains only names and numbers from `_condition`, and the quoted names of a row's fields.
    check: Callable[[Any], bool] = eval(f"lambda v: {condition}", {"Row": Row})
    return check


def _condition(type_info: TypeInformation, value: str) -> str | None:
    """Return an expression that is true only for values that fit; `conform` decides about the others."""
    match type_info:
        case IntegerTypeInfo() if str(type_info) != "BigInteger":
            return f"{value}.__class__ is int and {type_info.lowest} <= {value} <= {type_info.highest}"
        case TupleTypeInfo():
            types = type_info.get_field_types()
            fields = [_condition(each, f"{value}[{i}]") for i, each in enumerate(types)]
            return _all_of(f"{value}.__class__ is tuple", f"len({value}) == {len(types)}", *fields)
        case RowTypeInfo():
            types, names = type_info.get_field_types(), type_info.get_field_names()
            inside = [_condition(each, f"{value}._values[{i}]") for i, each in enumerate(types)]
            nullable = [f and f"({value}._values[{i}] is None or {f})" for i, f in enumerate(inside)]
            is_row = f"{value}.__class__ is Row and ({value}._names is None or {value}._names == {names!r})"
            return _all_of(is_row, f"len({value}._values) == {len(types)}", *nullable)
        case _:
            found = next(iter(_FITTING.get(str(type_info), ())), None)
            return None if found is None else f"{value}.__class__ is {found.__name__}"


def _all_of(*conditions: str | None) -> str | None:
    known = [condition for condition in conditions if condition is not None]
    return " and ".join(known) if len(known) == len(conditions) else None


def _is_of_plain(type_info: TypeInformation) -> bool:
    """Return whether values of a type that pass the quick check are immutable."""
    if isinstance(type_info, TupleTypeInfo):
        return all(map(_is_of_plain, type_info.get_field_types()))
    return isinstance(type_info, BasicTypeInfo)


class SerializerCodec(Codec):
    """Keep values that a serializer of the program writes."""

    def __init__(self, state: str, type_info: SerializerTypeInfo) -> None:
        super().__init__(state, type_info)
        self.serializer = type_info.serializer

    def stored(self, value: Any) -> Any:
        if value is None:
            return None
        stream = BytesIO()
        self.serializer.serialize(value, stream)
        return bytearray(stream.getvalue())

    def loaded(self, kept: Any) -> Any:
        return None if kept is None else self.serializer.deserialize(BytesIO(kept))

    def schema(self) -> Schema:
        # The snapshot is that of the serializer in use. After a restore it may differ from the declared one:
        # `_between_serializers`.
        return {"serializer": describe_serializer(self.serializer)}


def codec_for(state: str, type_info: TypeInformation | None) -> Codec:
    """Return the codec for a declared type, or for no type."""
    match type_info:
        case None | PickledBytesTypeInfo():
            return PickledCodec(state, type_info)
        case SerializerTypeInfo():
            return SerializerCodec(state, type_info)
        case _:
            return ExactCodec(state, type_info) if EXACT.get() else TypedCodec(state, type_info)


class MapKeyCodec:
    """Convert the keys of map state and broadcast state to and from hashable, immutable values."""

    def __init__(self, state: str, type_info: TypeInformation | None) -> None:
        self.values = codec_for(state, type_info)
        self.lookup = self.stored if isinstance(self.values, SerializerCodec) else _itself
        """Return the form in which a key is looked up; it equals the kept key."""

    def stored(self, key: Any) -> Any:
        """Return the kept form of a key.

        Raises:
            StateError: The key does not fit the declared type, or cannot be the key of a map.
        """
        kept = self.values.stored(key)
        if type(kept) is not bytearray:  # hot up to here
            return kept
        if isinstance(self.values, SerializerCodec):
            return bytes(kept)
        copy = self.values.loaded(kept)
        try:
            hash(copy)
        except TypeError:
            raise StateError(
                f"state {self.values.state!r}: {preview(key)} cannot be the key of a map, because a "
                f"{type(key).__name__} is mutable; use a tuple or a frozen dataclass"
            ) from None
        return copy

    def as_bytes(self, kept: Any) -> bytes:
        """Encode a kept key for operator state."""
        return bytes(kept) if isinstance(self.values, SerializerCodec) else dumps(kept)

    def restored(self, data: bytearray) -> Any:
        """Decode what `as_bytes` returned."""
        return bytes(data) if isinstance(self.values, SerializerCodec) else pickle.loads(data)

    def loaded(self, kept: Any) -> Any:
        """Return the key; a new object if it is mutable."""
        if isinstance(self.values, SerializerCodec):
            return self.values.loaded(kept)
        return own(kept)


def _itself(key: Any) -> Any:
    return key
