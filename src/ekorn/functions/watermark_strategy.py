"""Watermark strategies: where the timestamps of a stream come from and when watermarks are emitted.

A `WatermarkStrategy` is a value. The generators, which keep a running maximum, are made from it by `create_generator`,
one per subtask or source split.
"""

from __future__ import annotations

import copy
import datetime
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar

from ekorn.errors import preview
from ekorn.functions.record_fields import read_field
from ekorn.types.published import publish
from ekorn.types.time import Duration, Instant, Time, millis_of
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP, watermark_text

__all__ = [
    "AscendingTimestampsWatermarks",
    "BoundedOutOfOrdernessWatermarks",
    "FieldTimestamps",
    "NoWatermarksGenerator",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """Says that no further record with a timestamp up to this one is expected."""

    timestamp: int

    MAX: ClassVar[Watermark]

    def get_timestamp(self) -> int:
        """Return the timestamp, in milliseconds."""
        return self.timestamp

    def __repr__(self) -> str:
        return f"Watermark({watermark_text(self.timestamp)})"


Watermark.MAX = Watermark(MAX_TIMESTAMP)


class TimestampAssigner(ABC):
    """Reads the event time of a record."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the record's event time.

        Args:
            value: The record.
            record_timestamp: The timestamp that the record has so far; negative if it has none.

        Returns:
            Milliseconds since the epoch.
        """


class _CallableAssigner(TimestampAssigner):
    """Uses a plain function as an assigner."""

    def __init__(self, function: Callable[[Any, int], int]) -> None:
        self._function = function

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self._function(value, record_timestamp)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _CallableAssigner):
            return NotImplemented
        return self._function == other._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return f"TimestampAssigner({getattr(self._function, '__qualname__', self._function)!s})"


@dataclass(frozen=True)
class FieldTimestamps(TimestampAssigner):
    """Reads timestamps from a field: points in time, or whole numbers of milliseconds since 1970."""

    field: str

    def extract_timestamp(self, value: Any, record_timestamp: int) -> Any:
        found = read_field(value, self.field)
        if isinstance(found, datetime.datetime):
            return (found.replace(tzinfo=found.tzinfo or datetime.UTC) - _EPOCH) // _MILLISECOND
        return found.to_epoch_milli() if isinstance(found, Instant) else found


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def assign_function(assigner: TimestampAssigner) -> Callable[[Any, int], Any]:
    """Return the function of an assigner: the user's own, without a call in between, if it is a plain function."""
    return assigner._function if type(assigner) is _CallableAssigner else assigner.extract_timestamp


class WatermarkOutput(ABC):
    """Takes what a generator emits. The output drops watermarks that do not advance; the generator need not."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark, given as a :class:`Watermark` or as its timestamp."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Mark this input as idle: downstream does not wait for it."""

    @abstractmethod
    def mark_active(self) -> None:
        """Mark this input as active: downstream waits for it again."""


class WatermarkGenerator(ABC):
    """Decides when event time advances. There is one instance per subtask, or per split if given to a source."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Handle a record that was forwarded. Punctuated generators emit here."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the watermark of periodic generators.

        Called at `pipeline.auto-watermark-interval`. In epochs it is called at the end of every epoch instead, unless
        the program sets the interval.
        """


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Emits watermarks a fixed length and one millisecond behind the highest timestamp seen."""

    def __init__(self, max_out_of_orderness: Duration | Time | timedelta | int) -> None:
        self._delay_ms = _not_negative("max_out_of_orderness", millis_of(max_out_of_orderness))
        # The lowest maximum whose watermark is not below MIN_TIMESTAMP.
        self._max_timestamp = MIN_TIMESTAMP + self._delay_ms + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self._max_timestamp:  # noqa: PLR1730 - hot; max() is a call
            self._max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self._max_timestamp - self._delay_ms - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Emits watermarks one millisecond behind the highest timestamp seen, for timestamps that never go back."""

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator):
    """Emits nothing. Event time advances at the end of the input only."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Lets the sources of one group wait for the slowest of them when they are too far ahead."""

    group: str
    max_drift_ms: int
    update_interval_ms: int = 1000


GeneratorSupplier = Callable[[Any], WatermarkGenerator]


@dataclass(frozen=True)
class _BoundedSupplier:
    """Makes bounded generators. Unlike a lambda, it compares and prints by its value."""

    delay_ms: int

    def __call__(self, context: Any = None) -> WatermarkGenerator:
        return BoundedOutOfOrdernessWatermarks(self.delay_ms)


@dataclass(frozen=True)
class WatermarkStrategy:
    """Says where timestamps come from and when watermarks are emitted.

    >>> strategy = (WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    ...             .with_timestamp_assigner(lambda event, _: event[1]))
    >>> strategy.timestamp_assigner.extract_timestamp(("a", 42), -1)
    42

    A strategy is a value: each ``with_`` method returns a new strategy and keeps what was set before.
    """

    generator_supplier: GeneratorSupplier
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Return a strategy for timestamps that never go back: the watermark follows the last one."""
        return WatermarkStrategy(_BoundedSupplier(0))

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | Time | timedelta) -> WatermarkStrategy:
        """Return a strategy for records that arrive at most this much later than the latest one seen.

        Raises:
            ValueError: The bound is negative.
        """
        delay_ms = _not_negative("max_out_of_orderness", millis_of(max_out_of_orderness))
        return WatermarkStrategy(_BoundedSupplier(delay_ms))

    @staticmethod
    def for_generator(generator_supplier: GeneratorSupplier) -> WatermarkStrategy:
        """Return a strategy with generators of the program: ``generator_supplier(context)`` makes one per subtask.

        Raises:
            TypeError: The supplier is not callable, or not with one argument.
        """
        if not callable(generator_supplier):
            raise TypeError(
                f"for_generator takes a function that returns a WatermarkGenerator, not {generator_supplier!r}"
            )
        _check_arguments("for_generator", generator_supplier, ("context",), "FourSecondsBehind()")
        return WatermarkStrategy(generator_supplier)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Return a strategy without watermarks until the end of the input, for processing time."""
        return WatermarkStrategy(_no_watermarks)

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Return a strategy that reads timestamps with an assigner, or a function of a record and its timestamp."""
        if isinstance(timestamp_assigner, TimestampAssigner):
            return replace(self, timestamp_assigner=timestamp_assigner)
        # Flink: PyFlink takes any object that has the method, also one that is no TimestampAssigner.
        if hasattr(timestamp_assigner, "extract_timestamp"):
            return replace(self, timestamp_assigner=_CallableAssigner(timestamp_assigner.extract_timestamp))
        if callable(timestamp_assigner):
            _check_arguments("with_timestamp_assigner", timestamp_assigner, ("value", "record_timestamp"), "value[0]")
            return replace(self, timestamp_assigner=_CallableAssigner(timestamp_assigner))
        raise TypeError(
            "with_timestamp_assigner takes a TimestampAssigner or a function (value, record_timestamp) -> int, "
            f"not {timestamp_assigner!r}"
        )

    def with_timestamp_column(self, name: str) -> WatermarkStrategy:
        """Return a strategy that reads timestamps from a field of rows, or from a column of a stream of columns.

        Its values are points in time, or whole numbers of milliseconds since 1970.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"with_timestamp_column takes the name of a column, not {name!r}")
        return replace(self, timestamp_assigner=FieldTimestamps(name))

    @property
    def timestamp_column(self) -> str | None:
        """The field that holds the timestamps; None if an assigner returns them."""
        assigner = self.timestamp_assigner
        return assigner.field if isinstance(assigner, FieldTimestamps) else None

    @property
    def is_built_in(self) -> bool:
        """Whether the watermarks depend on the highest timestamp alone, so that many records are one event."""
        return self.generator_supplier is _no_watermarks or isinstance(self.generator_supplier, _BoundedSupplier)

    def with_idleness(self, idle_timeout: Duration | Time | timedelta) -> WatermarkStrategy:
        """Return a strategy that marks an input as idle after this long without records.

        Raises:
            ValueError: The timeout is not positive.
        """
        return replace(self, idle_timeout_ms=_positive("idle_timeout", millis_of(idle_timeout)))

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | Time | timedelta,
        update_interval: Duration | Time | timedelta | None = None,
    ) -> WatermarkStrategy:
        """Return a strategy that lets the sources of a group read at most this far ahead of the slowest one.

        Raises:
            ValueError: The group has no name, or a length is not positive.
        """
        if not watermark_group:
            raise ValueError("with_watermark_alignment needs a group name, got an empty one")
        interval_ms = 1000 if update_interval is None else millis_of(update_interval)
        alignment = WatermarkAlignment(
            watermark_group,
            _positive("max_allowed_watermark_drift", millis_of(max_allowed_watermark_drift)),
            _positive("update_interval", interval_ms),
        )
        return replace(self, alignment=alignment)

    def for_split(self) -> WatermarkStrategy:
        """Return the strategy for one split of a source.

        It is a copy if the assigner remembers timestamps for the generator, as those of Flink 1.x do.
        """
        return copy.deepcopy(self) if getattr(self.generator_supplier, "asks_the_assigner", False) else self

    def create_generator(self, context: Any = None) -> WatermarkGenerator:
        """Return a new generator, for one subtask or one split.

        Raises:
            TypeError: The supplier given to :meth:`for_generator` returned something else.
        """
        generator = self.generator_supplier(context)
        if not (hasattr(generator, "on_event") and hasattr(generator, "on_periodic_emit")):
            raise TypeError(
                f"the function given to for_generator returned {preview(generator)}, "
                "which has no on_event and on_periodic_emit; return a WatermarkGenerator"
            )
        return generator


def _no_watermarks(context: Any = None) -> WatermarkGenerator:
    return NoWatermarksGenerator()


def makes_watermarks(strategy: WatermarkStrategy) -> bool:
    """Return whether a strategy is another one than `no_watermarks`."""
    return strategy.generator_supplier is not _no_watermarks


def _not_negative(what: str, millis: int) -> int:
    if millis < 0:
        raise ValueError(f"{what} must not be negative, but is {millis} ms")
    return millis


def _positive(what: str, millis: int) -> int:
    if millis <= 0:
        raise ValueError(f"{what} must be positive, but is {millis} ms")
    return millis


def _check_arguments(call: str, function: Callable[..., Any], names: tuple[str, ...], example: str) -> None:
    """Refuse a function that cannot be called with this many arguments, where its signature is known."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # some builtins have no signature
    try:
        signature.bind(*names)
    except TypeError:
        shown, name = ", ".join(names), getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"{call} calls its function with ({shown}), and {name} takes {signature}; "
            f"write a function such as `lambda {shown}: {example}`"
        ) from None


publish("ekorn.common.watermark_strategy", Watermark)
