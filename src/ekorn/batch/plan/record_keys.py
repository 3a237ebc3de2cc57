"""Keys of records: fields by position, name or path, or a selector function.

A task reads the keys of a chunk of records at once. For fields of plain tuples the loop then runs in C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

from ekorn.functions.record_fields import read_field
from ekorn.functions.record_functions import KeySelector
from ekorn.types.row import Row
from ekorn.types.type_information import all_are

__all__ = ["FieldKeys", "FieldPath", "Keys", "SelectorKeys", "read_path"]

FieldPath = tuple[int | str, ...]
"""The way to a field: `(0,)`, `("user", "address", "zip")`; the empty path is the whole record."""


@dataclass(frozen=True)
class FieldKeys:
    """The key is one field, or the tuple of several fields."""

    paths: tuple[FieldPath, ...]

    def of(self, chunk: Sequence[Any]) -> Iterable[Any]:  # hot
        """Return the keys of some records, in their order."""
        paths = self.paths
        if paths == ((),):
            return chunk
        if all(len(path) == 1 and type(path[0]) is int for path in paths) and all_are(tuple, chunk):
            try:
                return list(map(itemgetter(*[path[0] for path in paths]), chunk))
            except IndexError:
                pass  # a record is too short; the loop below names it
        keys = []
        for record in chunk:
            fields = tuple([read_path(record, path) for path in paths])
            keys.append(fields[0] if len(fields) == 1 else fields)
        return keys

    def __str__(self) -> str:
        return ", ".join("*" if not path else ".".join(map(str, path)) for path in self.paths)


@dataclass(frozen=True, eq=False)
class SelectorKeys:
    """The key is what a function returns. Two selections are equal if their function is the same object."""

    function: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SelectorKeys) and other.function is self.function

    def __hash__(self) -> int:
        return id(self.function)

    def of(self, chunk: Sequence[Any]) -> Iterable[Any]:  # hot
        """Return the keys of some records, in their order."""
        select = selecting(self.function)
        keys = []
        for record in chunk:
            keys.append(select(record))
        return keys

    def __str__(self) -> str:
        return "a key selector"


Keys = FieldKeys | SelectorKeys


def selecting(function: Any) -> Callable[[Any], Any]:
    """Return the callable of a key selector."""
    if isinstance(function, (attrgetter, itemgetter)):
        return function
    return function.get_key if isinstance(function, KeySelector) else function


def read_path(record: Any, path: FieldPath) -> Any:
    """Return a field of a record; the empty path is the record itself.

    >>> read_path(("a", {"zip": 5}), (1, "zip"))
    5
    """
    value = record
    for field in path:
        if type(field) is int and not isinstance(value, (tuple, list, Row)):
            # Flink: positions are for tuples only. A str would give one of its characters.
            raise TypeError(f"a {type(value).__name__} has no positions, so field {field} cannot be a key")
        value = read_field(value, field)
    return value
