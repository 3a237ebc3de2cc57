"""The queue of a slot's events for the driver. Any thread adds events, and one thread sends them.

Adding an event never waits for the driver. Printed lines and collected records are not bounded in number, so a subtask
that emits them gets no step while too many of them are queued.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

from ekorn.slot_protocol.slot_events import FlowEvent, OutputLeft, SlotEnds, SlotEvent

__all__ = ["Reports"]

_OUTPUT_BYTES = 4 << 20


class Reports:
    """Events in the order in which they happened. Thread-safe.

    Attributes:
        on_room: Called when there is room for output again.
        last_sent: Set when the driver has been sent the last event of the slot.
    """

    def __init__(self) -> None:
        self._waiting: deque[SlotEvent | FlowEvent | SlotEnds] = deque()
        self._changed = threading.Condition()
        self._output_bytes = 0  # output that has not been sent yet
        self.on_room: Callable[[], None] = lambda: None
        self.last_sent = threading.Event()

    @property
    def is_full(self) -> bool:
        """Whether too much output waits to be sent."""
        return self._output_bytes >= _OUTPUT_BYTES

    def put(self, event: SlotEvent | FlowEvent) -> None:
        """Add an event. Returns at once."""
        with self._changed:
            self._waiting.append(event)
            if isinstance(event, OutputLeft):
                self._output_bytes += event.part.size_bytes
            self._changed.notify()

    def put_last(self, event: SlotEnds) -> None:
        """Add the last event of the slot. It overtakes the events that wait: the attempt fails."""
        with self._changed:
            self._waiting.appendleft(event)
            self._changed.notify()

    def get(self, timeout_s: float) -> SlotEvent | FlowEvent | SlotEnds:
        """Wait for an event and take it. Call `sent` when the driver has it.

        Raises:
            queue.Empty: The time is up.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout_s):
                raise queue.Empty
            return self._waiting.popleft()

    def sent(self, event: SlotEvent | FlowEvent | SlotEnds) -> None:
        """Note that an event has been sent."""
        if isinstance(event, SlotEnds):
            self.last_sent.set()
        if isinstance(event, OutputLeft):
            with self._changed:
                was_full = self.is_full
                self._output_bytes -= event.part.size_bytes
                frees = was_full and not self.is_full
            if frees:
                self.on_room()
