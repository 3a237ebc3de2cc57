"""The job as it runs: vertices (chains of operators), the exchanges between them, and their levels.

These are values only. `graph/translation.py` makes them from the stream graph, `subtask` runs a vertex, and `engine`
moves blobs over exchanges.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields
from typing import Any, NewType

import cloudpickle

from ekorn.config import options
from ekorn.config.settings.fields import filled_by
from ekorn.config.settings.memory_settings import JobMemory, SlotMemory
from ekorn.config.settings.metric_settings import StateLatencySettings
from ekorn.functions.dead_letters import OnRecordError
from ekorn.graph.specs import KeySpec, OperatorSpec, Partitioning, SourceFunctionSpec, SourceSpec, TaskStepSpec
from ekorn.legacy.time_characteristic import TimeCharacteristic
from ekorn.types.type_information import TypeInformation

VertexId = NewType("VertexId", int)
OperatorId = NewType("OperatorId", str)  # 32 hex digits: the hash of the uid, or of the position in the graph


@dataclass(frozen=True)
class Operator:
    """One operator inside a chain."""

    id: OperatorId
    uid: str | None
    name: str
    spec: OperatorSpec
    key: KeySpec | None = None  # the key of the first input; None on a stream without keys
    input_type: TypeInformation | None = None
    output_type: TypeInformation | None = None
    description: str | None = None
    input_types: tuple[TypeInformation | None, ...] = ()  # one for each input if there are several
    keys: tuple[KeySpec | None, ...] = ()  # one for each input if there are several
    buffer_timeout_ms: int | None = None  # None: the job's default
    parameters: dict[str, str] = field(default_factory=dict)  # the function reads them from its context
    on_record_error: OnRecordError = OnRecordError.FAIL

    def key_of(self, input_index: int) -> KeySpec | None:
        """Return how the key of an input's records is found; None for an input without keys."""
        return self.keys[input_index] if self.keys else self.key

    def __reduce__(self) -> tuple[Any, ...]:
        # Flink: every operator's function is serialized separately. Two operators that were given one function object,
        # or two functions that close over one list, do not share it once they run.
        return _unpickle, (cloudpickle.dumps([getattr(self, f.name) for f in fields(self)]), Operator)


@dataclass(frozen=True)
class ChainLink:
    """Connects two operators inside a chain: operator `source` emits to `target`, on the output with `tag`."""

    source: int
    target: int
    tag: str | None = None  # names a side output; None: the main output


@dataclass(frozen=True)
class Exchange:
    """Connects two vertices: `source_operator` of the source's chain emits to the head of the target's chain."""

    id: int
    source: VertexId
    source_operator: int
    target: VertexId
    partitioning: Partitioning
    tag: str | None = None
    input_index: int = 0
    type_info: TypeInformation | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (cloudpickle.dumps([getattr(self, f.name) for f in fields(self)]), Exchange)


def _unpickle(pickled: bytes, cls: type) -> Any:
    """Return an object whose fields were pickled separately from all other objects."""
    return cls(*pickle.loads(pickled))


@dataclass(frozen=True)
class Vertex:
    """A chain of operators that run together in each subtask. Operator 0 is the head."""

    id: VertexId
    name: str
    operators: tuple[Operator, ...]
    links: tuple[ChainLink, ...]
    parallelism: int
    max_parallelism: int
    slot_group: str = "default"
    level: int = 0
    # Whether the user set it; then a checkpoint with another max parallelism is refused.
    max_parallelism_set: bool = False

    @property
    def is_source(self) -> bool:
        """Whether the head is a source."""
        spec = self.operators[0].spec
        return isinstance(spec, (SourceSpec, SourceFunctionSpec)) or (isinstance(spec, TaskStepSpec) and spec.is_source)


@dataclass(frozen=True)
class CachedFile:
    """A file or folder that is available in every slot under a name."""

    name: str
    path: str
    executable: bool = False


@dataclass(frozen=True)
class ExecutionSettings:
    """Settings of the whole job, parsed from the configuration.

    Attributes:
        in_slots: Whether subtasks run in slots. Those of DataSet programs are Spark's tasks.
    """

    batch: bool = False
    in_slots: bool = True
    object_reuse: bool = filled_by(options.OBJECT_REUSE)
    blob_bytes: int = filled_by(options.BLOB_BYTES)
    batch_records_in_memory: int = filled_by(options.BATCH_RECORDS_IN_MEMORY)
    async_linger_ms: int = filled_by(options.ASYNC_LINGER)
    max_record_bytes: int = filled_by(options.MAX_RECORD_BYTES)
    slot_memory_bytes: int = filled_by(options.SLOT_MEMORY)
    auto_watermark_interval_ms: int = filled_by(options.AUTO_WATERMARK_INTERVAL)
    watermark_interval_set: bool = False  # whether the program or the configuration sets it
    held_watermark_warning_ms: int = filled_by(options.HELD_WATERMARK_WARNING)
    time_characteristic: TimeCharacteristic = filled_by(
        options.TIME_CHARACTERISTIC, by=lambda name: TimeCharacteristic[name]
    )
    job_parameters: dict[str, str] = filled_by(options.GLOBAL_JOB_PARAMETERS, by=dict)
    memory: JobMemory = field(default_factory=JobMemory)
    cached_files: tuple[CachedFile, ...] = ()
    checkpointing: bool = False
    unaligned: bool = False  # checkpoint marks may overtake records in flight; only with continuous execution
    record_error_limit: int | None = filled_by(options.RECORD_ERROR_LIMIT)
    all_frames: bool = filled_by(options.ERROR_FRAMES, by=lambda shown: shown == "all")
    releases_at_once: bool = False  # AT_LEAST_ONCE: sinks do not wait for their checkpoint to complete
    state_latency: StateLatencySettings | None = None  # how accesses to keyed state are timed; None: not at all
    restarts_regions: bool = filled_by(options.FAILOVER_STRATEGY, by=lambda strategy: strategy == "region")


@dataclass(frozen=True)
class JobGraph:
    """A job as it runs."""

    name: str
    vertices: tuple[Vertex, ...]  # in topological order; a vertex's id is its index
    exchanges: tuple[Exchange, ...]
    settings: ExecutionSettings

    def inputs_of(self, vertex: VertexId) -> tuple[Exchange, ...]:
        """Return the exchanges that end in a vertex."""
        return tuple(e for e in self.exchanges if e.target == vertex)

    def outputs_of(self, vertex: VertexId) -> tuple[Exchange, ...]:
        """Return the exchanges that start in a vertex."""
        return tuple(e for e in self.exchanges if e.source == vertex)

    @property
    def levels(self) -> tuple[tuple[Vertex, ...], ...]:
        """The vertices by topological depth."""
        depth = max(v.level for v in self.vertices) + 1
        return tuple(tuple(v for v in self.vertices if v.level == d) for d in range(depth))

    def slot_of(self, vertex: Vertex, subtask: int) -> int:
        """Return the slot of a subtask: slot-sharing groups side by side, subtask i in slot i of its group."""
        first = 0
        for group, size in self.slot_groups():
            if group == vertex.slot_group:
                return first + subtask
            first += size
        raise AssertionError(f"vertex {vertex.name!r} is in no slot-sharing group")

    def slot_groups(self) -> tuple[tuple[str, int], ...]:
        """Return each slot-sharing group with its number of slots: the highest parallelism in the group."""
        sizes: dict[str, int] = {}
        for vertex in self.vertices:
            sizes[vertex.slot_group] = max(sizes.get(vertex.slot_group, 0), vertex.parallelism)
        return tuple(sizes.items())

    def memory_of(self, slot: int) -> SlotMemory:
        """Return what a slot may use."""
        first = 0
        for group, size in self.slot_groups():
            if slot < first + size:
                return self.settings.memory.of(group)
            first += size
        return self.settings.memory.other  # no subtask of the job is in the slot

    @property
    def slot_count(self) -> int:
        """The number of slots the job needs; 0 if its subtasks are Spark's tasks."""
        return 0 if not self.settings.in_slots else sum(size for _, size in self.slot_groups())
