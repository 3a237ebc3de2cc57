"""Keys of state as clients of the REST API write them: text in an address, or values of JSON in a body.

The declared type of the keys decides what a text means. Without a declared type, a text that is a Python literal stands
for the literal's value, and any other text stands for itself, as on the command line (`ekorn state get`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from ekorn.errors import QueryRefused, RecordTypeError, preview
from ekorn.types.basic_types import (
    BigDecimalTypeInfo,
    BooleanTypeInfo,
    DateTypeInfo,
    DoubleTypeInfo,
    IntegerTypeInfo,
    PickledBytesTypeInfo,
    StringTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from ekorn.types.composite_types import RowTypeInfo, TupleTypeInfo
from ekorn.types.row import make_row
from ekorn.types.type_information import TypeInformation

__all__ = ["key_of_json", "key_of_text"]

_LONGEST = 10_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_BOOLEANS = {"true": True, "false": False}


def key_of_text(text: str, key_type: TypeInformation | None) -> Any:
    """Return the key that a text stands for.

    >>> from ekorn.types.factory import Types
    >>> key_of_text("7", Types.STRING()), key_of_text("7", Types.LONG()), key_of_text("7", None)
    ('7', 7, 7)
    >>> key_of_text("('a', 1)", Types.TUPLE([Types.STRING(), Types.LONG()]))
    ('a', 1)

    Raises:
        QueryRefused: The text is no key of this type.
    """
    if len(text) > _LONGEST:
        raise QueryRefused(f"a key has {len(text)} characters; the maximum is {_LONGEST}")
    match key_type:
        case None | PickledBytesTypeInfo():
            return _literal(text)
        case TupleTypeInfo() | RowTypeInfo():
            return _checked(_typed(_literal(text), key_type), key_type)
        case _:
            return _checked(_typed(text, key_type), key_type)


def key_of_json(value: Any, key_type: TypeInformation | None) -> Any:
    """Return the key that a value of JSON stands for. A list is a tuple, as a key of a stream is.

    Raises:
        QueryRefused: The value is no key of this type.
    """
    if key_type is None or isinstance(key_type, PickledBytesTypeInfo):
        return _hashable(value)
    return _checked(_typed(value, key_type), key_type)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        # The last two are raised for text that is nested too deeply.
        return text


def _hashable(value: Any) -> Any:
    return tuple(_hashable(each) for each in value) if isinstance(value, list) else value


def _typed(given: Any, key_type: TypeInformation) -> Any:
    """Return a key of a type, given as text or as a value that a literal or JSON can express."""
    match key_type:
        case TupleTypeInfo():
            return tuple(_fields(given, key_type.get_field_types(), key_type))
        case RowTypeInfo():
            return make_row(_fields(given, key_type.get_field_types(), key_type), key_type.get_field_names())
    kinds, parse = _parser(key_type)
    if isinstance(given, str):
        try:
            return parse(given)
        except (ValueError, ArithmeticError):
            raise _misfit(given, key_type) from None
    if type(given) not in kinds:
        raise _misfit(given, key_type)
    return given


def _fields(given: Any, types: list[TypeInformation], whole: TypeInformation) -> list[Any]:
    if not isinstance(given, (tuple, list)) or len(given) != len(types):
        raise QueryRefused(
            f"{preview(given, 80)} is not a key of type {whole}: write {len(types)} fields, such as ('a', 1)"
        )
    return [_typed(value, each) for value, each in zip(given, types, strict=True)]


def _parser(key_type: TypeInformation) -> tuple[tuple[type, ...], Callable[[str], Any]]:
    """Return the classes of values of a type that need no parsing, and the parser of its text."""
    match key_type:
        case StringTypeInfo():
            return (str,), str
        case BooleanTypeInfo():
            return (bool,), _boolean
        case IntegerTypeInfo():
            return (int,), _integer
        case DoubleTypeInfo():
            return (int, float), float
        case BigDecimalTypeInfo():
            return (int, float), Decimal
        case DateTypeInfo():
            return (), date.fromisoformat
        case TimeTypeInfo():
            return (), time.fromisoformat
        case TimestampTypeInfo():
            return (), datetime.fromisoformat
    raise QueryRefused(f"keys of type {key_type} cannot be written as text: use QueryableStateClient")


def _boolean(text: str) -> bool:
    found = _BOOLEANS.get(text.lower())
    if found is None:
        raise ValueError(text)
    return found


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError(text)
    return int(text)


def _checked(key: Any, key_type: TypeInformation) -> Any:
    try:
        (fitted,) = key_type.conform([key])
    except RecordTypeError as error:
        raise QueryRefused(f"{preview(key, 80)} is not a key of type {key_type}: {error.reason}") from None
    return fitted


def _misfit(given: Any, key_type: TypeInformation) -> QueryRefused:
    return QueryRefused(f"{preview(given, 80)} is not a key of type {key_type}")
