"""How records leave a stage: as blobs for partitions of the next stage, for their own partition, or for the driver.

An exit yields exactly what Spark reads. For a shuffle these are pairs: the number of a partition, and a blob for it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from functools import total_ordering
from itertools import repeat
from typing import Any, Protocol

from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.blobs import FIRST, BlobSize, OperatorReport, encode_reports
from ekorn.batch.tasks.task_operator import TaskOperator, method
from ekorn.errors import InvalidKeyError, InvalidProgramError, preview
from ekorn.keygroups import key_group, key_group_of_int, key_group_of_text, key_groups_of_texts
from ekorn.types.type_information import all_are

__all__ = [
    "Backwards",
    "CountExit",
    "CustomExit",
    "DealingExit",
    "ForwardExit",
    "KeyedExit",
    "PartitionOfKey",
    "RangeExit",
    "StageExit",
    "StoringExit",
    "holds_none",
    "in_order",
    "refuse_none",
]

_PARTITION = struct.Struct("!q")  # the form that Spark's PairwiseRDD reads
_REMEMBERED_KEYS = 100_000
_SPREAD = 1 << 15  # the number of key groups, so that the hash spreads evenly over any number of partitions


class StageExit(Protocol):
    """The end of a stage."""

    goes_by_order: bool

    def write(self, records: Iterator[Any]) -> Iterator[bytes]:
        """Yield the records as Spark reads them."""
        ...

    def write_reports(self, reports: list[OperatorReport]) -> Iterator[bytes]:
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

    def write_reports(self, reports: list[OperatorReport]) -> Iterator[bytes]:
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
        self.begin()
        addresses = [_PARTITION.pack(number) for number in range(self.partitions)]
        for chunk in size.chunks(records):
            self.distribute(chunk, buckets)
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

    def begin(self) -> None:
        """Prepare for the first chunk."""

    def distribute(self, chunk: list[Any], buckets: list[list[Any]]) -> None:
        """Append each record of a chunk to a bucket."""
        raise AssertionError(f"{type(self).__name__} chooses no partition")

    def write_reports(self, reports: list[OperatorReport]) -> Iterator[bytes]:
        yield _PARTITION.pack(0)
        yield encode_reports(reports)


class DealingExit(ShuffleExit):
    """Deals records to the partitions in turn. Tasks begin at different partitions, so short inputs spread too."""

    goes_by_order = True
    index = 0  # the index of the task, which sets it

    def begin(self) -> None:
        self._turn = self.index % self.partitions

    def distribute(self, chunk: list[Any], buckets: list[list[Any]]) -> None:
        count = len(buckets)
        for number in range(count):
            buckets[(self._turn + number) % count] += chunk[number::count]
        self._turn = (self._turn + len(chunk)) % count


class StoringExit(ShuffleExit):
    """Leaves records in their partition, in the files of a shuffle: Spark then knows which results go together."""

    index = 0  # the index of the task, which sets it

    def distribute(self, chunk: list[Any], buckets: list[list[Any]]) -> None:
        buckets[self.index] += chunk


class KeyedExit(ShuffleExit):
    """Sends records with equal keys to one partition, by the hash of the key.

    Args:
        name: The operator that reads the records.
        keys: The keys.
        partitions: The number of partitions.
        none_allowed: Whether a key may be None, as in joins, where it matches nothing.
        side: The input of the reading operator.
    """

    def __init__(
        self, name: str, keys: Keys, partitions: int, *, none_allowed: bool = False, side: int = FIRST
    ) -> None:
        super().__init__(name, partitions, side)
        self.keys = keys
        self.none_allowed = none_allowed

    def begin(self) -> None:
        self._partition_of = PartitionOfKey(self.partitions, none_allowed=self.none_allowed)

    def distribute(self, chunk: list[Any], buckets: list[list[Any]]) -> None:
        partition_of = self._partition_of
        keys = self.keys.of(chunk)
        if partition_of.are_many:
            keys = list(keys)
            if all_are(str, keys):
                for number, record in zip(partition_of.of_texts(keys), chunk, strict=True):  # hot
                    buckets[number].append(record)
                return
        for key, record in zip(keys, chunk, strict=True):  # hot
            buckets[partition_of[key]].append(record)
        partition_of.bound()


class CustomExit(ShuffleExit):
    """Sends each record to the partition that a partitioner of the program chooses for its key."""

    def __init__(self, name: str, keys: Keys, partitions: int, partitioner: Any, side: int = FIRST) -> None:
        super().__init__(name, partitions, side)
        self.keys = keys
        self.partitioner = partitioner

    def distribute(self, chunk: list[Any], buckets: list[list[Any]]) -> None:
        choose = method(self.partitioner, "partition")
        count = len(buckets)
        for key, record in zip(self.keys.of(chunk), chunk, strict=True):
            chosen = choose(key, count)
            if type(chosen) is not int or not 0 <= chosen < count:
                raise InvalidProgramError(
                    f"the partitioner returned {chosen!r} for key {preview(key)}; "
                    f"it must return an int from 0 to {count - 1}"
                )
            buckets[chosen].append(record)


class RangeExit(ShuffleExit):
    """Sends records to partitions by bounds between the keys.

    Args:
        name: The operator that reads the records.
        keys: The keys.
        partitions: The number of partitions.
        bounds: The largest key of each partition but the last; fewer if there are not enough keys.
        descending: Whether each field of the key is sorted backwards.
    """

    def __init__(self, name: str, keys: Keys, partitions: int, bounds: list[Any], descending: tuple[bool, ...]) -> None:
        super().__init__(name, partitions)
        self.keys = keys
        self.bounds = bounds
        self.descending = descending

    def begin(self) -> None:
        self._bounds = [in_order(bound, self.descending) for bound in self.bounds]

    def distribute(self, chunk: list[Any], buckets: list[list[Any]]) -> None:
        keys = self.keys.of(chunk)
        if any(self.descending):
            keys = [in_order(key, self.descending) for key in keys]
        try:
            chosen = list(map(bisect_left, repeat(self._bounds), keys))
        except TypeError:
            self._name_record(chunk)
            raise
        for number, record in zip(chosen, chunk, strict=True):  # hot
            buckets[number].append(record)

    def _name_record(self, chunk: list[Any]) -> None:
        """Raise for the first record whose key does not compare, so that the error names it."""
        for key, record in zip(self.keys.of(chunk), chunk, strict=True):  # noqa: B007 - `user_error` shows the record
            bisect_left(self._bounds, in_order(key, self.descending))


def in_order(key: Any, descending: tuple[bool, ...]) -> Any:
    """Return a key that sorts forwards as the given key sorts in the given directions."""
    if not any(descending):
        return key
    if len(descending) == 1:
        return Backwards(key)
    return tuple([Backwards(field) if down else field for field, down in zip(key, descending, strict=True)])


@total_ordering
class Backwards:
    """A value that compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and bool(self.value == other.value)

    def __lt__(self, other: Backwards) -> bool:
        return bool(other.value < self.value)

    def __hash__(self) -> int:
        return hash(self.value)


class PartitionOfKey(dict[Any, int]):
    """The partition of each key. Keys are remembered, so that a key which repeats costs one look-up.

    Attributes:
        are_many: Whether the keys were too many to be remembered: then `of_texts` takes less time.
    """

    def __init__(self, partitions: int, *, none_allowed: bool = False) -> None:
        super().__init__()
        self._partitions = partitions
        self._none_allowed = none_allowed
        self.are_many = False

    def of_texts(self, keys: list[str]) -> list[int]:
        """Return the partitions of many keys of type str, and remember none."""
        partitions = self._partitions
        return [group * partitions // _SPREAD for group in key_groups_of_texts(keys, _SPREAD)]

    def __missing__(self, key: Any) -> int:
        if type(key) is str:  # most keys are text or numbers, and this saves three calls
            utf8 = key.encode("utf-8", "surrogatepass")
            found = self[key] = key_group_of_text(utf8, _SPREAD) * self._partitions // _SPREAD
            return found
        if type(key) is int:
            found = self[key] = key_group_of_int(key, _SPREAD) * self._partitions // _SPREAD
            return found
        if not self._none_allowed:
            refuse_none(key)
        found = 0 if key is None else key_group(key, _SPREAD) * self._partitions // _SPREAD
        self[key] = found
        return found

    def bound(self) -> None:
        """Forget the keys if there are very many."""
        if len(self) > _REMEMBERED_KEYS:
            self.clear()
            self.are_many = True


def holds_none(key: Any) -> bool:
    """Return whether a key is None, or one of its fields is."""
    return key is None or (type(key) is tuple and None in key)


def refuse_none(key: Any) -> None:
    """Raise `InvalidKeyError` if a key is None, or one of its fields is. `user_error` adds the record."""
    if holds_none(key):
        raise InvalidKeyError(
            "", preview(key), "None is not a key; filter such records out or give them a key of their own"
        )
