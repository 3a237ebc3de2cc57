"""The triggers that come with tamias."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from tamias.functions.state_descriptors import ReducingStateDescriptor, ValueStateDescriptor
from tamias.functions.state_handles import ReducingState
from tamias.functions.window_contract import TimeWindow, Trigger, TriggerResult, Window
from tamias.types.factory import Types
from tamias.types.time import Duration, Time, millis_of
from tamias.types.type_information import TypeInformation

_Context = Trigger.TriggerContext
_OnMerge = Trigger.OnMergeContext


class EventTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the watermark reaches the window's end, and again for every late record that is still allowed."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire at once when the window has ended already, else wait for its end."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire at the window's end."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: TimeWindow, ctx: _OnMerge) -> None:
        """Wait for the new end."""
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: _Context) -> None:
        """Wait no more."""
        ctx.delete_event_time_timer(window.max_timestamp())

    def __repr__(self) -> str:
        return "EventTimeTrigger()"


class EndOfStreamTrigger(Trigger[Any, Any]):
    """Fires once, when the input has ended: at the last watermark."""

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: _Context) -> TriggerResult:
        """Wait for the end."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Fire at the end."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: Window, ctx: _OnMerge) -> None:
        """Nothing: global windows do not merge."""

    def clear(self, window: Window, ctx: _Context) -> None:
        """Wait no more."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the clock passes the window's end."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Wait for the window's end."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: TimeWindow, ctx: _OnMerge) -> None:
        """Wait for the new end."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: _Context) -> None:
        """Wait no more."""
        ctx.delete_processing_time_timer(window.max_timestamp())

    def __repr__(self) -> str:
        return "ProcessingTimeTrigger()"


class CountTrigger(Trigger[Any, Any]):
    """Fires whenever so many records were added to a window."""

    def __init__(self, window_size: int) -> None:
        self.window_size = window_size
        self._count = ReducingStateDescriptor("count", operator.add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Fire at every `window_size` records."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: _Context) -> TriggerResult:
        """Count, and fire at the number."""
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() >= self.window_size:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Yes: counts add up."""
        return True

    def on_merge(self, window: Window, ctx: _OnMerge) -> None:
        """Add the counts."""
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Window, ctx: _Context) -> None:
        """Forget the count."""
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"


class PurgingTrigger(Trigger[Any, Any]):
    """Another trigger, whose firings also drop the window's contents."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise TypeError(f"PurgingTrigger needs a trigger, got {nested_trigger!r}")
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Purge whenever this trigger fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """As the other one, and purge."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """As the other one, and purge."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """As the other one, and purge."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """As the other one."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """As the other one."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: _Context) -> None:
        """As the other one."""
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


class NeverTrigger(Trigger[Any, Any]):
    """Never fires."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Nothing."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Nothing."""

    def __repr__(self) -> str:
        return "NeverTrigger()"


class _Continuous(Trigger[Any, TimeWindow]):
    """Fires every so often while a window is open; the next time is the window's state."""

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise ValueError(f"{type(self).__name__}: the interval must be positive, got {interval} ms")
        self.interval = interval
        self._next = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: _Context, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Fire next at a time, but not after the window's end."""
        next_time = min(time, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        self._register(next_time, ctx)

    def _on_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        state = ctx.get_partitioned_state(self._next)
        if state.get() != time:
            return TriggerResult.CONTINUE
        state.clear()
        self.register_next_fire_timestamp(time + self.interval, window, ctx, state)
        return TriggerResult.FIRE

    def _first(self, time: int, window: TimeWindow, ctx: _Context) -> None:
        self._register(window.max_timestamp(), ctx)
        state = ctx.get_partitioned_state(self._next)
        if state.get() is None:
            self.register_next_fire_timestamp(time - time % self.interval + self.interval, window, ctx, state)

    @abstractmethod
    def _register(self, time: int, ctx: _Context) -> None:
        """Register a timer in the trigger's time."""

    @abstractmethod
    def _delete(self, time: int, ctx: _Context) -> None:
        """Delete a timer in the trigger's time."""

    def can_merge(self) -> bool:
        """Yes: the earliest of the next times counts."""
        return True

    def on_merge(self, window: TimeWindow, ctx: _OnMerge) -> None:
        """Wait for the earliest of the next times."""
        ctx.merge_partitioned_state(self._next)
        next_time = ctx.get_partitioned_state(self._next).get()
        if next_time is not None:
            self._register(next_time, ctx)

    def clear(self, window: TimeWindow, ctx: _Context) -> None:
        """Wait no more."""
        state = ctx.get_partitioned_state(self._next)
        next_time = state.get()
        if next_time is not None:
            self._delete(next_time, ctx)
            state.clear()
        self._delete(window.max_timestamp(), ctx)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_Continuous):
    """Fires every so often by event time, and at the window's end."""

    @staticmethod
    def of(interval: Time | Duration | Any) -> ContinuousEventTimeTrigger:
        """Fire at every multiple of an interval."""
        return ContinuousEventTimeTrigger(millis_of(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire at once when the window has ended already, else wait for the next time."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        self._first(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire, and wait for the next time."""
        return self._on_time(time, window, ctx)

    def _register(self, time: int, ctx: _Context) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, time: int, ctx: _Context) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires every so often by the clock, and at the window's end."""

    @staticmethod
    def of(interval: Time | Duration | Any) -> ContinuousProcessingTimeTrigger:
        """Fire at every multiple of an interval."""
        return ContinuousProcessingTimeTrigger(millis_of(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Wait for the next time."""
        self._first(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire, and wait for the next time."""
        return self._on_time(time, window, ctx)

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def _register(self, time: int, ctx: _Context) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: _Context) -> None:
        ctx.delete_processing_time_timer(time)


DeltaFunction = Callable[[Any, Any], float]
"""How far a new record is from an old one; an object with `get_delta(old, new)` may be given instead."""


def delta_of(delta_function: Any) -> DeltaFunction:
    """The callable behind a delta function."""
    found = getattr(delta_function, "get_delta", delta_function)
    if not callable(found):
        raise TypeError(f"a delta function is a callable of two records, got {delta_function!r}")
    return found  # type: ignore[no-any-return]


class DeltaTrigger(Trigger[Any, Any]):
    """Fires when a record is further than a threshold from the one that fired last (or came first)."""

    def __init__(self, threshold: float, delta_function: Any, state_type: TypeInformation | None = None) -> None:
        self.threshold = threshold
        self.delta_function = delta_function
        self._delta = delta_of(delta_function)
        self._last = ValueStateDescriptor("last-element", state_type)

    @staticmethod
    def of(threshold: float, delta_function: Any, state_type: TypeInformation | None = None) -> DeltaTrigger:
        """Fire when `delta_function(old, new) > threshold`."""
        return DeltaTrigger(threshold, delta_function, state_type)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Compare with the record that fired last."""
        last = ctx.get_partitioned_state(self._last)
        before = last.value()
        if before is None:
            last.update(element)
        elif self._delta(before, element) > self.threshold:
            last.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Not with windows that merge."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Forget the record."""
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold}, {self.delta_function!r})"


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Another trigger that also fires when it has not fired for so long, by the clock."""

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        timeout: int,
        reset_timer_on_new_record: bool,
        should_clear_on_timeout: bool,
    ) -> None:
        self.nested_trigger = nested_trigger
        self.timeout = timeout
        self.reset_timer_on_new_record = reset_timer_on_new_record
        self.should_clear_on_timeout = should_clear_on_timeout
        self._timer = ValueStateDescriptor("timeout", Types.LONG())

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration | Any,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Fire as another trigger does, or after a timeout.

        Args:
            nested_trigger: the other one.
            timeout: how long to wait after a record.
            reset_timer_on_new_record: count from the last record rather than from the first.
            should_clear_on_timeout: let the other trigger forget its state when the timeout fires.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger, millis_of(timeout), reset_timer_on_new_record, should_clear_on_timeout
        )

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Ask the other trigger; keep a timer while it does not fire."""
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        state = ctx.get_partitioned_state(self._timer)
        pending = state.value()
        if pending is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(pending)
            pending = None
        if pending is None:
            due = ctx.get_current_processing_time() + self.timeout
            state.update(due)
            ctx.register_processing_time_timer(due)
        return result

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Fire: the timeout, or the other trigger's own timer."""
        return self._on_time(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Fire with the other trigger's timer."""
        return self._on_time(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _on_time(self, result: TriggerResult, window: Any, ctx: _Context) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Not with windows that merge."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Wait no more."""
        state = ctx.get_partitioned_state(self._timer)
        pending = state.value()
        if pending is not None:
            ctx.delete_processing_time_timer(pending)
            state.clear()
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger!r}, {self.timeout})"
