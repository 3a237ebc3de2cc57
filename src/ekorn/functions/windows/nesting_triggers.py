"""Triggers around another trigger: one that purges with every firing, one that also fires after a timeout."""

from __future__ import annotations

from typing import Any

from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.functions.windows.trigger_contract import Trigger, TriggerResult
from ekorn.types.factory import Types
from ekorn.types.time import Duration, Time, millis_of

_Context = Trigger.TriggerContext
_OnMerge = Trigger.OnMergeContext


class PurgingTrigger(Trigger[Any, Any]):
    """Purges the window's contents whenever the nested trigger fires."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise TypeError(f"PurgingTrigger needs a trigger, got {nested_trigger!r}")
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Return a trigger that purges whenever `nested_trigger` fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide as the nested trigger does, and purge if it fires."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide as the nested trigger does, and purge if it fires."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide as the nested trigger does, and purge if it fires."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Return whether the nested trigger supports merging windows."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Merge the state of the nested trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: _Context) -> None:
        """Delete the state and timers of the nested trigger."""
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires with the nested trigger, and when the nested trigger has not fired for a timeout by processing time."""

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
        """Return a trigger that fires with the nested trigger or after a timeout.

        Args:
            nested_trigger: the nested trigger.
            timeout: how long to wait after a record.
            reset_timer_on_new_record: measure the timeout from the last record rather than from the first.
            should_clear_on_timeout: clear the state of the nested trigger when the timeout fires.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger, millis_of(timeout), reset_timer_on_new_record, should_clear_on_timeout
        )

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide as the nested trigger does, and keep a timer for the timeout while it does not fire."""
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
        """Fire: the timeout has passed, or a timer of the nested trigger has."""
        return self._on_time(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Fire with the timer of the nested trigger."""
        return self._on_time(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _on_time(self, result: TriggerResult, window: Any, ctx: _Context) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Do nothing: the trigger does not support merging windows."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Delete the timeout, and the state and timers of the nested trigger."""
        state = ctx.get_partitioned_state(self._timer)
        pending = state.value()
        if pending is not None:
            ctx.delete_processing_time_timer(pending)
            state.clear()
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger!r}, {self.timeout})"
