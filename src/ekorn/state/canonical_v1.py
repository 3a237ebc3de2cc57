"""Version 1 of the canonical format of keyed state: still read, and no longer written.

In this version the whole table of a chunk is one pickle: the name and kind of the state beside the user's keys. It is
read by an unpickler that finds a short list of types and the classes of the program's keys. Nothing else of Python's
library is found, so a forged table cannot name `os.system`. The layout is in docs/formats/heap-state.md.
"""

from __future__ import annotations

import enum
import io
import pickle
import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ekorn.errors import CorruptFileError, preview
from ekorn.state.evolution.pickled_classes import loads

_LENGTH = struct.Struct("<I")

_OF_PYTHON = {
    "builtins": ("bytearray", "complex", "frozenset", "object", "range", "set"),
    "copyreg": ("__newobj__", "_reconstructor"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "ipaddress": ("IPv4Address", "IPv6Address"),
    "pathlib": ("PurePosixPath", "PureWindowsPath"),
    "uuid": ("SafeUUID", "UUID"),
    "zoneinfo": ("ZoneInfo._unpickle",),
}
"""The globals of Python's library in the pickles of keys, and of values that a table keeps as they are."""

_OF_EKORN = frozenset({"ekorn.common.time", "ekorn.common.types"})  # under which rows and durations are pickled
_CLOSED = frozenset({*sys.stdlib_module_names, "cloudpickle", "py4j", "pyspark", "ekorn"})


class Chunk(NamedTuple):
    """A part of one table's entries in a file."""

    name: str
    kind: str
    keys: list[Any]
    values: list[Any]
    gone: list[Any]


def decode_v1(payload: bytes, where: str) -> Iterator[Chunk]:
    """Yield the chunks of a payload in their order; `where` names the file in errors.

    Raises:
        CorruptFileError: The payload is not in this format, or names something that no key is made of.
    """
    position = 0
    while position < len(payload):
        if position + _LENGTH.size > len(payload):
            raise CorruptFileError(where, f"{len(payload) - position} bytes after the last chunk", "whole chunks")
        (length,) = _LENGTH.unpack_from(payload, position)
        position += _LENGTH.size
        if position + length > len(payload):
            raise CorruptFileError(where, f"a chunk of {length} bytes at {position} runs past the end", "whole chunks")
        chunk = loads(payload[position : position + length], where, lambda data: _Unpickler(data, where).load())
        if not _is_chunk(chunk):
            raise CorruptFileError(where, f"{preview(chunk)} at {position}", "name, kind, keys, values and keys gone")
        yield Chunk(*chunk)
        position += length


def _is_chunk(found: Any) -> bool:
    """Return whether an unpickled value has the shape of a chunk.

    The checksum proves only that the bytes were written like this, not that ekorn wrote them.
    """
    if type(found) is not tuple or list(map(type, found)) != [str, str, list, list, list]:
        return False
    return len(found[2]) == len(found[3])


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, where: str) -> None:
        super().__init__(io.BytesIO(data))
        self._where = where

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _member
        if name in _OF_PYTHON.get(module, ()):
            return super().find_class(module, name)
        if _is_open(module):
            found = super().find_class(module, name)
            # A module of the program has more names than its own: those that it imported, such as `os`. A class may
            # be found under an old name, which is an alias of the class that replaced it.
            home, own_name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
            if isinstance(home, str) and (_is_open(home) or own_name in _OF_PYTHON.get(home, ())):
                return found
        raise CorruptFileError(
            self._where,
            f"a table that names {module}.{name}",
            "a table of built-in types and keys of the program's own classes",
        )


def _is_open(module: str) -> bool:
    return module in _OF_EKORN or module.partition(".")[0] not in _CLOSED


def _member(kind: Any, name: str) -> Any:
    """Take the place of `getattr`, by which some versions of Python pickle the members of an enum."""
    if not (isinstance(kind, enum.EnumMeta) and name in kind.__members__):
        raise pickle.UnpicklingError(f"{name!r} is not a member of an enum")
    return kind[name]
