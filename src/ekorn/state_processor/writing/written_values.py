"""Values of columns as the values of a program: by the type that a savepoint describes, or by the values it holds.

A write that is based on a savepoint must make values like those that the savepoint has. `to_program` checks that by the
declared type and by the first entries (`sampled_entries`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ekorn.errors import ConfigurationError
from ekorn.state.declared import Described
from ekorn.state.evolution.pickled_classes import ClassFields
from ekorn.state.evolution.type_descriptions import PICKLED, Schema, spell
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.columns import declared_column, fitted
from ekorn.state_processor.reading.entries import Values, address_of, pieces_of
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowField, RowType
from ekorn.types.row import Row, make_row

__all__ = ["SampledEntry", "checked_keys", "from_column", "sampled_entries", "to_program"]

_CLASSES = ("class", "avro", "serializer", "other")


def to_program(
    what: str, column: DataType, schema: Schema, classes: ClassFields, values: Sequence[Any], *, keys: bool = False
) -> Schema:
    """Return the description by which `from_column` makes values of the program, after checking that it does.

    Args:
        what: The column, for messages.
        column: Its type.
        schema: The type of the values, as a savepoint describes it.
        classes: The classes of the values.
        values: Some values that the savepoint holds.
        keys: Whether the values are keys, of which a struct is a tuple.

    Raises:
        ConfigurationError: Values of the column would be other values than those that were read from it.
    """
    declared = None if _has_classes(schema, classes) else declared_column(schema, classes)
    if declared is not None and not all(_fits(value, declared) for value in values):
        declared = None  # a runtime state keeps more than the program declared, such as times for an evictor
    if declared is not None:
        if not _is_same_type(declared, column):
            raise ConfigurationError(
                f"the column {what} is {column}, and the state is declared as {spell(schema)}: cast the column to "
                f"{declared}"
            )
        return schema
    for value in values:
        try:
            comes_back = is_same(from_column(fitted(value, column), PICKLED), value)
        except (ValueError, ArithmeticError):
            comes_back = False
        if not comes_back:
            raise ConfigurationError(
                f"the column {what} is {column}, from which {_shown(value)}, {'a key' if keys else 'a value'} of the "
                "savepoint, cannot be restored: read and write the state with storedForm"
            )
    return PICKLED


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fits(value: Any, column: DataType) -> bool:
    try:
        fitted(value, column)
    except (ValueError, ArithmeticError):
        return False
    return not isinstance(column, dt.VarCharType) or value is None or isinstance(value, str)


def _has_classes(schema: Schema, classes: ClassFields) -> bool:
    """Return whether a type contains instances of classes. A column does not say how to make such instances."""
    match schema:
        case str():
            return schema in classes
        case {"row": fields}:
            return any(_has_classes(each, classes) for _, each in fields)
        case {"tuple": fields} | {"map": fields}:
            return any(_has_classes(each, classes) for each in fields)
        case dict():
            return any(word in _CLASSES or _has_classes(each, classes) for word, each in schema.items())
        case _:
            return False


def _is_same_type(one: DataType, other: DataType) -> bool:
    """Return whether two types are the same but for nulls."""
    return _nullable(one) == _nullable(other)


def _nullable(data_type: DataType) -> DataType:
    match data_type:
        case dt.ArrayType():
            return dt.ArrayType(_nullable(data_type.element_type))
        case dt.MapType():
            return dt.MapType(_nullable(data_type.key_type), _nullable(data_type.value_type))
        case RowType():
            return RowType([RowField(field.name, _nullable(field.data_type)) for field in data_type])
        case _:
            return data_type.nullable()


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same, of the same types. `1` is not `1.0`, and a NaN is itself."""
    if type(one) is not type(other):
        return False
    match one:
        case list() | tuple():
            return len(one) == len(other) and all(map(is_same, one, other))
        case dict():
            return len(one) == len(other) and all(map(is_same, one.items(), other.items()))
        case float():
            return repr(one) == repr(other)
        case _:
            return bool(one == other)


def from_column(value: Any, schema: Schema) -> Any:
    """Return the value of the program. Without a declared type a struct is a tuple.

    >>> from_column([1, ["a"]], {"tuple": ["LONG", {"list": "STRING"}]})
    (1, ['a'])
    """
    if value is None:
        return None
    match schema:
        case {"row": fields}:
            made = [from_column(each, of) for each, (_, of) in zip(value, fields, strict=True)]
            return make_row(made, [name for name, _ in fields])
        case {"tuple": fields}:
            return tuple([from_column(each, of) for each, of in zip(value, fields, strict=True)])
        case {"list": each} | {"array": each}:
            return [from_column(one, each) for one in value]
        case {"primitive-array": each} if each != "BYTE":
            return [from_column(one, each) for one in value]
        case {"map": [of_key, of_value]}:
            return {from_column(key, of_key): from_column(one, of_value) for key, one in value.items()}
        case {"optional": each}:
            return from_column(value, each)
        case "BIG_INT":
            return int(value)
        case _:
            return _undeclared(value)


def _undeclared(value: Any) -> Any:
    match value:
        case Row() | tuple():
            return tuple([_undeclared(each) for each in value])
        case list():
            return [_undeclared(each) for each in value]
        case dict():
            return {_undeclared(key): _undeclared(each) for key, each in value.items()}
        case _:
            return value


# ------------------------------------------------------------------------------- the savepoint that a write is based on


_SAMPLED_ENTRIES = 1000


class SampledEntry(NamedTuple):
    """An entry of the savepoint that a write is based on."""

    key: Any
    kept: Any
    value: Any


def sampled_entries(stored: StoredOperator, info: StateInfo) -> list[SampledEntry]:
    """Return the first entries of a state."""
    values = Values(info)
    return [
        SampledEntry(key, kept, values.load(kept)) for key, kept in islice(_entries(stored, info), _SAMPLED_ENTRIES)
    ]


def _entries(stored: StoredOperator, info: StateInfo) -> Iterator[tuple[Any, Any]]:
    for part in stored.parts():
        for tables in pieces_of(stored, part):
            if info.name in tables:
                for at, kept in tables[info.name].entries.items():
                    yield address_of(info, at).key, kept


def checked_keys(stored: StoredOperator, infos: Sequence[StateInfo], types: Mapping[str, DataType]) -> Schema:
    """Return the description of the keys, after checking that the column makes keys of the operator."""
    described = [Described.decode(info.schema, info.name) for info in infos]
    declared = next((each for each in described if each.key != PICKLED), Described())
    keys = [key for info in infos[:1] for key, _ in islice(_entries(stored, info), _SAMPLED_ENTRIES)]
    return to_program("'key'", types["key"], declared.key, declared.key_classes, keys, keys=True)
