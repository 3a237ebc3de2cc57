"""State and records are values: what a user's function changes afterwards must not change them.

Most data cannot be changed (numbers, text, tuples of them) and is kept and passed on as it is. Everything else
is kept as its pickle, in a `bytearray`: a bytearray of the user's own would itself be pickled, so one found in
a state table is always the pickle of a value. Built-in types only, because tables are written to checkpoints.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import io
import pickle
import types
import uuid
from typing import Any

import cloudpickle

IMMUTABLE: frozenset[type] = frozenset(
    {
        int,
        str,
        float,
        bool,
        bytes,
        type(None),
        complex,
        decimal.Decimal,
        fractions.Fraction,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        uuid.UUID,
        range,
        type,
        types.FunctionType,
        types.BuiltinFunctionType,
    }
)


def is_immutable(value: Any) -> bool:
    """True when nothing can change the value: a plain value, or a tuple or frozenset of such."""
    cls = type(value)
    if cls in IMMUTABLE:
        return True
    if cls is tuple or cls is frozenset:
        return all(type(v) in IMMUTABLE or is_immutable(v) for v in value)
    return isinstance(value, enum.Enum)


def own(value: Any) -> Any:
    """The value itself if it cannot change, else a copy that shares nothing changeable with it."""  # hot
    cls = type(value)
    if cls is tuple:
        for field in value:
            if type(field) not in IMMUTABLE:
                break
        else:
            return value
    elif cls in IMMUTABLE:
        return value
    elif cls is dict:
        for k, v in value.items():
            if type(v) not in IMMUTABLE or type(k) not in IMMUTABLE:
                break
        else:
            return value.copy()
    elif cls is list:
        for field in value:
            if type(field) not in IMMUTABLE:
                break
        else:
            return value.copy()
    return value if is_immutable(value) else pickle.loads(dumps(value))


def stored(value: Any) -> Any:
    """The form in which a state table keeps a value."""
    return value if is_immutable(value) else bytearray(dumps(value))


def loaded(kept: Any) -> Any:
    """The value that `stored` was given; a fresh object each time if it can change."""
    return pickle.loads(kept) if type(kept) is bytearray else kept


def dumps(value: Any) -> bytes:
    """Pickle a value of the user's; ten times faster than `pickle.dumps` for plain data.

    `fast` leaves out the memo, which such data does not need. A value that refers to itself does need it, and
    an instance of a class that cannot be imported (defined inside a function) needs cloudpickle.
    """
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    try:
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError):
        return bytes(cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    return buffer.getvalue()
