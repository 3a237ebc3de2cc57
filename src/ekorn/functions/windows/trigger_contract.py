"""The contract of triggers: a trigger decides when a window fires and when its contents are purged."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ekorn.functions.windows.window_values import Window

if TYPE_CHECKING:
    from ekorn.functions.state.state_descriptors import StateDescriptor
    from ekorn.metrics.metricbase import MetricGroup

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TriggerResult(enum.Enum):
    """The decision about a window, as (fire, purge): evaluate its contents, drop its contents."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return whether the window function is called."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Return whether the contents are dropped. The window, its timers and the trigger's state stay."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window fires. A trigger object holds no state: trigger state is kept per key and window."""

    class TriggerContext(ABC):
        """Gives a trigger the clocks, and the timers and state of the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the operator's metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the operator's watermark."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have `on_processing_time` called once the clock has passed a time."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have `on_event_time` called once the watermark reaches a time."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a timer. Does nothing if there is none."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete a timer. Does nothing if there is none."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """Return the state of the current key and window."""

    class OnMergeContext(TriggerContext):
        """Gives a trigger access to the state of windows that are being merged."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the merged windows. Takes list, reducing and aggregating state."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide after a record was added to a window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide when a processing-time timer of a window fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide when an event-time timer of a window fires."""

    def can_merge(self) -> bool:
        """Return whether the trigger supports merging windows: whether `on_merge` is implemented."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Merge the trigger state of several windows into `window`, which replaces them."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Delete the trigger's state and timers of a window that is over."""

    def fires_only_at_window_end(self, *, event_time: bool) -> bool:
        """Return whether time windows fire exactly at their end, and again with each late record.

        Window operators do not ask such a trigger per record. A subclass of a built-in trigger may decide otherwise, so
        the built-in triggers answer for their exact type only.
        """
        return False
