"""Sketches: what a key keeps of many values in little memory, for distinct counts and quantiles.

The state of a sketch depends on the values alone and not on their order, so it is the same however a stream is cut into
batches, and in both forms of a stream. `columns/sketch_kernels.py` computes the same for all keys of a batch.
"""

from __future__ import annotations

import datetime
import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any

from ekorn.types.time import Instant

__all__ = [
    "BITS_KEPT",
    "EMPTY_BUCKETS",
    "EMPTY_REGISTERS",
    "MOST_SPARSE",
    "NAN_BITS",
    "RANK_BITS",
    "REGISTERS",
    "TOP_RANK",
    "bucket_of",
    "estimate",
    "estimates_by_empty",
    "estimates_by_fill",
    "hash_of",
    "merged_buckets",
    "merged_registers",
    "quantiles_of",
    "value_of_bucket",
    "with_bucket",
    "with_hash",
]

# ---------------------------------------------------------------------------------------------------- hashes

_MASK = (1 << 64) - 1
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY_ZERO = datetime.date(1970, 1, 1).toordinal()
NAN_BITS = 0x7FF8 << 48


def hash_of(value: Any) -> int:
    """Return 64 bits of a value, the same in every process. Values that are equal have the same bits."""
    if isinstance(value, str):
        return _hash_of_bytes(value.encode())
    if isinstance(value, bytes | bytearray):
        return _hash_of_bytes(bytes(value))
    return _mixed(_word_of(value))


def _word_of(value: Any) -> int:
    match value:
        case int():
            return value & _MASK
        case float():
            if value != value:
                return NAN_BITS
            if value.is_integer() and -(2.0**63) <= value < 2.0**63:
                return int(value) & _MASK
            return int.from_bytes(struct.pack("<d", value), "little")
        case Decimal():
            return _word_of_decimal(value)
        case datetime.datetime():
            return ((value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND) & _MASK
        case datetime.date():
            return (value.toordinal() - _DAY_ZERO) & _MASK
        case datetime.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return seconds * 1_000_000 + value.microsecond
        case Instant():
            return (value.seconds * 1_000_000 + value.nanos // 1000) & _MASK
    raise TypeError(f"a distinct count takes numbers, texts, bytes, dates and times, got {value!r}")


def _word_of_decimal(value: Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError(f"a distinct count takes finite decimals, got {value!r}")
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    if not kept:
        return 0
    exponent += len(text) - len(kept)
    if 0 <= exponent < 19 and len(kept) + exponent < 19:
        whole: int = int(kept) * 10**exponent
        return (-whole if sign else whole) & _MASK
    return _hash_of_bytes(f"{sign}{kept}e{exponent}".encode())


def _mixed(word: int) -> int:
    """Return a number each of whose bits depends on every bit of a word."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _MASK
    return word ^ word >> 31


def _hash_of_bytes(data: bytes) -> int:
    found = _mixed(len(data))
    for first in range(0, len(data), 8):
        found = _mixed(found ^ int.from_bytes(data[first : first + 8], "little"))
    return found


# ------------------------------------------------------------------------------------------- distinct counts

# HyperLogLog: a hash chooses one of 4096 registers by its first bits, and the register keeps the longest run of zeros
# that the other bits begin with. Registers are kept as triples of bytes until many of them are in use.

_INDEX_BITS = 12
REGISTERS = 1 << _INDEX_BITS
TOP_RANK = 50
RANK_BITS = 6
MOST_SPARSE = 512
"""Registers in use up to which each of them is kept in three bytes; then all registers are kept, in one byte each."""

EMPTY_REGISTERS = (0, 0, b"")
"""An accumulator: by how much the registers are filled, how many are in use, and the registers.

A register of rank r fills 2**50 - 2**(50-r), so the filling is a whole number, and the sum of what new values add.
"""


def with_hash(accumulator: tuple[int, int, bytes], hashed: int) -> tuple[int, int, bytes]:
    """Return the accumulator of a distinct count with one more hash."""
    register = hashed >> 64 - _INDEX_BITS
    rest = hashed & (1 << 64 - _INDEX_BITS) - 1
    return _with_rank(accumulator, register, min(65 - _INDEX_BITS - rest.bit_length(), TOP_RANK))


def _with_rank(accumulator: tuple[int, int, bytes], register: int, rank: int) -> tuple[int, int, bytes]:
    filled, used, data = accumulator
    if len(data) == REGISTERS:
        before = data[register]
        if rank <= before:
            return accumulator
        data = b"".join((data[:register], bytes((rank,)), data[register + 1 :]))
    else:
        at = 3 * _place(data, register)
        entry = int.from_bytes(data[at : at + 3], "big")
        before = entry & (1 << RANK_BITS) - 1 if entry >> RANK_BITS == register and at < len(data) else 0
        if rank <= before:
            return accumulator
        ours = (register << RANK_BITS | rank).to_bytes(3, "big")
        data = b"".join((data[:at], ours, data[at + 3 if before else at :]))
        if len(data) > 3 * MOST_SPARSE:
            data = _dense(data)
    return filled + (1 << TOP_RANK - before) - (1 << TOP_RANK - rank), used + (not before), data


def _place(data: bytes, register: int) -> int:
    """Return how many of the registers in use come before one."""
    low, high = 0, len(data) // 3
    while low < high:
        middle = (low + high) // 2
        if int.from_bytes(data[3 * middle : 3 * middle + 3], "big") >> RANK_BITS < register:
            low = middle + 1
        else:
            high = middle
    return low


def _ranks(data: bytes) -> Iterable[tuple[int, int]]:
    """Return the registers in use and their ranks."""
    if len(data) == REGISTERS:
        return ((register, rank) for register, rank in enumerate(data) if rank)
    entries = (int.from_bytes(data[at : at + 3], "big") for at in range(0, len(data), 3))
    return ((entry >> RANK_BITS, entry & (1 << RANK_BITS) - 1) for entry in entries)


def _dense(data: bytes) -> bytes:
    dense = bytearray(REGISTERS)
    for register, rank in _ranks(data):
        dense[register] = rank
    return bytes(dense)


def merged_registers(one: tuple[int, int, bytes], other: tuple[int, int, bytes]) -> tuple[int, int, bytes]:
    """Return the accumulator of the values of two."""
    for register, rank in _ranks(other[2]):
        one = _with_rank(one, register, rank)
    return one


def estimate(filled: int, used: int) -> int:
    """Return about how many distinct values were counted. The standard error is 1.7 percent."""
    if used <= len(estimates_by_empty()) - 1:
        return estimates_by_empty()[used]
    fills, counts = estimates_by_fill()
    left = (REGISTERS * (1 << TOP_RANK) - filled) / (REGISTERS * (1 << TOP_RANK))
    at = min(max(bisect_left(fills, left), 1), len(fills) - 1)
    share = (left - fills[at - 1]) / (fills[at] - fills[at - 1])
    return round(counts[at - 1] + share * (counts[at] - counts[at - 1]))


@lru_cache(1)
def estimates_by_empty() -> list[int]:
    """Return estimates by the number of registers in use, which is the better measure as long as many are empty."""
    most = REGISTERS - math.ceil(REGISTERS * math.exp(-2))
    return [round(REGISTERS * math.log(REGISTERS / (REGISTERS - used))) for used in range(most + 1)]


@lru_cache(1)
def estimates_by_fill() -> tuple[list[float], list[float]]:
    """Return what is expected to be left of all registers, in ascending order, and the counts for which it is."""
    counts = [2.0 ** (step / 32) * REGISTERS for step in range(42 * 32, -1, -1)]
    return [_expected_left(count / REGISTERS) for count in counts], counts


def _expected_left(load: float) -> float:
    """Return the mean of 2**-rank where each register has taken a number of values, on average."""
    below, left = 0.0, 0.0
    for rank in range(TOP_RANK + 1):
        up_to = math.exp(-load * 2.0**-rank) if rank < TOP_RANK else 1.0
        left += 2.0**-rank * (up_to - below)
        below = up_to
    return left


# --------------------------------------------------------------------------------------------------- quantiles

# Values are counted in buckets. A bucket has the numbers of one sign with the same exponent and the same first bits of
# the mantissa, so its number is the front part of the bits of a float. No logarithm is needed, which differs in its
# last bit from one library to the next.

BITS_KEPT = 7
_SHIFT = 52 - BITS_KEPT

EMPTY_BUCKETS = (0, b"")
"""An accumulator: how many values there are, and the buckets: all numbers in order in 4 bytes, all counts in 8."""


def bucket_of(value: Any) -> int:
    """Return the bucket of a number. Buckets are in the order of their numbers; NaN is larger than all others."""
    number = float(value) + 0.0  # -0.0 becomes 0.0
    bits = NAN_BITS if number != number else int.from_bytes(struct.pack("<d", abs(number)), "little")
    return bits >> _SHIFT if not number < 0 else -(bits >> _SHIFT) - 1


def value_of_bucket(bucket: int) -> float:
    """Return the number of a bucket that is closest to zero."""
    magnitude = bucket if bucket >= 0 else -bucket - 1
    value: float = struct.unpack("<d", (magnitude << _SHIFT).to_bytes(8, "little"))[0]
    return value if bucket >= 0 else -value


def with_bucket(accumulator: tuple[int, bytes], bucket: int, more: int = 1) -> tuple[int, bytes]:
    """Return the accumulator of quantiles with some more values in a bucket."""
    total, data = accumulator
    size = len(data) // 12
    numbers = memoryview(data)[: 4 * size].cast("i")
    at = bisect_left(numbers, bucket)
    count_at = 4 * size + 8 * at
    if at < size and numbers[at] == bucket:
        count = int.from_bytes(data[count_at : count_at + 8], "little") + more
        parts: tuple[bytes, ...] = (data[:count_at], count.to_bytes(8, "little"), data[count_at + 8 :])
    else:
        number = bucket.to_bytes(4, "little", signed=True)
        parts = (data[: 4 * at], number, data[4 * at : count_at], more.to_bytes(8, "little"), data[count_at:])
    return total + more, b"".join(parts)


def merged_buckets(one: tuple[int, bytes], other: tuple[int, bytes]) -> tuple[int, bytes]:
    """Return the accumulator of the values of two."""
    for bucket, count in zip(*_buckets(other[1]), strict=True):
        one = with_bucket(one, bucket, count)
    return one


def _buckets(data: bytes) -> tuple[list[int], list[int]]:
    size = len(data) // 12
    return memoryview(data)[: 4 * size].cast("i").tolist(), memoryview(data)[4 * size :].cast("q").tolist()


def quantiles_of(accumulator: tuple[int, bytes], shares: Sequence[float]) -> list[float] | None:
    """Return the value below which each share of all values lies; None if there are no values."""
    total, data = accumulator
    if not total:
        return None
    numbers, counts = _buckets(data)
    up_to = list(accumulate(counts))
    return [value_of_bucket(numbers[bisect_right(up_to, math.floor(share * (total - 1)))]) for share in shares]
