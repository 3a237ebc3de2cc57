"""`DataGeneratorSource`: generates records from numbers at a given rate, for experiments and load tests."""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import cloudpickle

from ekorn.clock import Clock, SystemClock
from ekorn.connectors.number_seq import contiguous_ranges
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.type_information import TypeInformation

__all__ = [
    "DataGeneratorSource",
    "GeneratorFunction",
    "RateLimiter",
    "RateLimiterStrategy",
    "ReaderContext",
]

T = TypeVar("T")
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """Passed to `GeneratorFunction.open`: names the split that is about to be read."""

    split_id: str


class GeneratorFunction(ABC, Generic[T]):
    """Generates a record from its number. Every reader has its own copy of the function."""

    def open(self, reader_context: ReaderContext) -> None:
        """Prepare for the first record. Called once."""

    @abstractmethod
    def map(self, value: int) -> T:
        """Return the record of a number; numbers begin at 0.

        After a failure a number may be requested again. The record is the same again only if it depends on nothing but
        the number.
        """

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, or None."""
        return None

    def close(self) -> None:
        """Release resources after the last record. Called once."""


class RateLimiter(ABC):
    """Limits the number of records that may be read. Used by one reader only."""

    @abstractmethod
    def take(self, wanted: int) -> int:
        """Return the number of records that may be read now, at most `wanted`, and consume them. Never waits."""


class RateLimiterStrategy(ABC):
    """The rate at which a generator source may be read by all its subtasks together."""

    @abstractmethod
    def create_rate_limiter(self, share_count: int, clock: Clock) -> RateLimiter | None:
        """Create the limiter of one of `share_count` readers that share the rate; None for no limit."""

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """Allow that many records per second, shared evenly by the readers."""
        return _PerSecond(records_per_second)

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """Set no limit."""
        return _NoLimit()


class DataGeneratorSource(Source):
    """Generates records from the numbers 0, 1, 2 and so on, up to a count or without end.

    >>> source = DataGeneratorSource(lambda number: f"record {number}", 2)
    >>> (split,) = source.discover_splits(parallelism=1)
    >>> source.create_reader(split, position=None).read(10).values
    ['record 0', 'record 1']
    """

    def __init__(
        self,
        generator_function: Callable[[int], Any] | GeneratorFunction[Any],
        count: int | None,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: TypeInformation | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Create a source.

        Args:
            generator_function: A function of the record's number, or a `GeneratorFunction`.
            count: The number of records; None, or Java's largest long as in Flink, for a source that does not end.
            rate_limiter_strategy: The rate; None for no limit.
            type_info: The type of the records; by default the type that a `RowGenerator` declares.
            clock: The clock that measures the rate; tests pass their own.
        """
        if not callable(generator_function) and not isinstance(generator_function, GeneratorFunction):
            raise TypeError(
                f"DataGeneratorSource() takes a function or a GeneratorFunction, got {generator_function!r}"
            )
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise ValueError(
                f"DataGeneratorSource() takes a count of 0 or more, or None for an endless source, got {count!r}"
            )
        if rate_limiter_strategy is not None and not isinstance(rate_limiter_strategy, RateLimiterStrategy):
            raise TypeError(
                "rate_limiter_strategy must be made by RateLimiterStrategy.per_second(...) or .no_op(), "
                f"got {rate_limiter_strategy!r}"
            )
        self._function = generator_function
        self._count = None if count is None or count >= _LONG_MAX else count
        self._strategy = rate_limiter_strategy or RateLimiterStrategy.no_op()
        if type_info is None and isinstance(generator_function, GeneratorFunction):
            type_info = generator_function.get_produced_type()
        self._type_info = type_info
        self._clock = clock or SystemClock()

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED if the source has a count."""
        # Flink: the source is always bounded, because 2**63 records do end. A job in BATCH mode would wait for them.
        return Boundedness.CONTINUOUS_UNBOUNDED if self._count is None else Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that was passed to the source."""
        return self._type_info

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return splits of numbers: (first, last, step, number of readers that share the rate).

        A bounded source is divided into contiguous ranges. The numbers of an unbounded source are dealt out in turn, so
        that all readers stay at about the same number.
        """
        if self._count is None:
            return [Split(str(i), (i, None, parallelism, parallelism)) for i in range(parallelism)]
        ranges = contiguous_ranges(0, self._count - 1, parallelism)
        return [Split(str(i), (first, last, 1, len(ranges))) for i, (first, last) in enumerate(ranges)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a split at its first number, or at the position of an earlier reader."""
        first, last, step, share_count = split.what
        function = self._function
        if isinstance(function, GeneratorFunction):
            # A subtask that took over the splits of another one has several readers: each opens its own function.
            function = pickle.loads(cloudpickle.dumps(function))
            function.open(ReaderContext(split.id))
        return _GeneratorReader(
            function,
            next_number=first if position is None else position,
            last=last,
            step=step,
            # The share is kept in the split and not computed from the parallelism: splits survive a change of
            # parallelism unchanged, so their rates still add up to the requested rate.
            limiter=self._strategy.create_rate_limiter(share_count, self._clock),
        )

    def __repr__(self) -> str:
        return f"DataGeneratorSource({self._function!r}, {self._count})"


class _GeneratorReader(SplitReader):
    """Generates the records of one split; its position is the next number."""

    def __init__(
        self,
        function: Callable[[int], Any] | GeneratorFunction[Any],
        *,
        next_number: int,
        last: int | None,
        step: int,
        limiter: RateLimiter | None,
    ) -> None:
        self._function = function
        self._make = function.map if isinstance(function, GeneratorFunction) else function
        self._next = next_number
        self._last = last
        self._step = step
        self._limiter = limiter

    def read(self, max_records: int) -> Batch:
        count = max_records
        if self._last is not None:
            count = min(count, (self._last - self._next) // self._step + 1)
        if self._limiter is not None and count > 0:
            count = self._limiter.take(count)
        stop = self._next + count * self._step
        values = list(map(self._make, range(self._next, stop, self._step)))  # hot
        self._next = stop
        return Batch(values)

    def position(self) -> int:
        return self._next

    @property
    def finished(self) -> bool:
        return self._last is not None and self._next > self._last

    def close(self) -> None:
        if isinstance(self._function, GeneratorFunction):
            self._function.close()


class _NoLimit(RateLimiterStrategy):
    def create_rate_limiter(self, share_count: int, clock: Clock) -> RateLimiter | None:
        return None

    def __repr__(self) -> str:
        return "RateLimiterStrategy.no_op()"


class _PerSecond(RateLimiterStrategy):
    def __init__(self, records_per_second: float) -> None:
        given = records_per_second
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
            raise ValueError(f"per_second() takes a number of records above 0, got {given!r}")
        self._records_per_second = float(given)

    def create_rate_limiter(self, share_count: int, clock: Clock) -> RateLimiter:
        return _TokenBucket(self._records_per_second / share_count, clock)

    def __repr__(self) -> str:
        return f"RateLimiterStrategy.per_second({self._records_per_second:g})"


class _TokenBucket(RateLimiter):
    """Allows `rate` records per second. Unused records accumulate for at most one second.

    The first record is allowed at once, as in Flink: at a rate below one per second, waiting for it would look like a
    job that does not start.
    """

    def __init__(self, rate: float, clock: Clock) -> None:
        self._rate = rate
        self._capacity = max(rate, 1.0)
        self._clock = clock
        self._tokens = 1.0
        self._seen_at = clock.monotonic()

    def take(self, wanted: int) -> int:
        now = self._clock.monotonic()
        self._tokens = min(self._capacity, self._tokens + (now - self._seen_at) * self._rate)
        self._seen_at = now
        # Sums of fractions of a second miss whole records by a rounding error, which must not delay a record.
        count = min(wanted, int(self._tokens + 1e-9))
        self._tokens -= count
        return count
