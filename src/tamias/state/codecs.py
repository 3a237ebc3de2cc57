"""How the values of one state are kept: its declared type, checked when a value is written, or its serializer.

The kept form is what tables and files hold: a value of a built-in type that cannot change is itself, anything else is
a `bytearray` with its pickle, or with what its serializer wrote. In this form a value goes from backend to backend.

A backend asks for a `Declaration` of each descriptor and uses its codecs instead of `wire.values`:

    declared = declare(descriptor, kind, self.key_type)   # in keyed.py
    kept = declared.value.stored(value)                   # when a user's value is written
    value = declared.value.loaded(kept)                   # when it is read
    key = declared.map_key.stored(user_key)               # likewise, for keys of map state
    infos() -> declared.saved_as(some_key)                # what a checkpoint says of the state
    migrate(saved_info, declared, operator)               # in restore_checks.py: when a restored state is declared
"""

from __future__ import annotations

import pickle
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any

from tamias.errors import RecordTypeError, StateError, preview
from tamias.state.evolution.pickled_classes import ClassFields, Noting
from tamias.state.evolution.type_descriptions import Schema, describe, describe_serializer
from tamias.types.basic_types import BasicTypeInfo, IntegerTypeInfo, PickledBytesTypeInfo
from tamias.types.by_value import IMMUTABLE, dumps, own
from tamias.types.composite_types import RowTypeInfo, TupleTypeInfo
from tamias.types.row import Row
from tamias.types.serializer import SerializerTypeInfo
from tamias.types.type_information import TypeInformation

PLAIN: frozenset[type] = IMMUTABLE - {type, types.FunctionType, types.BuiltinFunctionType}
"""Types whose values are kept as they are. Classes and functions are not: a checkpoint would hold them unnoticed."""


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
    """How values of one type are kept in one state."""

    as_is: frozenset[type] = frozenset()
    """Classes whose values are their own kept form; saves the call of `stored`."""

    def __init__(self, state: str, type_info: TypeInformation | None) -> None:
        self.state = state
        self.type_info = type_info

    @abstractmethod
    def stored(self, value: Any) -> Any:
        """The form in which a value is kept; nobody can change it.

        Raises:
            StateError: the value does not fit the declared type.
        """

    @abstractmethod
    def loaded(self, kept: Any) -> Any:
        """The value; a fresh object each time if it can change."""

    def schema(self) -> Schema:
        """What a checkpoint says of the type."""
        return describe(self.type_info)

    def classes(self) -> ClassFields:
        """What a checkpoint says of the classes that values are made of."""
        return {}

    def carry(self, classes: ClassFields) -> None:  # noqa: B027
        """Restored values are made of these."""


class PickledCodec(Codec):
    """Any value: the codec of state without a declared type, or whose values are held against it elsewhere."""

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
    """Values of a declared type.

    Flink: what does not fit fails the job. What fits after a conversion is given back as it was given, which is what
    PyFlink does until it forgets a value it has cached: 1 in a state of DOUBLE stays 1.
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
        if value is None:  # a map's value; other states do not get here with None
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


def _never(value: Any) -> bool:
    return False


_FITTING: dict[str, frozenset[type]] = {
    "String": frozenset({str}),
    "Boolean": frozenset({bool}),
    "Double": frozenset({float}),
    "BigInteger": frozenset({int}),
}


def quick_check(type_info: TypeInformation) -> Callable[[Any], bool] | None:
    """Whether a value fits its type as it is, compiled to one expression; None for types without one.

    `conform` is made for runs of records; for one value of the commonest types this takes a tenth of its time.

    >>> from tamias.common import Types
    >>> fits = quick_check(Types.TUPLE([Types.STRING(), Types.INT()]))
    >>> fits(("a", 1)), fits(("a", 2**40)), fits(["a", 1])
    (True, False, False)
    """
    condition = _condition(type_info, "v")
    return None if condition is None else _compiled(condition)


@lru_cache(maxsize=1000)
def _compiled(condition: str) -> Callable[[Any], bool]:
    # Made of the names and numbers in `_condition` only, and of the names of a row's fields, which are quoted.
    check: Callable[[Any], bool] = eval(f"lambda v: {condition}", {"Row": Row})
    return check


def _condition(type_info: TypeInformation, value: str) -> str | None:
    """An expression that is true for values that fit; some that fit after a conversion may be left to `conform`."""
    match type_info:
        case IntegerTypeInfo() if str(type_info) != "BigInteger":
            low, high = type_info.bounds()
            return f"{value}.__class__ is int and {low} <= {value} <= {high}"
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
    """Whether values of a type, as the quick check lets them pass, cannot change."""
    if isinstance(type_info, TupleTypeInfo):
        return all(map(_is_of_plain, type_info.get_field_types()))
    return isinstance(type_info, BasicTypeInfo)


class SerializerCodec(Codec):
    """Values that a serializer of the program's own writes."""

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
        # Of the serializer in use, which after a restore may be another than the declared one: `_between_serializers`.
        return {"serializer": describe_serializer(self.serializer)}


def codec_for(state: str, type_info: TypeInformation | None) -> Codec:
    """The codec of a declared type, or of none."""
    match type_info:
        case None | PickledBytesTypeInfo():
            return PickledCodec(state, type_info)
        case SerializerTypeInfo():
            return SerializerCodec(state, type_info)
        case _:
            return TypedCodec(state, type_info)


class MapKeyCodec:
    """How the keys of map state and broadcast state are kept: as hashable values that nobody can change."""

    def __init__(self, state: str, type_info: TypeInformation | None) -> None:
        self.values = codec_for(state, type_info)
        self.lookup = self.stored if isinstance(self.values, SerializerCodec) else _itself
        """The form in which a key is looked for: `==` to the kept one."""

    def stored(self, key: Any) -> Any:
        """The kept form of a key.

        Raises:
            StateError: the key does not fit the declared type, or cannot be the key of a map.
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
                f"{type(key).__name__} can change; use a tuple or a frozen dataclass"
            ) from None
        return copy

    def as_bytes(self, kept: Any) -> bytes:
        """A kept key as operator state is written."""
        return bytes(kept) if isinstance(self.values, SerializerCodec) else dumps(kept)

    def restored(self, data: bytearray) -> Any:
        """The kept key of such bytes."""
        return bytes(data) if isinstance(self.values, SerializerCodec) else pickle.loads(data)

    def loaded(self, kept: Any) -> Any:
        """The key; a fresh object if it can change."""
        if isinstance(self.values, SerializerCodec):
            return self.values.loaded(kept)
        return own(kept)


def _itself(key: Any) -> Any:
    return key
