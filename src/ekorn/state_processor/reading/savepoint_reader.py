"""`SavepointReader`: the state of a savepoint or checkpoint as bounded streams, or as data sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Any, Generic, Literal, TypeVar, cast, overload

from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.execution_environment import ExecutionEnvironment
from ekorn.checkpoint.signing import read_signing_key
from ekorn.clock import Clock, ManualClock, SystemClock
from ekorn.config import options
from ekorn.config.state_backend import StateBackend
from ekorn.errors import StateError
from ekorn.functions.record_functions import AggregateFunction, ReduceFunction
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.evictors import Evictor
from ekorn.graph.specs import AggregateContents, ListContents, ReduceContents, WindowContents, WindowSpec
from ekorn.keygroups import user_key
from ekorn.program.checks.argument_checks import check_function, check_instance
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream
from ekorn.state.evolution.restore_checks import check_keys
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import OperatorState, redistribute
from ekorn.state.raw_state import KeyGroupBytes, decode_key_group
from ekorn.state.snapshots import RAW_KEYED, RAW_OPERATOR, StateInfo
from ekorn.state_processor.operator_identifier import OperatorIdentifier
from ekorn.state_processor.reading.part_source import (
    PartSource,
    TimersByEntry,
    Times,
    open_part,
    own_function,
    timers_of,
)
from ekorn.state_processor.reading.reader_functions import KeyedStateReaderFunction, WindowReaderFunction
from ekorn.state_processor.reading.reading_context import ReadingContext
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, StoredSavepoint, open_savepoint
from ekorn.state_processor.reading.window_source import WindowSource
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["KeyedStateSource", "OperatorStateSource", "RawStateSource", "SavepointReader", "WindowSavepointReader"]

Uid = OperatorIdentifier | str
Environment = StreamExecutionEnvironment | ExecutionEnvironment
S = TypeVar("S", bound=DataStream | DataSet)


class SavepointReader(Generic[S]):
    """Reads the state of a savepoint, or of a checkpoint, as bounded streams or as data sets. Nothing in it is changed.

    Keyed state is read in parallel, one part for each subtask that stored some.

    Example:
        reader = SavepointReader.read(env, "/savepoints/savepoint-ab12cd-0123456789ab")
        counts = reader.read_keyed_state("count", ReadCounts())
        counts.to_data_frame("word string, count long")
    """

    def __init__(self, env: Environment, stored: StoredSavepoint, state_backend: StateBackend | None) -> None:
        self._env = env
        self._stored = stored
        self._on_rocksdb = None if state_backend is None else state_backend.backend_name == "rocksdb"

    @overload
    @staticmethod
    def read(
        env: StreamExecutionEnvironment, path: str | os.PathLike[str], state_backend: StateBackend | None = None
    ) -> SavepointReader[DataStream]: ...

    @overload
    @staticmethod
    def read(
        env: ExecutionEnvironment, path: str | os.PathLike[str], state_backend: StateBackend | None = None
    ) -> SavepointReader[DataSet]: ...

    @staticmethod
    def read(
        env: Environment, path: str | os.PathLike[str], state_backend: StateBackend | None = None
    ) -> SavepointReader[Any]:
        """Open a savepoint or checkpoint.

        Args:
            env: The environment whose jobs read the state. The results are data sets if it is one of the DataSet API.
            path: Its directory or its `_metadata` file, as a local path or a URL that all machines see.
            state_backend: Where the state of a part is put while it is read: `EmbeddedRocksDBStateBackend` for parts
                that are larger than memory. By default on disk if RocksDB wrote the part, else in memory.
        """
        if not isinstance(env, (StreamExecutionEnvironment, ExecutionEnvironment)):
            raise TypeError(f"SavepointReader.read() takes an environment and a path, got {env!r}")
        if state_backend is not None:
            check_instance("SavepointReader.read", state_backend, StateBackend)
        key = read_signing_key(_signing_key_file(env))
        return SavepointReader(env, open_savepoint(os.fspath(path), key), state_backend)

    def read_keyed_state(
        self,
        uid: Uid,
        function: KeyedStateReaderFunction,
        key_type: TypeInformation | None = None,
        out_type: TypeInformation | None = None,
        *,
        key_filter: Callable[[Any], bool] | None = None,
    ) -> S:
        """Read the keyed state of an operator.

        Args:
            uid: The operator.
            function: Reads the state of one key at a time.
            key_type: The type of the keys. A savepoint whose keys were declared as another type is refused.
            out_type: The type of what the function yields.
            key_filter: Returns whether a key is read; None reads all keys.
        """
        check_function("read_keyed_state", function, KeyedStateReaderFunction, None)
        stored = self._keyed(uid, key_type)
        source = KeyedStateSource(stored, function, on_rocksdb=self._on_rocksdb, key_filter=key_filter)
        return self._stream(source, f"keyed state of {stored.metadata.name}", out_type)

    def read_list_state(self, uid: Uid, name: str, type_info: TypeInformation | None = None) -> S:
        """Read the elements of a list state of all subtasks."""
        return self._read_list(uid, name, type_info, "list")

    def read_union_state(self, uid: Uid, name: str, type_info: TypeInformation | None = None) -> S:
        """Read the elements of a union list state, each of them once."""
        return self._read_list(uid, name, type_info, "union")

    def read_broadcast_state(
        self,
        uid: Uid,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ) -> S:
        """Read the entries of one copy of a broadcast state, as pairs of key and value."""
        stored = self._stored.operator(uid)
        stored.state(name, of_subtask=True)
        descriptor = MapStateDescriptor(name, key_type_info, value_type_info)
        out_type = None
        if key_type_info is not None and value_type_info is not None:
            out_type = Types.TUPLE([key_type_info, value_type_info])
        return self._stream(OperatorStateSource(stored, descriptor, "broadcast"), f"broadcast state {name}", out_type)

    def read_raw_operator_state(self, uid: Uid) -> S:
        """Read the partitions of raw operator state of all subtasks, each as bytes."""
        return self._read_raw(uid, RAW_OPERATOR)

    def read_raw_keyed_state(self, uid: Uid) -> S:
        """Read raw keyed state, as pairs of a key group and its bytes."""
        return self._read_raw(uid, RAW_KEYED)

    def _read_raw(self, uid: Uid, kind: str) -> S:
        stored = self._stored.operator(uid)
        info = next((info for info in stored.metadata.states if info.kind == kind), None)
        if info is None:
            raise StateError(f"operator {stored.label} has no {kind} state")
        return self._stream(RawStateSource(stored, info), f"{kind} state", None)

    def window(self, assigner: WindowAssigner[Any, Any]) -> WindowSavepointReader[S]:
        """Read the windows of an operator that has this assigner."""
        check_instance("window", assigner, WindowAssigner)
        return WindowSavepointReader(self, assigner, None)

    def _read_list(self, uid: Uid, name: str, type_info: TypeInformation | None, read_as: ReadAs) -> S:
        stored = self._stored.operator(uid)
        stored.state(name, of_subtask=True)
        source = OperatorStateSource(stored, ListStateDescriptor(name, type_info), read_as)
        return self._stream(source, f"{read_as} state {name}", type_info)

    def _keyed(self, uid: Uid, key_type: TypeInformation | None) -> StoredOperator:
        stored = self._stored.operator(uid)
        check_keys(stored.metadata.states, key_type, stored.label)
        return stored

    def _stream(self, source: PartSource, name: str, type_info: TypeInformation | None) -> S:
        if isinstance(self._env, ExecutionEnvironment):
            return cast(S, self._env.create_input(source, type_info).name(name))
        return cast(S, self._env.from_source(source, WatermarkStrategy.no_watermarks(), name, type_info))


class WindowSavepointReader(Generic[S]):
    """Reads the windows of an operator. The trigger of the operator need not be known."""

    def __init__(
        self, reader: SavepointReader[S], assigner: WindowAssigner[Any, Any], evictor: Evictor[Any, Any] | None
    ) -> None:
        self._reader: SavepointReader[S] = reader
        self._assigner = assigner
        self._evictor = evictor

    def evictor(self, evictor: Evictor[Any, Any]) -> WindowSavepointReader[S]:
        """Say that the operator has an evictor, with which windows keep all records. Nothing is evicted here."""
        check_instance("evictor", evictor, Evictor)
        return WindowSavepointReader(self._reader, self._assigner, evictor)

    def reduce(
        self,
        uid: Uid,
        function: Callable[[Any, Any], Any] | ReduceFunction,
        reader_function: WindowReaderFunction,
        *,
        key_type: TypeInformation | None = None,
        reduce_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Read windows that reduce their records. The reader gets the one reduced value.

        Args:
            uid: The operator.
            function: The operator's reduce function.
            reader_function: Reads one window at a time.
            key_type: The type of the keys. A savepoint whose keys were declared as another type is refused.
            reduce_type: The type of the records, if the program declares one.
            output_type: The type of what the reader yields.
        """
        check_function("reduce", function, ReduceFunction, 2)
        return self._read(uid, ReduceContents(function), reader_function, key_type, reduce_type, output_type)

    def aggregate(
        self,
        uid: Uid,
        aggregate_function: AggregateFunction,
        reader_function: WindowReaderFunction,
        *,
        key_type: TypeInformation | None = None,
        acc_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Read windows that aggregate their records. The reader gets the one result of the aggregate.

        The arguments are those of `reduce`; `acc_type` is the type of the records if the operator has an evictor.
        """
        check_function("aggregate", aggregate_function, AggregateFunction, None)
        return self._read(uid, AggregateContents(aggregate_function), reader_function, key_type, acc_type, output_type)

    def process(
        self,
        uid: Uid,
        reader_function: WindowReaderFunction,
        *,
        key_type: TypeInformation | None = None,
        state_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> S:
        """Read windows that keep their records, for `process` or `apply`. The reader gets the records.

        The arguments are those of `reduce`; `state_type` is the type of the records.
        """
        return self._read(uid, ListContents(), reader_function, key_type, state_type, output_type)

    def _read(  # noqa: PLR0917 - the types follow one another in all three methods
        self,
        uid: Uid,
        contents: WindowContents,
        function: WindowReaderFunction,
        key_type: TypeInformation | None,
        element_type: TypeInformation | None,
        out_type: TypeInformation | None,
    ) -> S:
        check_function("window", function, WindowReaderFunction, None)
        reader = self._reader
        stored = reader._keyed(uid, key_type)
        trigger = self._assigner.get_default_trigger(reader._env)
        spec = WindowSpec(assigner=self._assigner, trigger=trigger, contents=contents, evictor=self._evictor)
        source = WindowSource(stored, spec, function, on_rocksdb=reader._on_rocksdb, element_type=element_type)
        return reader._stream(source, f"windows of {stored.metadata.name}", out_type)


def _signing_key_file(env: Environment) -> str | None:
    if isinstance(env, StreamExecutionEnvironment):
        return env.job_settings("SavepointReader").checkpoints.signing_key_file
    return options.SIGNING_KEY_FILE.read(env.get_configuration())


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
        # All parts and attempts use one time: a part that is read again must not lose entries that have expired since.
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


ReadAs = Literal["list", "union", "broadcast"]


class OperatorStateSource(PartSource):
    """The elements of a list, or the entries of a broadcast map as pairs.

    A list is read as its subtasks stored it. Union and broadcast state are read once, as one subtask would restore
    them.
    """

    def __init__(
        self, stored: StoredOperator, descriptor: ListStateDescriptor | MapStateDescriptor, read_as: ReadAs
    ) -> None:
        self._stored = stored
        self._descriptor = descriptor
        self._read_as = read_as

    def part_count(self) -> int:
        """Return the number of subtasks for a list, else 1."""
        return self._stored.metadata.parallelism if self._read_as == "list" else 1

    def read_part(self, part: int, subtask_index: int) -> Generator[Any, None, None]:
        """Yield the elements of one part."""
        stored = self._stored
        elements: OperatorState = (
            (stored.operator_state(part) or {})
            if self._read_as == "list"
            else redistribute(stored.operator_states(), 1, 0)
        )
        states = OperatorStates(elements, stored.metadata.states, stored.label)
        match self._descriptor:
            case MapStateDescriptor() as descriptor:
                yield from states.get_broadcast_state(descriptor).items()
            case descriptor if self._read_as == "union":
                yield from states.get_union_list_state(descriptor).get()
            case descriptor:
                yield from states.get_list_state(descriptor).get()

    def __repr__(self) -> str:
        return f"OperatorStateSource({self._descriptor.name!r} of {self._stored.label})"


class RawStateSource(PartSource):
    """The raw state of an operator: the bytes of each partition, or each key group with its bytes."""

    def __init__(self, stored: StoredOperator, info: StateInfo) -> None:
        self._stored = stored
        self._info = info

    def part_count(self) -> int:
        """Return the number of subtasks."""
        return self._stored.metadata.parallelism

    def read_part(self, part: int, subtask_index: int) -> Generator[bytes | KeyGroupBytes, None, None]:
        """Yield the raw state that one subtask stored."""
        states = self._stored.operator_state(part) or {}
        elements = cast("list[bytes]", states[self._info.name][1]) if self._info.name in states else []
        for element in elements:
            yield decode_key_group(element) if self._info.kind == RAW_KEYED else bytes(element)

    def __repr__(self) -> str:
        return f"RawStateSource({self._info.name!r} of {self._stored.label})"
