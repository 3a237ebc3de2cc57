"""The partitions of resident tables, one class per kind of table.

A part of a write is a pickled pair: keys, and elements of the same number; for a bag, a pickled list of elements.
Elements are kept as objects where they are looked up, and pickled where they are only passed on.
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from ekorn.slot.spool import Spool, StoredMessage
from ekorn.slot_protocol.table_messages import TableKind
from ekorn.types.by_value import dumps

ELEMENTS_PER_PART = 1000


class Write:
    """What one task wrote to a partition, before it takes effect."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._messages: list[StoredMessage] = []

    def add(self, part: bytes) -> None:
        self._messages.append(self._spool.add(part))

    def parts(self) -> Iterator[bytes]:
        return (message.read() for message in self._messages)

    def part(self, number: int) -> bytes:
        return self._messages[number].read() if number < len(self._messages) else b""

    def close(self) -> None:
        self._spool.close()
        self._messages = []


class Partition(Protocol):
    """One partition of a table, as the last commit left it."""

    def apply(self, write: Write) -> None:
        """Let a write take effect. The partition owns the write from now on."""

    def look_up(self, keys: list[Hashable]) -> list[Sequence[Any]]:
        """Return the elements of each key."""

    def part(self, number: int) -> bytes:
        """Return one part of the elements, pickled; empty after the last."""

    def close(self) -> None:
        """Release memory and disk."""


class SolutionPartition:
    """The last element of each key: a partition of the solution set."""

    def __init__(self) -> None:
        self._elements: dict[Hashable, Any] = {}
        self._read: Iterator[Any] | None = None
        self._next = 0

    def apply(self, write: Write) -> None:
        self._read = None
        for part in write.parts():
            keys, elements = pickle.loads(part)
            self._elements.update(zip(keys, elements, strict=True))
        write.close()

    def look_up(self, keys: list[Hashable]) -> list[Sequence[Any]]:
        elements = self._elements
        return [(elements[key],) if key in elements else () for key in keys]

    def part(self, number: int) -> bytes:
        if self._read is None or number != self._next:  # another task reads from another place
            self._read = islice(self._elements.values(), number * ELEMENTS_PER_PART, None)
        self._next = number + 1
        found = list(islice(self._read, ELEMENTS_PER_PART))
        return dumps(found) if found else b""

    def close(self) -> None:
        self._elements = {}


class IndexPartition:
    """All elements of each key: a partition of a constant input that the supersteps join by key."""

    def __init__(self) -> None:
        self._elements: dict[Hashable, list[Any]] = {}

    def apply(self, write: Write) -> None:
        elements_of = self._elements
        for part in write.parts():
            for key, element in zip(*pickle.loads(part), strict=True):
                found = elements_of.get(key)
                if found is None:
                    elements_of[key] = [element]
                else:
                    found.append(element)
        write.close()

    def look_up(self, keys: list[Hashable]) -> list[Sequence[Any]]:
        get = self._elements.get
        return [get(key, ()) for key in keys]

    def part(self, number: int) -> bytes:
        raise TypeError("an index is only looked up by key")

    def close(self) -> None:
        self._elements = {}


class BagPartition:
    """Elements without keys: a partition of the work set. It is passed on as it was written."""

    def __init__(self) -> None:
        self._write: Write | None = None

    def apply(self, write: Write) -> None:
        self.close()
        self._write = write

    def look_up(self, keys: list[Hashable]) -> list[Sequence[Any]]:
        raise TypeError("a bag has no keys")

    def part(self, number: int) -> bytes:
        return b"" if self._write is None else self._write.part(number)

    def close(self) -> None:
        if self._write is not None:
            self._write.close()
            self._write = None


def new_partition(kind: TableKind) -> Partition:
    """Make an empty partition of a table."""
    match kind:
        case TableKind.SOLUTION:
            return SolutionPartition()
        case TableKind.INDEX:
            return IndexPartition()
        case TableKind.BAG:
            return BagPartition()
