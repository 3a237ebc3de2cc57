"""The base class of operators: an operator generates its part of the loop, and takes part in the subtask's life."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, Protocol

from ekorn.codegen.chain_operator import Emit, GenerateRecord, Out, RecordErrorHandler
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.errors import preview
from ekorn.functions.record_functions import Function, WrappingFunction
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.state.checkpointed import CheckpointedFunction, CheckpointListener, ListCheckpointed
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.keygroups import KeyGroup, KeyGroupRange, key_group, key_group_range
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.contexts.function_contexts import InitializationContext, SnapshotContext
from ekorn.operators.contexts.subtask_context import StateStore, SubtaskContext
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import SubtaskOrder
from ekorn.state.evolution.restore_checks import check_keys
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import NO_KEY, KeyedStateBackend, RestoredTables
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import OperatorState
from ekorn.state.raw_state import RawOutputs, RestoredRawState
from ekorn.state.rocksdb.local_folder import local_folder
from ekorn.state.rocksdb.rocksdb_backend import RocksDBKeyedBackend
from ekorn.state.snapshots import OperatorRestore, StateInfo
from ekorn.storage.file_store import FileStore

NO_RELIEF: Iterator[bool] = repeat(True)
"""The relief of a chain whose output is not held: nothing leaves between its results."""


def _list_checkpointed(number: int) -> ListStateDescriptor:
    """Return the state in which a `ListCheckpointed` function of an operator is saved; a window has two functions."""
    return ListStateDescriptor("_list_checkpointed" if number == 0 else f"_list_checkpointed/{number}")


def _parts(function: ListCheckpointed[Any], given: Any) -> list[Any]:
    """Return the list that a `ListCheckpointed` function returned. A str is refused: it is iterable, but not a list."""
    if given is not None and (isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable)):
        raise TypeError(
            f"{type(function).__name__}.snapshot_state returned {preview(given)}; return None or a list of parts, each "
            f"of which may go to another subtask; return state that cannot be split as a list with one part"
        )
    return list(given or ())


class RuntimeOperator(ABC):
    """One operator of a chain in one subtask."""

    needs_out = False
    """Whether the operator also emits outside the loop (from timers, at the end); the compiler then sets `out`."""

    emits_to_sides = False
    """Whether a function emits to side outputs by its context, while its record is processed in the loop."""

    handles_record_errors = False
    """Whether the generated statements decide about exceptions of single records themselves."""

    holds_watermarks = False
    """Whether the operator itself forwards watermarks and idleness, through `forward_watermark` and `forward_idle`."""

    may_be_full = False
    """Whether `is_full` may ever be true."""

    first_input: int | None = None
    """The input that is read first: in each epoch before the other inputs, in BATCH mode to its end; None: no input."""

    def __init__(self, operator: Operator, environment: SubtaskEnvironment) -> None:
        self.operator = operator
        self.environment = environment
        self.out: Out = _nowhere
        self.side_out: dict[str, Out] = {}
        self.record_errors: RecordErrorHandler | None = None  # set by the subtask, if records may be skipped
        self.relief: Iterator[bool] = NO_RELIEF  # loops over results are compressed by it: see `results.py`
        self.emits_from: Callable[..., Any] | None = None  # the user's method whose results leave outside the loop
        self.forward_watermark: Callable[[int], None] = _nothing_held
        self.forward_idle: Callable[[bool], None] = _nothing_held
        self.backend: KeyedStateBackend | None = make_backend(environment) if operator.key is not None else None
        if self.backend is not None and operator.key is not None:
            self.backend.key_type = operator.key.type_info
        self.states = OperatorStates()

    @abstractmethod
    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        """Generate the statements that process one record.

        Args:
            value: The variable that holds the record.
            time: The variable that holds the record's timestamp, or `None`.
            emit: Generates the statements for an emitted record.
            side: The same for each side output that is read, by tag id.
        """

    def inputs(self) -> tuple[GenerateRecord, ...]:
        """Return the function that generates the loop of each input. Only the head of a chain can have two inputs."""
        return (self.generate,)

    def functions(self) -> Iterable[Any]:
        """Return the user's function objects in this operator."""
        return ()

    def _innermost(self) -> Iterator[Any]:
        """Yield the functions as the user gave them: they may take part in checkpoints."""
        for function in self.functions():
            yield function.wrapped if isinstance(function, WrappingFunction) else function

    def restore(self, restored: OperatorRestore | None, parts: OperatorState | None, store: FileStore | None) -> None:
        """Take over restored state. Called before all other methods."""
        self._restored = restored
        if restored is None:
            return
        self.states = OperatorStates(parts, restored.states, restored.label)
        if self.backend is not None:
            assert store is not None
            check_keys(restored.states, self.backend.key_type, restored.label)
            self.backend.restore(restored, store, self.key_groups(), self.translate)

    def hint(self, about: str, text: str) -> None:
        """Show a hint in the driver: the operator runs, and probably not as its author wanted."""
        self.environment.hint(self.operator, about, text)

    def translate(self, tables: RestoredTables) -> None:  # noqa: B027
        """Convert restored tables to the layout that this operator uses."""

    def key_groups(self) -> KeyGroupRange:
        """Return the key groups of this subtask."""
        vertex = self.environment.vertex
        return key_group_range(vertex.max_parallelism, vertex.parallelism, self.environment.index)

    def initialize(self) -> None:
        """Let the user's functions register and read their state."""
        restored = self._restored
        for number, function in enumerate(self._innermost()):
            if isinstance(function, CheckpointedFunction):
                context = InitializationContext(
                    restored.restored_checkpoint_id if restored is not None else None,
                    restored=restored is not None,
                    operator_store=self.states,
                    keyed_store=StateStore(self.backend),
                    raw=RestoredRawState(self.states.restored_raw, number, self._own_key_groups()),
                )
                function.initialize_state(context)
            elif isinstance(function, ListCheckpointed):
                elements = list(self.states.get_list_state(_list_checkpointed(number)).get())
                if restored is not None:
                    function.restore_state(elements)
        self.states.restored_raw = {}

    def _own_key_groups(self) -> KeyGroupRange | None:
        return None if self.backend is None else self.key_groups()

    def open(self) -> None:
        """Open the user's functions."""
        context = self.runtime_context()
        for function in self.functions():
            if isinstance(function, Function):
                function.set_runtime_context(context)
                function.open(context)

    def runtime_context(self) -> RuntimeContext:
        """Return the context that `open` is given."""
        metrics, parameters = self.metric_group(), self.operator.parameters
        return SubtaskContext(self.environment, self.backend, metrics, parameters)

    def metric_group(self) -> MetricGroup:
        """Return the group of the operator's metrics, which include its function's metrics."""
        environment, operator = self.environment, self.operator
        variables = {
            "job_id": environment.job_id,
            "task_name": environment.vertex.name,
            "operator_id": operator.id,
            "operator_name": operator.name,
            "subtask_index": str(environment.index),
        }
        return environment.metrics.setdefault(operator.id, MetricGroup(environment.clock, variables))

    def register_backend_metrics(self) -> None:
        """Register the metrics of the state backend itself."""
        found = {} if self.backend is None else self.backend.native_metrics()
        for name, read in found.items():
            self.metric_group().gauge(name, read)

    def connect_time(self, forward_watermark: Callable[[int], None], forward_idle: Callable[[bool], None]) -> None:
        """Take the callables through which an operator that holds watermarks forwards them. Called after `open`."""
        self.forward_watermark = forward_watermark
        self.forward_idle = forward_idle

    def on_watermark(self, watermark_ms: int) -> None:  # noqa: B027
        """Advance event time and emit what is due.

        The subtask then forwards the watermark, unless this operator holds it.
        """

    def on_idle(self, idle: bool) -> None:  # noqa: B027
        """Take note that the input is idle, or active again."""

    def on_clock(self, now_ms: int) -> None:  # noqa: B027
        """Advance processing time and emit what is due."""

    def begin_epoch(self, order: SubtaskOrder) -> None:  # noqa: B027
        """Take the order of an epoch: before its first record, or at its mark in a job that runs continuously."""

    def emit_periodic_watermark(self) -> None:  # noqa: B027
        """Emit the watermark that is due: at the end of an epoch, or by the interval if the job runs continuously."""

    def end_epoch(self) -> None:  # noqa: B027
        """Complete an epoch, after its last record."""

    def next_timer_ms(self) -> int | None:
        """Return the next processing time at which the operator has something to do."""
        return None

    @property
    def is_full(self) -> bool:
        """Whether records wait in the operator for others to leave. A continuous job sends it no records meanwhile."""
        return False

    def end_key(self) -> None:  # noqa: B027
        """Complete the current key, after its last record. BATCH mode only."""

    def may_finish(self) -> bool:
        """Return whether the operator gets no more records. Asked in every epoch once the input has ended."""
        return True

    def set_open_loops(self, loops: frozenset[int]) -> None:  # noqa: B027
        """Take note of the feedback loops that are open, before the first record of an epoch."""

    def open_loop(self) -> int | None:
        """Return the feedback loop that this operator keeps open, if any."""
        return None

    def finish(self) -> None:  # noqa: B027
        """Emit what is left, after the last record of the input."""

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:  # noqa: B027
        """Bring the operator's own state up to date for a snapshot. After an exception here the attempt fails."""

    def snapshot_functions(self, checkpoint_id: int, now_ms: int) -> None:
        """Call `snapshot_state` of the user's functions. After an exception there the subtask continues."""
        written: OperatorState = {}
        for number, function in enumerate(self._innermost()):
            if isinstance(function, CheckpointedFunction):
                raw = RawOutputs(number, self._own_key_groups(), self._key_group_of)
                function.snapshot_state(SnapshotContext(checkpoint_id, now_ms, raw))
                written |= raw.take()
            elif isinstance(function, ListCheckpointed):
                parts = function.snapshot_state(checkpoint_id, now_ms)
                self.states.get_list_state(_list_checkpointed(number)).update(_parts(function, parts))
        self.states.set_raw(written)

    def _key_group_of(self, key: Any) -> KeyGroup:
        return key_group(key, self.environment.vertex.max_parallelism)

    def after_snapshot(self) -> None:  # noqa: B027
        """Continue after the state of all operators of the subtask was captured, or after the capture failed."""

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """Take note that a checkpoint is complete on all subtasks."""
        if self.backend is not None:
            self.backend.snapshot_completed(checkpoint_id)
        for function in self._innermost():
            if isinstance(function, CheckpointListener):
                function.notify_checkpoint_complete(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Take note that a checkpoint was aborted."""
        for function in self._innermost():
            if isinstance(function, CheckpointListener):
                function.notify_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        """Close all of the user's functions, then raise the first error."""
        errors: list[Exception] = []
        if self.backend is not None:  # `close` has no current key
            self.backend.cell[0] = self.backend.window_cell[0] = NO_KEY
        for function in self.functions():
            if isinstance(function, Function):
                try:
                    function.close()
                except Exception as error:  # the other functions still have resources to release
                    errors.append(error)
        if self.backend is not None:
            self.backend.close()
        if errors:
            raise errors[0]

    def infos(self) -> tuple[StateInfo, ...]:
        """Return the descriptions of the operator's states."""
        keyed = self.backend.infos() if self.backend is not None else ()
        return keyed + self.states.infos()

    def restored_names(self) -> frozenset[str]:
        """Return the names of the states in the checkpoint that the operator was restored from."""
        return frozenset() if self._restored is None else frozenset(info.name for info in self._restored.states)

    def undeclared_states(self) -> tuple[str, ...]:
        """Return the names of restored states that the operator has not declared so far."""
        keyed = self.backend.undeclared() if self.backend is not None else ()
        return keyed + self.states.undeclared()

    _restored: OperatorRestore | None = None


class HasFunction(Protocol):
    """A spec with one function of the user."""

    @property
    def function(self) -> Any: ...


class UserFunctionOperator(RuntimeOperator):
    """An operator that calls one function of the user."""

    def __init__(self, operator: Operator, spec: HasFunction, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)


def method_of(function: Any, kind: type, name: str) -> Callable[..., Any]:
    """Return the method of a function object, or the plain callable itself."""
    found: Callable[..., Any] = getattr(function, name) if isinstance(function, kind) else function
    return found


def _nothing_held(news: Any) -> None:
    raise AssertionError("an operator without holds_watermarks must not forward watermarks")


def _nowhere(value: Any, time: int | None) -> None:
    raise AssertionError("an operator without needs_out must not emit outside the loop")


def make_backend(environment: SubtaskEnvironment) -> KeyedStateBackend:
    """Make a keyed state backend of the kind that the job is configured with."""
    tracked = environment.graph.settings.checkpointing
    if environment.on_rocksdb:
        return _make_rocksdb(environment, tracked=tracked)
    return HeapStateBackend(
        tracked=tracked, incremental=environment.incremental, clock=environment.clock, read=environment.read_tables
    )


def _make_rocksdb(environment: SubtaskEnvironment, *, tracked: bool) -> KeyedStateBackend:
    settings = environment.rocksdb or RocksDBSettings()
    folder = local_folder(settings.local_directories or (environment.scratch_root(),), environment.index)
    vertex = environment.vertex
    return RocksDBKeyedBackend(
        folder.path,
        on_close=folder.close,
        max_parallelism=vertex.max_parallelism,
        key_groups=key_group_range(vertex.max_parallelism, vertex.parallelism, environment.index),
        settings=settings,
        tracked=tracked,
        incremental=environment.incremental,
        clock=environment.clock,
        reuses_restored=environment.reuses_restored,
    )
