"""Triggers that fire at the end of a window: by event time, by processing time, at the end of the input."""

from __future__ import annotations

from typing import Any

from ekorn.functions.windows.trigger_contract import Trigger, TriggerResult
from ekorn.functions.windows.window_values import TimeWindow, Window

_Context = Trigger.TriggerContext
_OnMerge = Trigger.OnMergeContext


class EventTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the watermark reaches the window's end, and again for every late record within allowed lateness."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """Return a trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire at once if the watermark has passed the window's end; otherwise wait for the end."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Continue: the clock does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire at the window's end."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: TimeWindow, ctx: _OnMerge) -> None:
        """Wait for the end of the merged window."""
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: _Context) -> None:
        """Delete the timer at the window's end."""
        ctx.delete_event_time_timer(window.max_timestamp())

    def fires_only_at_window_end(self, *, event_time: bool) -> bool:
        """Return whether windows end by event time too."""
        return event_time and type(self) is EventTimeTrigger

    def __repr__(self) -> str:
        return "EventTimeTrigger()"


class ProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the clock passes the window's end."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Return a trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Wait for the window's end."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: _Context) -> TriggerResult:
        """Continue: event time does not matter."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: TimeWindow, ctx: _OnMerge) -> None:
        """Wait for the end of the merged window."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: _Context) -> None:
        """Delete the timer at the window's end."""
        ctx.delete_processing_time_timer(window.max_timestamp())

    def fires_only_at_window_end(self, *, event_time: bool) -> bool:
        """Return whether windows end by processing time too."""
        return not event_time and type(self) is ProcessingTimeTrigger

    def __repr__(self) -> str:
        return "ProcessingTimeTrigger()"


class EndOfStreamTrigger(Trigger[Any, Any]):
    """Fires once, at the end of the input: with the last watermark."""

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: _Context) -> TriggerResult:
        """Wait for the end of the input."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Continue: the clock does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Fire at the end of the input."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: Window, ctx: _OnMerge) -> None:
        """Do nothing: global windows do not merge."""

    def clear(self, window: Window, ctx: _Context) -> None:
        """Delete the timer at the end of the input."""
        ctx.delete_event_time_timer(window.max_timestamp())


class NeverTrigger(Trigger[Any, Any]):
    """Never fires."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Do nothing: the trigger has no state."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Do nothing: the trigger has no state."""

    def __repr__(self) -> str:
        return "NeverTrigger()"
