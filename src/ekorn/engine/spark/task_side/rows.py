"""The rows that Spark's shuffle carries: an address and some bytes. Spark sees bytes alone.

PySpark's own `partitionBy` gathers rows in lists, pickles each list as one object, and fails above 2 GiB. A blob is
some megabytes already, so each row travels alone, and a Python worker has one row in memory at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

DRIVER = -1  # the level of rows for the driver
POISON = -2  # the level of rows that say that a region has failed upstream: its other subtasks do not run

_ADDRESS = struct.Struct("<ii")  # level, partition
_SHUFFLE_KEY = struct.Struct("!q")  # as Spark's PairwiseRDD reads it


class ShuffleRow(NamedTuple):
    """Bytes on their way to a partition of a level, by way of a partition of the next stage."""

    via: int
    level: int
    partition: int
    data: bytes | memoryview

    def encode(self) -> bytes:
        """Return the row as Spark carries it."""
        return b"".join((_ADDRESS.pack(self.level, self.partition), self.data))


class ArrivedRow(NamedTuple):
    """A row that Spark has moved to a partition."""

    level: int
    partition: int
    data: memoryview


def decode(encoded: bytes) -> ArrivedRow:
    """Read what `ShuffleRow.encode` returned. The data is a view, not a copy."""
    level, partition = _ADDRESS.unpack_from(encoded)
    return ArrivedRow(level, partition, memoryview(encoded)[_ADDRESS.size :])


def shuffle_pairs(rows: Iterable[ShuffleRow]) -> Iterator[bytes]:
    """Yield each row as Spark's PairwiseRDD reads it: the partition of the next stage, then the row."""
    for row in rows:
        yield _SHUFFLE_KEY.pack(row.via)
        yield row.encode()


def rows_of_driver(rows: Iterable[ShuffleRow]) -> Iterator[bytes]:
    """Yield the data of the rows for the driver. The last stage emits no other rows but poison."""
    for row in rows:
        if row.level == DRIVER:
            yield bytes(row.data)
