"""Triggers that fire at every multiple of an interval while a window is open, and at its end."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ekorn.functions.state.state_descriptors import ReducingStateDescriptor
from ekorn.functions.state.state_handles import ReducingState
from ekorn.functions.windows.trigger_contract import Trigger, TriggerResult
from ekorn.functions.windows.window_arithmetic import aligned_start
from ekorn.functions.windows.window_values import TimeWindow
from ekorn.types.factory import Types
from ekorn.types.time import Duration, Time, millis_of

_Context = Trigger.TriggerContext
_OnMerge = Trigger.OnMergeContext


class _ContinuousTrigger(Trigger[Any, TimeWindow]):
    """Fires at every multiple of an interval. The next firing time is the trigger's state of the window."""

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise ValueError(f"{type(self).__name__}: the interval must be positive, got {interval} ms")
        self.interval = interval
        self._next = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: _Context, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Fire next at a time, or at the window's end if that is earlier."""
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

    def _register_first(self, time: int, window: TimeWindow, ctx: _Context) -> None:
        self._register(window.max_timestamp(), ctx)
        state = ctx.get_partitioned_state(self._next)
        if state.get() is None:
            first = aligned_start(time, 0, self.interval) + self.interval
            self.register_next_fire_timestamp(first, window, ctx, state)

    @abstractmethod
    def _register(self, time: int, ctx: _Context) -> None:
        """Register a timer in the trigger's time domain."""

    @abstractmethod
    def _delete(self, time: int, ctx: _Context) -> None:
        """Delete a timer in the trigger's time domain."""

    def can_merge(self) -> bool:
        """Return True: the merged window fires next at the earliest of the next firing times."""
        return True

    def on_merge(self, window: TimeWindow, ctx: _OnMerge) -> None:
        """Wait for the earliest of the next firing times."""
        ctx.merge_partitioned_state(self._next)
        next_time = ctx.get_partitioned_state(self._next).get()
        if next_time is not None:
            self._register(next_time, ctx)

    def clear(self, window: TimeWindow, ctx: _Context) -> None:
        """Delete the next firing time and both timers."""
        state = ctx.get_partitioned_state(self._next)
        next_time = state.get()
        if next_time is not None:
            self._delete(next_time, ctx)
            state.clear()
        self._delete(window.max_timestamp(), ctx)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires at every multiple of an interval by event time, and at the window's end."""

    @staticmethod
    def of(interval: Time | Duration | Any) -> ContinuousEventTimeTrigger:
        """Return a trigger that fires at every multiple of an interval."""
        return ContinuousEventTimeTrigger(millis_of(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire at once if the watermark has passed the window's end; otherwise wait for the next multiple."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        self._register_first(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Continue: the clock does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire, and wait for the next multiple."""
        return self._on_time(time, window, ctx)

    def _register(self, time: int, ctx: _Context) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, time: int, ctx: _Context) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires at every multiple of an interval by processing time, and at the window's end."""

    @staticmethod
    def of(interval: Time | Duration | Any) -> ContinuousProcessingTimeTrigger:
        """Return a trigger that fires at every multiple of an interval."""
        return ContinuousProcessingTimeTrigger(millis_of(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Wait for the next multiple."""
        self._register_first(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire, and wait for the next multiple."""
        return self._on_time(time, window, ctx)

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Continue: event time does not matter."""
        return TriggerResult.CONTINUE

    def _register(self, time: int, ctx: _Context) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: _Context) -> None:
        ctx.delete_processing_time_timer(time)
