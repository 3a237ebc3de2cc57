"""What the slots report, on its way from their connections to the loop of the job.

Printed lines and collected records may come faster than the loop takes them. The thread that listens to a slot then
waits here, its connection fills up, and the subtasks of the slot that put out get no step (`slot/event_reports.py`).
"""

from __future__ import annotations

import queue
import threading
from collections import deque

from ekorn.slot_protocol.slot_events import FlowEvent, OutputLeft, SlotEvent, UnreadableEvent

__all__ = ["EventQueue"]

_OUTPUT_BYTES = 16 << 20  # of all slots together

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
        """Let all threads go on that wait to add output: nobody takes events any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
