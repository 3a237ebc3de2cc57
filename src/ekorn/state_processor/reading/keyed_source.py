"""Reads the keyed state of an operator through a `KeyedStateReaderFunction`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ekorn.clock import Clock, ManualClock, SystemClock
from ekorn.errors import StateError
from ekorn.keygroups import user_key
from ekorn.state_processor.reading.part_backend import TimersByEntry, Times, open_part, timers_of
from ekorn.state_processor.reading.part_source import PartSource, own_function
from ekorn.state_processor.reading.reader_functions import KeyedStateReaderFunction
from ekorn.state_processor.reading.reading_context import ReadingContext
from ekorn.state_processor.reading.stored_savepoint import StoredOperator

__all__ = ["KeyedStateSource"]

EVENT_TIMERS, PROCESSING_TIMERS = "_timers/event", "_timers/processing"


class KeyedStateSource(PartSource):
    """The records that a function reads, key by key."""

    def __init__(
        self,
        stored: StoredOperator,
        function: KeyedStateReaderFunction,
        *,
        on_rocksdb: bool | None,
        key_filter: Callable[[Any], bool] | None,
        clock: Clock | None = None,
    ) -> None:
        self._stored = stored
        self._function = function
        self._on_rocksdb = on_rocksdb
        self._key_filter = key_filter
        self._now_ms = (clock or SystemClock()).now_ms()

    def part_count(self) -> int:
        """Return the number of subtasks that stored keyed state."""
        return len(self._stored.parts())

    def read_part(self, part: int, subtask_index: int) -> Generator[Any, None, None]:
        """Yield the records of the keys of one part."""
        # One time for all parts and attempts: a part that is read again must not have lost entries that expired since.
        clock = ManualClock(self._now_ms)
        backend = open_part(self._stored, self._stored.parts()[part], clock, on_rocksdb=self._on_rocksdb)
        function, is_wanted = own_function(self._function), self._key_filter
        try:
            runtime = ReadingContext(backend, self._stored, subtask_index, clock)
            function.set_runtime_context(runtime)
            try:
                function.open(runtime)
                runtime.seal()
                if not runtime.asked_for:
                    raise StateError(f"open() of {type(function).__name__} registers no state, so no key can be read")
                context = _KeyContext(timers_of(backend, EVENT_TIMERS), timers_of(backend, PROCESSING_TIMERS))
                for stored_key in backend.keys_of(runtime.asked_for):
                    key = user_key(stored_key)
                    if is_wanted is None or is_wanted(key):
                        backend.cell[0] = context.current = stored_key
                        yield from function.read_key(key, context) or ()
            finally:
                function.close()
        finally:
            backend.close()

    def __repr__(self) -> str:
        return f"KeyedStateSource({self._stored.label})"


class _KeyContext(KeyedStateReaderFunction.Context):
    def __init__(self, event: TimersByEntry, processing: TimersByEntry) -> None:
        self.current: Any = None
        self._event = event
        self._processing = processing

    def registered_event_time_timers(self) -> Times:
        return set(self._event.get(self.current, ()))

    def registered_processing_time_timers(self) -> Times:
        return set(self._processing.get(self.current, ()))
