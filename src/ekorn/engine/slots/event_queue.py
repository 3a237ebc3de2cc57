"""The events that slots report, on their way from the connections of the slots to the loop of the job.

Printed lines and collected records may come faster than the loop takes them. The thread that listens to a slot then
waits here, and its connection fills up. The subtasks of the slot that have output get no step meanwhile
(`slot/event_reports.py`).
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable

from ekorn.engine.protocol import Failure
from ekorn.errors import DeploymentError
from ekorn.slot_protocol.slot_events import FlowEvent, OutputLeft, SlotEvent, UnreadableEvent

__all__ = ["EventInbox", "EventQueue"]

_OUTPUT_BYTES = 16 << 20  # of the output that waits, of all slots together

Event = SlotEvent | FlowEvent | UnreadableEvent | None


class EventQueue:
    """Events in the order of their arrival; None wakes the reader. Thread-safe.

    Args:
        output_bytes: How much output may wait.
    """

    def __init__(self, output_bytes: int = _OUTPUT_BYTES) -> None:
        self._most_bytes = output_bytes
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._output_bytes = 0
        self._ended = False

    def put(self, event: Event) -> None:
        """Add an event. Waits if it is output and too much output waits; never for other events."""
        with self._changed:
            if isinstance(event, OutputLeft):
                self._changed.wait_for(lambda: self._output_bytes < self._most_bytes or self._ended)
                self._output_bytes += event.part.size_bytes
            self._waiting.append(event)
            self._changed.notify_all()

    def get(self, timeout_s: float) -> Event:
        """Wait for an event and take it.

        Raises:
            queue.Empty: The time is up.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout_s):
                raise queue.Empty
            event = self._waiting.popleft()
            if isinstance(event, OutputLeft):
                self._output_bytes -= event.part.size_bytes
                self._changed.notify_all()
            return event

    def end(self) -> None:
        """Release the threads that wait to add output: no event is taken any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class EventInbox:
    """Takes events from the queue for the loop of the job.

    Args:
        events: The queue.
        take_flow: Called with each event of subtasks that run continuously, as it is taken.

    Attributes:
        unreadable: The failure of an attempt that reported something which the driver could not read.
    """

    def __init__(self, events: EventQueue, take_flow: Callable[[FlowEvent], None]) -> None:
        self._events = events
        self._take_flow = take_flow
        self._taken: list[SlotEvent] = []  # by `wait`, for the next call of `take_all`
        self.unreadable: Failure | None = None

    def take_all(self) -> list[SlotEvent]:
        """Return the events that were reported since the last call."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(self._events.get(0.0))
        found, self._taken = self._taken, []
        return found

    def wait(self, timeout_s: float) -> None:
        """Wait until an event is reported, `wake` is called, or the time is up."""
        with contextlib.suppress(queue.Empty):
            self._take(self._events.get(max(timeout_s, 0.0)))

    def wake(self) -> None:
        """End a `wait`. Thread-safe."""
        self._events.put(None)

    def _take(self, event: Event) -> None:
        if isinstance(event, SlotEvent):
            self._taken.append(event)
        elif isinstance(event, UnreadableEvent):
            why = f"slot {event.slot} sent a report that cannot be read in the driver: {event.why}"
            self.unreadable = Failure(DeploymentError(why), event.slot)
        elif event is not None:
            self._take_flow(event)
