"""RocksDB's counters as metrics, under Flink's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ekorn.config.options.rocksdb import COUNTERS

__all__ = ["counter_metrics"]


def counter_metrics(wanted: Sequence[str], read_all: Callable[[], Mapping[str, int]]) -> dict[str, Callable[[], int]]:
    """Return the metrics of counters by name, and what reads them.

    RocksDB reports all of its counters in one text. The first metric of a report reads them, and the others take
    what it has read: metrics are read in the order in which they are registered.

    Args:
        wanted: Flink's keys of the counters.
        read_all: Returns the counters by RocksDB's names.

    >>> metrics = counter_metrics(["bytes-read", "iter-bytes-read"], lambda: {"bytes.read": 3, "db.iter.bytes.read": 4})
    >>> {name: read() for name, read in metrics.items()}
    {'rocksdb.bytes_read': 3, 'rocksdb.iter_bytes_read': 4}
    """
    counters = _Counters(read_all)
    return {
        f"rocksdb.{_NAMES.get(key, key).replace('-', '_')}": partial(counters.read, COUNTERS[key], first=not number)
        for number, key in enumerate(wanted)
    }


# Flink: the name of a metric is that of RocksDB's ticker, which is not always that of the key.
_NAMES = {"compaction-read-bytes": "compact-read-bytes", "compaction-write-bytes": "compact-write-bytes"}


class _Counters:
    """The values of the counters at the time when the first of them was last read."""

    def __init__(self, read_all: Callable[[], Mapping[str, int]]) -> None:
        self._read_all = read_all
        self._found: Mapping[str, int] = {}

    def read(self, name: str, *, first: bool) -> int:
        if first:
            self._found = self._read_all()
        return self._found.get(name, 0)
