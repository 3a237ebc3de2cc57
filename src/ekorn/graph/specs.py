"""Operators as values: frozen, printable, comparable. `operators/build.py` builds running operators from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ekorn.functions.async_functions import AsyncRetryStrategy
from ekorn.functions.record_functions import AggregateFunction
from ekorn.functions.sink_contract import GloballyCommittedSink, Sink, SinkFunction
from ekorn.functions.source_contract import Source, SourceFunction
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.evictors import Evictor
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.graph.column_specs import ColumnSpec
from ekorn.types.type_information import TypeInformation

UserFunction = Any  # a Function object or a plain callable, as the user gave it


@dataclass(frozen=True)
class KeySpec:
    """Finds the key of a record."""

    selector: UserFunction
    type_info: TypeInformation | None = None


@dataclass(frozen=True)
class SourceSpec:
    source: Source
    watermarks: WatermarkStrategy | None = None


@dataclass(frozen=True)
class SourceFunctionSpec:
    function: SourceFunction[Any]


@dataclass(frozen=True)
class MapSpec:
    function: UserFunction


@dataclass(frozen=True)
class FlatMapSpec:
    function: UserFunction


@dataclass(frozen=True)
class FilterSpec:
    function: UserFunction


@dataclass(frozen=True)
class ProjectSpec:
    fields: tuple[int, ...]


@dataclass(frozen=True)
class ProcessSpec:
    """A `ProcessFunction`, or on a keyed stream a `KeyedProcessFunction`."""

    function: UserFunction


@dataclass(frozen=True)
class ReduceSpec:
    """A rolling reduce per key; also sum, min, max, min_by and max_by, whose functions are built in."""

    function: UserFunction


@dataclass(frozen=True)
class FoldSpec:
    initial: Any
    function: UserFunction


@dataclass(frozen=True)
class WithStateSpec:
    """`map_with_state` and its filter and flat-map forms: `function(value, state) -> (result, state)`."""

    form: Literal["map", "filter", "flat_map"]
    function: Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class TimestampsSpec:
    watermarks: WatermarkStrategy


@dataclass(frozen=True)
class ListContents:
    """A window keeps all its records."""


@dataclass(frozen=True)
class ReduceContents:
    """A window keeps one value: its records reduced."""

    function: UserFunction


@dataclass(frozen=True)
class AggregateContents:
    """A window keeps one accumulator."""

    function: AggregateFunction


@dataclass(frozen=True)
class FoldContents:
    """A window keeps one value: its records folded into a copy of the initial value."""

    initial: Any
    function: UserFunction


WindowContents = ListContents | ReduceContents | AggregateContents | FoldContents


@dataclass(frozen=True)
class WindowSpec:
    """Windows of a keyed stream; a constant key makes them windows of the whole stream.

    When a window fires, `function` gets its contents. Without a function the value of a reduce, an aggregate or a fold
    is itself the result.
    """

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: WindowContents
    function: UserFunction = None
    evictor: Evictor[Any, Any] | None = None
    lateness_ms: int = 0
    late_tag: str | None = None


@dataclass(frozen=True)
class IntervalJoinSpec:
    """Pairs of records (0, left) and (1, right) of a key whose times are `lower_ms` to `upper_ms` apart, inclusive."""

    lower_ms: int
    upper_ms: int
    function: UserFunction
    left_late_tag: str | None = None
    right_late_tag: str | None = None


@dataclass(frozen=True)
class FeedbackHeadSpec:
    """The start of a feedback loop: emits the records that the tail took.

    Args:
        loop: The number of the loop; its tail has the same number.
        max_wait_ms: The loop ends once its input has ended and nothing was fed back for this long; 0: never.
        tag: The side output for records that were fed back; None: the main output, together with the input.
    """

    loop: int
    max_wait_ms: int = 0
    tag: str | None = None


@dataclass(frozen=True)
class FeedbackTailSpec:
    """The end of a feedback loop: takes the records to feed back to the head in the same subtask."""

    loop: int


@dataclass(frozen=True)
class CoMapSpec:
    """A `CoMapFunction` over two connected streams."""

    function: UserFunction


@dataclass(frozen=True)
class CoFlatMapSpec:
    """A `CoFlatMapFunction` over two connected streams."""

    function: UserFunction


@dataclass(frozen=True)
class CoProcessSpec:
    """A `CoProcessFunction`, or on two keyed streams a `KeyedCoProcessFunction`."""

    function: UserFunction


@dataclass(frozen=True)
class BroadcastProcessSpec:
    """A stream (input 0) connected to a broadcast stream (input 1). Only input 1 may write the broadcast states."""

    function: UserFunction
    descriptors: tuple[MapStateDescriptor, ...]


@dataclass(frozen=True)
class AsyncSpec:
    """Requests to other systems by an `AsyncFunction`, or with a batch size by an `AsyncBatchFunction`.

    Args:
        timeout_ms: How long a request may take with all its attempts; 0: no timeout.
        capacity: The maximum number of requests whose results have not left.
        batch_timeout_ms: How long a batch may wait to be full; None: until it is full, or the input ends.
    """

    function: UserFunction
    ordered: bool
    timeout_ms: int
    capacity: int
    retry: AsyncRetryStrategy[Any]
    batch_size: int | None = None
    batch_timeout_ms: int | None = None


@dataclass(frozen=True)
class SplitSpec:
    """Emits every record, and a copy on the tag of each selection (`legacy/selection.py`) that selects it."""

    selector: UserFunction


@dataclass(frozen=True)
class SinkFunctionSpec:
    function: SinkFunction[Any]


@dataclass(frozen=True)
class WriterSpec:
    """A `Sink` given to `sink_to`: a writer per subtask, and a committer."""

    sink: Sink[Any]


@dataclass(frozen=True)
class PreparingWriterSpec:
    """A `GloballyCommittedSink` given to `sink_to`: its writers, which emit what they have prepared."""

    sink: GloballyCommittedSink[Any]


@dataclass(frozen=True)
class GlobalCommitterSpec:
    """The committer behind the writers of a `GloballyCommittedSink`; it has one subtask."""

    sink: GloballyCommittedSink[Any]


@dataclass(frozen=True)
class PrintSpec:
    identifier: str | None = None


@dataclass(frozen=True)
class CollectSpec:
    """Records sent to the driver with the acknowledgement of the epoch, for `execute_and_collect`."""

    key: KeySpec | None = None


@dataclass(frozen=True)
class SavepointFilesSpec:
    """Where the state files of a savepoint are written, and in which form."""

    directory: str = field(repr=False)  # the address for `open_files`, which may hold credentials
    checkpoint_id: int
    inline_bytes: int = 0  # smaller payloads travel to the driver and into the metadata
    compressed: bool = False
    hashed: bool = False  # whether each file gets a SHA-256, which a signature needs


@dataclass(frozen=True)
class BootstrapSpec:
    """An operator that fills its state from its input, and writes it to a savepoint when the input ends.

    Its time stands still, so that no timer and no window fires. It emits one `SubtaskSnapshot`.
    """

    filled: ProcessSpec | WindowSpec
    operator_id: str  # the operator that restores the state
    uid: str | None
    files: SavepointFilesSpec


@dataclass(frozen=True)
class TaskStepSpec:
    """A step of a DataSet program. It runs in Spark's tasks, and is in a job graph to be shown.

    Attributes:
        is_source: Whether it reads the input of the program.
    """

    is_source: bool = False


OperatorSpec = (
    SourceSpec
    | SourceFunctionSpec
    | MapSpec
    | FlatMapSpec
    | FilterSpec
    | ProjectSpec
    | ProcessSpec
    | ReduceSpec
    | FoldSpec
    | WithStateSpec
    | TimestampsSpec
    | WindowSpec
    | IntervalJoinSpec
    | AsyncSpec
    | SplitSpec
    | CoMapSpec
    | CoFlatMapSpec
    | CoProcessSpec
    | BroadcastProcessSpec
    | FeedbackHeadSpec
    | FeedbackTailSpec
    | SinkFunctionSpec
    | WriterSpec
    | PreparingWriterSpec
    | GlobalCommitterSpec
    | PrintSpec
    | CollectSpec
    | BootstrapSpec
    | ColumnSpec
    | TaskStepSpec
)


@dataclass(frozen=True)
class Forward:
    """To the subtask with the same index."""


@dataclass(frozen=True)
class Rebalance:
    """Round robin over all subtasks."""


@dataclass(frozen=True)
class Rescale:
    """Round robin over the target subtasks that this subtask is connected to."""


@dataclass(frozen=True)
class Shuffle:
    """To a random subtask."""


@dataclass(frozen=True)
class Broadcast:
    """To every subtask."""


@dataclass(frozen=True)
class Global:
    """To subtask 0."""


@dataclass(frozen=True)
class Hash:
    """To the subtask that owns the key's group."""

    key: KeySpec


@dataclass(frozen=True)
class Custom:
    """To the subtask that the user's partitioner returns for the key."""

    partitioner: UserFunction
    key: KeySpec


@dataclass(frozen=True)
class Shipped:
    """To Spark's tasks of another stage of a DataSet program, in a way that is described in words."""

    strategy: str


Partitioning = Forward | Rebalance | Rescale | Shuffle | Broadcast | Global | Hash | Custom | Shipped
