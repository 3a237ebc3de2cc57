"""Triggers that decide by the records of a window: by their number, or by the distance between two."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ekorn.functions.state.state_descriptors import ReducingStateDescriptor, ValueStateDescriptor
from ekorn.functions.windows.trigger_contract import Trigger, TriggerResult
from ekorn.functions.windows.window_values import Window
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

_Context = Trigger.TriggerContext
_OnMerge = Trigger.OnMergeContext


class CountTrigger(Trigger[Any, Any]):
    """Fires with every `window_size` records that are added to a window."""

    def __init__(self, window_size: int) -> None:
        self.window_size = window_size
        self._count = ReducingStateDescriptor("count", operator.add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Return a trigger that fires with every `window_size` records."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: _Context) -> TriggerResult:
        """Count the record, and fire when the count is reached."""
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() >= self.window_size:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Continue: time does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: _Context) -> TriggerResult:
        """Continue: time does not matter."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True: counts are added."""
        return True

    def on_merge(self, window: Window, ctx: _OnMerge) -> None:
        """Add the counts of the merged windows."""
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Window, ctx: _Context) -> None:
        """Delete the count."""
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"


DeltaFunction = Callable[[Any, Any], float]
"""Returns the distance from an old record to a new one. An object with `get_delta(old, new)` may be given instead."""


def delta_of(delta_function: Any) -> DeltaFunction:
    """Return the callable behind a delta function.

    Raises:
        TypeError: the delta function is not callable, and neither is its `get_delta`.
    """
    found = getattr(delta_function, "get_delta", delta_function)
    if not callable(found):
        raise TypeError(
            f"a delta function must be a callable of two records, or have a method get_delta, got {delta_function!r}"
        )
    return found  # type: ignore[no-any-return]


class DeltaTrigger(Trigger[Any, Any]):
    """Fires when a record is further than a threshold from the record that fired last, or from the first record."""

    def __init__(self, threshold: float, delta_function: Any, state_type: TypeInformation | None = None) -> None:
        self.threshold = threshold
        self.delta_function = delta_function
        self._delta = delta_of(delta_function)
        self._last = ValueStateDescriptor("last-element", state_type)

    @staticmethod
    def of(threshold: float, delta_function: Any, state_type: TypeInformation | None = None) -> DeltaTrigger:
        """Return a trigger that fires when `delta_function(old, new) > threshold`."""
        return DeltaTrigger(threshold, delta_function, state_type)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Compare the record with the one that fired last."""
        last = ctx.get_partitioned_state(self._last)
        before = last.value()
        if before is None:
            last.update(element)
        elif self._delta(before, element) > self.threshold:
            last.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Continue: time does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Continue: time does not matter."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Do nothing: the trigger does not support merging windows."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Delete the record that fired last."""
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold}, {self.delta_function!r})"
