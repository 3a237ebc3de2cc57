"""Reads the windows of a window operator through a `WindowReaderFunction`, whichever layout stores them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

from ekorn.clock import ManualClock, SystemClock
from ekorn.functions.state.state_descriptors import ListStateDescriptor, StateDescriptor
from ekorn.functions.state.state_stores import KeyedStateStore
from ekorn.functions.windows.window_arithmetic import SessionGap, WindowGrid
from ekorn.graph.specs import WindowSpec
from ekorn.keygroups import user_key
from ekorn.operators.contexts.subtask_context import StateStore
from ekorn.operators.windows.combinable_contents import slice_contents_for
from ekorn.operators.windows.contents import Contents, contents_for
from ekorn.operators.windows.contents_state import ContentsState
from ekorn.operators.windows.open_windows import codec_for
from ekorn.operators.windows.saved_slices import SavedSlices
from ekorn.operators.windows.saved_windows import (
    DEFAULT_IN_ROCKSDB,
    EVENT_TIMERS,
    PROCESSING_TIMERS,
    TRIGGERED,
    SavedDefaultInRocksDB,
    SavedLayout,
    SavedPanes,
    SavedSessions,
    check_layout,
    translate,
)
from ekorn.state.keyed_backend import KeyedStateBackend, KeyedStates, RestoredTables
from ekorn.state.kinds import kind_of
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import redistribute
from ekorn.state.snapshots import KeyedFiles
from ekorn.state_processor.reading.part_source import PartSource, Times, open_part, own_function, timers_of
from ekorn.state_processor.reading.reader_functions import WindowReaderFunction
from ekorn.state_processor.reading.reading_context import ReadingContext
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.types.type_information import TypeInformation

__all__ = ["WindowSource"]

ReadElements = Callable[[], Iterable[Any]]
"""Returns the elements of the current key and window."""


class WindowSource(PartSource):
    """The records that a function reads, window by window."""

    def __init__(
        self,
        stored: StoredOperator,
        spec: WindowSpec,
        function: WindowReaderFunction,
        *,
        on_rocksdb: bool | None,
        element_type: TypeInformation | None,
    ) -> None:
        self._stored = stored
        self._spec = spec
        self._function = function
        self._on_rocksdb = on_rocksdb
        self._element_type = element_type
        self._now_ms = SystemClock().now_ms()

    def part_count(self) -> int:
        """Return the number of subtasks that stored keyed state."""
        return len(self._stored.parts())

    def read_part(self, part: int, subtask_index: int) -> Generator[Any, None, None]:
        """Yield the records of the windows of one part."""
        clock, files = ManualClock(self._now_ms), self._stored.parts()[part]  # set once, as in `KeyedStateSource`
        to_contents = partial(self._to_contents_with_timers, files)
        backend = open_part(self._stored, files, clock, on_rocksdb=self._on_rocksdb, translate=to_contents)
        function = own_function(self._function)
        try:
            layout = DEFAULT_IN_ROCKSDB if backend.has_entries(DEFAULT_IN_ROCKSDB) else TRIGGERED
            check_layout(backend, layout)
            runtime = ReadingContext(backend, self._stored, subtask_index, clock)
            function.set_runtime_context(runtime)
            try:
                function.open(runtime)
                yield from self._windows(backend, layout, function)
            finally:
                function.close()
        finally:
            backend.close()

    def _windows(self, backend: KeyedStateBackend, layout: str, function: WindowReaderFunction) -> Iterable[Any]:
        codec = codec_for(self._spec.assigner.get_window_serializer())
        elements = self._elements(backend.in_windows("_window/"), layout.removeprefix("_window/"))
        context = _WindowContext(backend)
        for entry, _ in backend.entries(layout):
            backend.cell[0] = entry[0]
            backend.window_cell[0] = context.entry = entry
            context.current = codec.decode(entry[1])
            yield from function.read_window(user_key(entry[0]), context, elements()) or ()

    def _elements(self, states: KeyedStates, name: str) -> ReadElements:
        spec = self._spec
        if spec.evictor is None:
            return partial(_contents_of, ContentsState(states, spec.contents, name, self._element_type))
        records = states.state(ListStateDescriptor(name, self._element_type))
        contents = contents_for(spec.contents, self._element_type)
        return lambda: _as_elements(contents, [value for value, _ in records.get()])

    def _to_contents_with_timers(self, part: KeyedFiles, tables: RestoredTables) -> None:
        """Turn the heap's layouts into contents with timers, the only layout of RocksDB."""
        spec, stored = self._spec, self._stored
        arithmetic = spec.assigner.arithmetic() if spec.evictor is None else None
        others: list[SavedLayout] = []
        if isinstance(arithmetic, SessionGap):
            others = [SavedSessions()]
        elif isinstance(arithmetic, WindowGrid):
            states = OperatorStates(redistribute(stored.operator_states(), 1, 0), stored.metadata.states, stored.label)
            sliced = slice_contents_for(spec.contents, self._element_type)
            max_parallelism = stored.metadata.max_parallelism
            others = [SavedPanes(), SavedSlices(arithmetic, sliced, states, part.key_groups, max_parallelism)]
        translate(tables, SavedDefaultInRocksDB(spec), others)

    def __repr__(self) -> str:
        return f"WindowSource({self._stored.label})"


def _contents_of(contents: ContentsState) -> list[Any]:
    found: list[Any] = []
    take = found.extend if contents.is_list else found.append
    contents.fire(None, take)
    return found


def _as_elements(contents: Contents, records: list[Any]) -> list[Any]:
    result = contents.of_records(records)
    return result if contents.is_list else [result]


class _WindowContext(WindowReaderFunction.Context):
    def __init__(self, backend: KeyedStateBackend) -> None:
        self.current: Any = None
        self.entry: Any = None  # the key and the window, as tables have them
        self._event = timers_of(backend, EVENT_TIMERS, windowed=True)
        self._processing = timers_of(backend, PROCESSING_TIMERS, windowed=True)
        self._of_triggers = backend.in_windows("trigger/")
        self._of_window = StateStore(backend.in_windows("window/"))
        self._of_key = StateStore(backend)

    def window(self) -> Any:
        return self.current

    def trigger_state(self, state_descriptor: StateDescriptor) -> Any:
        if kind_of(state_descriptor) is None:
            raise TypeError(f"trigger_state() needs the descriptor of a keyed state, got {state_descriptor!r}")
        return self._of_triggers.state(state_descriptor)

    def window_state(self) -> KeyedStateStore:
        return self._of_window

    def global_state(self) -> KeyedStateStore:
        return self._of_key

    def registered_event_time_timers(self) -> Times:
        return set(self._event.get(self.entry, ()))

    def registered_processing_time_timers(self) -> Times:
        return set(self._processing.get(self.entry, ()))
