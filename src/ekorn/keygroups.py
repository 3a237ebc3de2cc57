"""Key -> key group -> subtask. The only module that hashes a key.

A key has a stable hash, whose bits a mixer spreads: keys that differ in a few bits, such as small numbers and multiples
of a number, reach all key groups evenly. docs/how_it_works.md has the figures.

The hash decides where restored state goes. It is the same in every process, on every machine and in every Python
version, so the built-in `hash` of a string, which is salted, is never used. Numbers are the exception: Python defines
one unsalted hash for all numeric types, and equal numbers of different types must be in one group.

The key group of a key is not its identity. Keys that compare equal share a group, but `1`, `1.0` and `True` are three
keys, as in Flink. `state_key` tells them apart.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import struct
import uuid
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, NewType

from ekorn.errors import InvalidKeyError, preview
from ekorn.types.row import Row, make_row

KeyGroup = NewType("KeyGroup", int)

MAX_PARALLELISM = 1 << 15
_MASK = (1 << 64) - 1
_MULTIPLIER = 0xD6E8FEB86659FD93  # odd; both steps of the mixer use it
_NAN = 0x7FF8000000000000  # the hash of every NaN: the bits of the usual one
_NUMERIC_HASH_WIDTH = (1 << 61) - 1  # the modulus of Python's numeric hash on 64-bit platforms


def default_max_parallelism(parallelism: int) -> int:
    """Return the maximum parallelism of an operator that sets none.

    Flink: the next power of two from 1.5 times the parallelism on, between 128 and 32768.

    >>> [default_max_parallelism(p) for p in (1, 85, 86, 171, 1000, 32768)]
    [128, 128, 256, 256, 2048, 32768]
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << max(wanted - 1, 0).bit_length(), 128), MAX_PARALLELISM)


def key_group(key: Any, max_parallelism: int) -> KeyGroup:
    """Return the key group of a key.

    Raises:
        InvalidKeyError: the key is None, or has no hash that is stable between processes.
    """
    return KeyGroup(mixed(stable_hash(key)) % max_parallelism)


def mixed(number: int) -> int:
    """Return 32 bits, each of which depends on every bit of a number of up to 64 bits.

    Two rounds of xor-shift and multiplication modulo 2**64: NumPy computes the same on arrays of unsigned integers.
    """
    number = (number ^ number >> 32) * _MULTIPLIER & _MASK
    return ((number ^ number >> 32) * _MULTIPLIER & _MASK) >> 32


def key_group_of_text(utf8: bytes, max_parallelism: int) -> int:
    """Return the key group of a str, given as UTF-8: a fast path for callers that have the bytes."""
    return mixed(zlib.crc32(utf8)) % max_parallelism


def key_groups_of_texts(keys: list[str], max_parallelism: int) -> list[int]:
    """Return the key groups of many keys of type str: a fast path."""
    try:
        hashes = list(map(zlib.crc32, map(str.encode, keys)))
    except UnicodeEncodeError:  # half of a pair of surrogates
        hashes = list(map(_hash_text, keys))
    return _groups(hashes, max_parallelism)


def key_group_of_int(key: int, max_parallelism: int) -> int:
    """Return the key group of an int: a fast path."""
    return mixed(hash(key) % _NUMERIC_HASH_WIDTH) % max_parallelism


def key_groups_of(keys: list[Any], max_parallelism: int) -> list[int]:
    """Return the key groups of many keys as state stores them (`state_key`); fast if all are of type str or int.

    >>> key_groups_of([1, "a", 2], 128) == [key_group(key, 128) for key in (1, "a", 2)]
    True
    """
    kinds = set(map(type, keys))
    if kinds == {str}:
        return key_groups_of_texts(keys, max_parallelism)
    if kinds == {int}:
        return _groups([hash(key) % _NUMERIC_HASH_WIDTH for key in keys], max_parallelism)
    return [key_group(user_key(key), max_parallelism) for key in keys]


def _groups(hashes: list[int], max_parallelism: int) -> list[int]:  # hot: `mixed`, written out
    once = [(number ^ number >> 32) * _MULTIPLIER & _MASK for number in hashes]
    return [((number ^ number >> 32) * _MULTIPLIER >> 32 & 0xFFFFFFFF) % max_parallelism for number in once]


def subtask_of(group: int, max_parallelism: int, parallelism: int) -> int:
    """Return the subtask that owns a key group."""
    return group * parallelism // max_parallelism


class KeyGroupRange(NamedTuple):
    """A run of key groups, both ends inclusive."""

    first: int
    last: int

    def covers(self, other: KeyGroupRange) -> bool:
        """Return whether the other range lies within this one."""
        return self.first <= other.first and other.last <= self.last

    def overlap(self, other: KeyGroupRange) -> KeyGroupRange:
        """Return the key groups that both ranges have; `last` is less than `first` if there are none."""
        return KeyGroupRange(max(self.first, other.first), min(self.last, other.last))


def key_group_range(max_parallelism: int, parallelism: int, index: int) -> KeyGroupRange:
    """Return the key groups of a subtask; the ranges of all subtasks partition the key groups.

    >>> [tuple(key_group_range(10, 3, i)) for i in range(3)]
    [(0, 3), (4, 6), (7, 9)]
    """
    first = (index * max_parallelism + parallelism - 1) // parallelism
    last = ((index + 1) * max_parallelism - 1) // parallelism
    return KeyGroupRange(first, last)


def stable_hash(key: Any) -> int:
    """Return a hash of a key that is the same in all processes: at most 64 bits, not mixed yet."""
    hasher = _HASHERS.get(type(key))
    return hasher(key) if hasher is not None else _hash_other(key)


def _hash_text(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def _hash_number(key: Any) -> int:
    if key != key:  # Python hashes a NaN by its address
        return _NAN
    return hash(key) % _NUMERIC_HASH_WIDTH


def _hash_decimal(key: decimal.Decimal) -> int:
    return _NAN if key.is_nan() else _hash_number(key)  # a signaling NaN can be neither compared nor hashed


def _hash_tuple(key: tuple[Any, ...]) -> int:
    return zlib.crc32(struct.pack(f">{len(key)}Q", *(0 if k is None else stable_hash(k) for k in key)), 1)


def _hash_list(key: list[Any]) -> int:
    return zlib.crc32(struct.pack(f">{len(key)}Q", *(0 if k is None else stable_hash(k) for k in key)), 2)


def _hash_frozenset(key: frozenset[Any]) -> int:
    return _hash_tuple(tuple(sorted(0 if k is None else stable_hash(k) for k in key)))


def _hash_datetime(key: datetime.datetime) -> int:
    if key.tzinfo is not None:  # equal instants in different zones are equal
        key = key.astimezone(datetime.UTC).replace(tzinfo=None)
    return _hash_text(key.isoformat())


def _hash_time(key: datetime.time) -> int:
    offset = key.utcoffset()
    if offset is None:
        return _hash_text(key.isoformat())
    since_midnight = datetime.timedelta(
        hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
    )
    return _hash_number((since_midnight - offset) // datetime.timedelta(microseconds=1))


_HASHERS: dict[type, Callable[[Any], int]] = {
    str: _hash_text,
    int: _hash_number,
    bool: _hash_number,
    float: _hash_number,
    complex: _hash_number,
    decimal.Decimal: _hash_decimal,
    fractions.Fraction: _hash_number,
    bytes: zlib.crc32,
    tuple: _hash_tuple,
    list: _hash_list,  # PyFlink: keys are compared by their bytes, so a list is a key
    frozenset: _hash_frozenset,
    uuid.UUID: lambda key: _hash_number(key.int),
    datetime.date: lambda key: _hash_text(key.isoformat()),
    datetime.datetime: _hash_datetime,
    datetime.time: _hash_time,
    datetime.timedelta: lambda key: _hash_number(key // datetime.timedelta(microseconds=1)),
    Row: lambda key: _hash_tuple(tuple(key)),
}


_BY_IDENTITY: Any = object.__hash__


def _hash_other(key: Any) -> int:
    """Hash a key of any other type, or refuse it with the reason."""
    cls = type(key)
    if key is None:
        raise InvalidKeyError(
            "", repr(key), "None is not a key; filter such records out or give them a key of their own"
        )
    if isinstance(key, enum.Enum) and not isinstance(key, (str, int, float, bytes, tuple)):
        return _hash_text(f"{cls.__qualname__}.{key.name}")
    if cls.__hash__ is None:
        raise InvalidKeyError(
            "", preview(key), f"a {cls.__name__} is mutable, so it has no stable hash; use a tuple or a str"
        )
    if cls.__hash__ is _BY_IDENTITY:
        raise InvalidKeyError(
            "",
            preview(key),
            f"{cls.__name__} does not define __eq__ and __hash__, so two equal records would be two keys; "
            f"use a frozen dataclass, a tuple or a str",
        )
    if dataclasses.is_dataclass(key):
        fields = tuple(getattr(key, f.name) for f in dataclasses.fields(key) if f.compare)
        return _hash_tuple((cls.__qualname__, *fields))
    for base in (tuple, str, bytes, int, float, frozenset, datetime.datetime, datetime.date):
        if isinstance(key, base):  # a named tuple, or a subclass of str or int
            return _HASHERS[base](key)
    stable = getattr(key, "__stable_hash__", None)
    if stable is not None:
        return int(stable()) & _MASK
    raise InvalidKeyError(
        "",
        preview(key),
        f"the hash of {cls.__name__} may differ in another process; "
        f"use a frozen dataclass, a tuple or a str, or give the class a method __stable_hash__() -> int",
    )


# `state_key` wraps a key in a tuple that starts with this marker when equal keys of other types may exist. A user's
# tuple that starts with the marker is wrapped too, so a wrapped key is never mistaken for a plain one.
_TYPED = b"\x00typed"
_LIST = NotImplemented  # marks a tuple that stands for a list; it is not a valid key itself
_PLAIN = frozenset({str, int, bytes, type(None)})


def state_key(key: Any) -> Any:
    """Return the key as state tables hold it: the key itself, or wrapped with its types if `==` ignores types.

    >>> state_key("a"), state_key(1), state_key(("a", 1))
    ('a', 1, ('a', 1))
    >>> state_key(1.0) == state_key(1), state_key(True) == state_key(1)
    (False, False)
    """
    cls = type(key)
    if cls in _PLAIN:
        return key
    if cls is tuple:
        for field in key:
            if type(field) not in _PLAIN or field == _TYPED:
                return (_TYPED, *_spelled(key))
        return key
    return (_TYPED, *_spelled(key))


# In the signatures of keys that are stored in another form, or copied because the user may change them.
_REPLACED = ("nan", "[", "Row(")


def user_key(stored: Any) -> Any:
    """Return the key that `state_key` was given."""
    if type(stored) is tuple and stored and type(stored[0]) is bytes and stored[0] == _TYPED:
        _, signature, key = stored
        return _unspelled(key) if any(mark in signature for mark in _REPLACED) else key
    return stored


def key_fields(key: Any) -> tuple[Any, ...] | None:
    """Return the fields that make two keys of one composite type equal; None for a key that is not composite.

    Composite are rows, tuples, named tuples, dataclasses and frozen sets, whose elements are in no order.
    """
    if isinstance(key, (tuple, Row)):
        return tuple(key)
    if isinstance(key, enum.Enum):
        return None
    if isinstance(key, frozenset):
        return tuple(key)
    if dataclasses.is_dataclass(key):
        return tuple(getattr(key, field.name) for field in dataclasses.fields(key) if field.compare)
    return None


def _spelled(key: Any) -> tuple[str, Any]:
    """Return a signature that tells a key from equal keys of other types, and the key in a form with a sound `==`.

    One rule holds for plain and composite keys. Flink: 0.0 and -0.0 are two keys, and NaN is one key. Ellipsis, which
    is not a valid key, stands for NaN, and the class Decimal for the NaN of Decimal. Fields are told apart by their
    types too, except those of a dataclass, whose own `==` decides.
    """
    cls = type(key)
    if cls is float:
        return ("nan", ...) if key != key else (repr(key) if key == 0.0 else "float", key)
    if cls is decimal.Decimal and key.is_nan():
        return "nan", decimal.Decimal
    if cls is complex and key != key:
        parts = [_spelled(key.real), _spelled(key.imag)]
        return "complex nan", (complex, *[part for _, part in parts])
    if cls is list:
        parts = [_spelled(field) for field in key]
        return f"[{','.join(signature for signature, _ in parts)}]", (_LIST, *[field for _, field in parts])
    fields = key_fields(key)
    if fields is None:
        return cls.__name__, key
    parts = [_spelled(field) for field in fields]
    composed = _composed(key, [field for _, field in parts])
    signatures = [signature for signature, _ in parts]
    if isinstance(key, frozenset):
        signatures.sort()
    elif dataclasses.is_dataclass(key):  # its own `==` decides about everything but NaN
        signatures = [] if cls.__dataclass_params__.frozen and composed == key else ["nan"]
    return f"{'' if cls is tuple else cls.__name__}({','.join(signatures)})", composed


def _unspelled(key: Any) -> Any:
    if key is ...:
        return float("nan")
    if key is decimal.Decimal:
        return decimal.Decimal("NaN")
    if type(key) is tuple and key and key[0] is _LIST:
        return [_unspelled(field) for field in key[1:]]
    if type(key) is tuple and key and key[0] is complex:
        return complex(*[_unspelled(field) for field in key[1:]])
    fields = key_fields(key)
    return key if fields is None else _composed(key, [_unspelled(field) for field in fields])


def _composed(key: Any, fields: list[Any]) -> Any:
    """Return a composite key with other fields. Rows and mutable dataclasses are copied: the user may change them."""
    cls = type(key)
    if cls is tuple:
        return tuple(fields)
    if cls is Row:
        return make_row(fields, key._names, key.get_row_kind())
    if isinstance(key, frozenset):
        return cls(fields)
    if isinstance(key, tuple):
        return tuple.__new__(cls, fields)
    own = copy.copy(key)
    for field, value in zip((each for each in dataclasses.fields(key) if each.compare), fields, strict=True):
        object.__setattr__(own, field.name, value)  # also of a frozen dataclass, which is not shared yet
    return own
