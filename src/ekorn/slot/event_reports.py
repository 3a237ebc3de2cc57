"""The events of a slot on their way to the driver: queued by whoever has one, sent by one thread.

Events never wait for the driver. Printed lines and collected records could come without end, so a subtask that puts
out gets no step while too many of them wait.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

from ekorn.slot_protocol.slot_events import FlowEvent, OutputLeft, SlotEvent

__all__ = ["Reports"]

_OUTPUT_BYTES = 4 << 20


class Reports:
    """Events in the order in which they happened. Thread-safe.

    Attributes:
        on_room: Called when output may be put out again.
    """

    def __init__(self) -> None:
        self._waiting: deque[SlotEvent | FlowEvent] = deque()
        self._changed = threading.Condition()
        self._output_bytes = 0  # that were not sent yet
        self.on_room: Callable[[], None] = lambda: None

    @property
    def is_full(self) -> bool:
        """Whether more output waits to be sent than the driver takes now."""
        return self._output_bytes >= _OUTPUT_BYTES

    def put(self, event: SlotEvent | FlowEvent) -> None:
        """Add an event. Returns at once."""
        with self._changed:
            self._waiting.append(event)
            if isinstance(event, OutputLeft):
                self._output_bytes += event.part.size_bytes
            self._changed.notify()

    def get(self, timeout_s: float) -> SlotEvent | FlowEvent:
        """Wait for an event and take it. Call `sent` when the driver has it.

        Raises:
            queue.Empty: The time is up.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout_s):
                raise queue.Empty
            return self._waiting.popleft()

    def sent(self, event: SlotEvent | FlowEvent) -> None:
        """Note that an event has been sent."""
        if isinstance(event, OutputLeft):
            with self._changed:
                was_full = self.is_full
                self._output_bytes -= event.part.size_bytes
                frees = was_full and not self.is_full
            if frees:
                self.on_room()
