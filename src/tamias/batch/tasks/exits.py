"""How records leave a stage: as blobs for partitions of the next stage, for their own partition, or for the driver.

An exit yields exactly what Spark reads. For a shuffle these are pairs: the number of a partition, and a blob for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tamias.batch.plan.keys import Keys
from tamias.batch.tasks.blobs import FIRST, BlobSize, Report, encode_reports
from tamias.batch.tasks.task_operator import TaskOperator, method
from tamias.errors import InvalidKeyError, InvalidProgramError, preview
from tamias.keygroups import key_group

__all__ = ["CountExit", "DealingExit", "Exit", "ForwardExit", "KeyedExit", "PartitionOfKey"]

_PARTITION = struct.Struct("!q")  # as Spark's PairwiseRDD reads it
_REMEMBERED_KEYS = 100_000
_SPREAD = 1 << 15  # key groups, so that the hash spreads evenly over any number of partitions


class Exit(Protocol):
    """The end of a stage."""

    def write(self, records: Iterator[Any]) -> Iterator[bytes]:
        """Yield the records as Spark reads them."""
        ...

    def write_reports(self, reports: list[Report]) -> Iterator[bytes]:
        """Yield the reports as Spark reads them; comes after the records."""
        ...


class ForwardExit(TaskOperator):
    """Leaves records in their partition."""

    def __init__(self, name: str = "forward", side: int = FIRST) -> None:
        super().__init__(name)
        self.side = side

    def write(self, records: Iterator[Any]) -> Iterator[bytes]:
        size = BlobSize()
        for chunk in size.chunks(records):
            yield size.encoded(self.side, chunk)

    def write_reports(self, reports: list[Report]) -> Iterator[bytes]:
        yield encode_reports(reports)


class CountExit(ForwardExit):
    """Sends the number of records."""

    def write(self, records: Iterator[Any]) -> Iterator[bytes]:
        size = BlobSize()
        yield size.encoded(FIRST, [sum(len(chunk) for chunk in size.chunks(records))])


class ShuffleExit(TaskOperator):
    """Sends records to the partitions of the next stage. A subclass chooses the partition of each."""

    def __init__(self, name: str, partitions: int, side: int = FIRST) -> None:
        super().__init__(name)
        self.partitions = partitions
        self.side = side

    def write(self, records: Iterator[Any]) -> Iterator[bytes]:
        size = BlobSize()
        buckets: list[list[Any]] = [[] for _ in range(self.partitions)]
        distribute = self.distributor(buckets)
        addresses = [_PARTITION.pack(number) for number in range(self.partitions)]
        for chunk in size.chunks(records):
            distribute(chunk)
            full = size.records
            for address, bucket in zip(addresses, buckets, strict=True):
                if len(bucket) >= full:
                    yield address
                    yield size.encoded(self.side, bucket)
                    bucket.clear()
        for address, bucket in zip(addresses, buckets, strict=True):
            if bucket:
                yield address
                yield size.encoded(self.side, bucket)

    def distributor(self, buckets: list[list[Any]]) -> Callable[[list[Any]], None]:
        """Return a function that appends each record of a chunk to a bucket."""
        raise AssertionError(f"{type(self).__name__} chooses no partition")

    def write_reports(self, reports: list[Report]) -> Iterator[bytes]:
        yield _PARTITION.pack(0)
        yield encode_reports(reports)


class DealingExit(ShuffleExit):
    """Deals records to the partitions in turn. Tasks begin at different partitions, so short inputs spread too."""

    start = 0  # set in the task

    def distributor(self, buckets: list[list[Any]]) -> Callable[[list[Any]], None]:
        count = len(buckets)
        turn = self.start % count

        def distribute(chunk: list[Any]) -> None:
            nonlocal turn
            for number in range(count):
                buckets[(turn + number) % count] += chunk[number::count]
            turn = (turn + len(chunk)) % count

        return distribute


class KeyedExit(ShuffleExit):
    """Sends records with equal keys to one partition.

    Args:
        name: The operator that reads the records.
        keys: The keys.
        partitions: The number of partitions.
        partitioner: Chooses the partition of a key; None for the hash of the key.
        none_allowed: Whether a key may be None, as in joins, where it matches nothing.
        side: The input of the reading operator.
    """

    def __init__(
        self,
        name: str,
        keys: Keys,
        partitions: int,
        *,
        partitioner: Any = None,
        none_allowed: bool = False,
        side: int = FIRST,
    ) -> None:
        super().__init__(name, partitions, side)
        self.keys = keys
        self.partitioner = partitioner
        self.none_allowed = none_allowed

    def distributor(self, buckets: list[list[Any]]) -> Callable[[list[Any]], None]:
        keys_of = self.keys.of
        partition_of = PartitionOfKey(len(buckets), self.partitioner, none_allowed=self.none_allowed)

        def distribute(chunk: list[Any]) -> None:  # hot
            for key, record in zip(keys_of(chunk), chunk, strict=True):
                buckets[partition_of[key]].append(record)
            partition_of.bound()

        return distribute


class PartitionOfKey(dict[Any, int]):
    """The partition of each key. Keys are remembered, so that a key which repeats costs one look-up."""

    def __init__(self, partitions: int, partitioner: Any = None, *, none_allowed: bool = False) -> None:
        super().__init__()
        self._partitions = partitions
        self._none_allowed = none_allowed
        self._choose = None if partitioner is None else method(partitioner, "partition")

    def __missing__(self, key: Any) -> int:
        if not self._none_allowed and holds_none(key):
            raise InvalidKeyError(
                "", preview(key), "None is not a key; filter such records out or give them a key of their own"
            )
        if self._choose is not None:
            found = self._choose(key, self._partitions)
            if type(found) is not int or not 0 <= found < self._partitions:
                raise InvalidProgramError(
                    f"the partitioner returned {found!r} for key {preview(key)}; "
                    f"it must return an int from 0 to {self._partitions - 1}"
                )
        else:
            found = 0 if key is None else key_group(key, _SPREAD) * self._partitions // _SPREAD
        self[key] = found
        return found

    def bound(self) -> None:
        """Forget the keys if there are very many."""
        if len(self) > _REMEMBERED_KEYS:
            self.clear()


def holds_none(key: Any) -> bool:
    """Return whether a key is None, or one of its fields is."""
    return key is None or (type(key) is tuple and None in key)
