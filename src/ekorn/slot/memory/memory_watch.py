"""Watches the memory of a slot's process: warns, and ends the slot at its limit.

The thread that collects garbage (`ekorn/garbage.py`) looks at the memory of the process every 20 milliseconds and calls
this. That costs some microseconds each time, and nothing for each record. At the limit the slot reports why it ends,
with its largest states, and ends itself: the kernel, which would kill it later, gives no reason. A slot whose memory
has grown past both limits between two looks warns too before it ends.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from ekorn.errors import SlotMemoryError
from ekorn.garbage import collect
from ekorn.metrics.process_memory import resident_bytes
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.memory.function_objects import kept_in_memory
from ekorn.slot.memory.memory_limit import Due, MemoryLimit, memory_text
from ekorn.slot_protocol.diagnostics import StateSize
from ekorn.slot_protocol.slot_events import SlotEnds
from ekorn.state.rocksdb.store_options import block_cache_bytes

__all__ = ["MemoryWatch"]

_log = logging.getLogger(__name__)

_REPORT_S = 2.0  # how long the report may take to the driver
_UNDISTURBED_S = 1.0  # user code makes no objects while the states are measured
_PROMPT_S = 0.0005  # how soon the thread that sends the report gets its turn, although user code computes


class MemoryWatch:
    """Acts on the memory that the slot uses.

    Args:
        host: The slot.
        reports: Where events for the driver go.
        end: Ends the process of the slot.
    """

    def __init__(self, host: SlotHost, reports: Reports, end: Callable[[], object]) -> None:
        self._host = host
        self._reports = reports
        self._end = end
        self._limit = MemoryLimit(host.memory)

    def look(self, used_bytes: int) -> None:
        """Do what is due at this use of memory."""
        if self._limit.memory is not self._host.memory:  # a deployment has brought another limit
            self._limit = MemoryLimit(self._host.memory)
        due = self._limit.due(used_bytes)
        if due is Due.WARN:
            self._warn(self._kept(), used_bytes)
        elif due is Due.FAIL:
            collect(2)  # gives back what nothing refers to any more
            left = resident_bytes(os.getpid())
            if self._limit.due(left) is Due.FAIL:
                self._fail(left)

    def _kept(self) -> list[StateSize]:
        return kept_in_memory(self._host.subtasks.values())

    def _warn(self, kept: list[StateSize], used_bytes: int) -> None:
        """Warn, as soon as there is an operator in the slot whose hint the warning can be."""
        text = memory_text(self._limit.memory, used_bytes, block_cache_bytes(), kept)
        largest = kept[0].operator_id if kept else None
        if self._host.hint_at_memory(largest, f"the memory of slot {self._host.slot} is short: {text}"):
            self._limit.warned = True
            _log.info("the memory of the slot is short: %s", text)  # the driver shows the hint

    def _fail(self, used_bytes: int) -> None:
        sys.setswitchinterval(_UNDISTURBED_S)
        memory = self._limit.memory
        kept = self._kept()
        if not self._limit.warned:
            self._warn(kept, used_bytes)
        text = memory_text(memory, used_bytes, block_cache_bytes(), kept)
        error = SlotMemoryError(self._host.slot, text, memory.raised_by)
        sys.setswitchinterval(_PROMPT_S)
        self._reports.put_last(SlotEnds(error, self._host.take_hints()))
        _log.error("the slot ends: %s", text)
        self._reports.last_sent.wait(_REPORT_S)
        self._end()
