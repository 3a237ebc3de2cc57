"""The job as it runs: vertices (chains of operators), the exchanges between them, and their levels.

Values only. `graph/translation.py` makes them from the stream graph; `runtime` runs a vertex; `engine` moves
what crosses an exchange.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields
from typing import Any, NewType

import cloudpickle

from tamias.config.time_characteristic import TimeCharacteristic
from tamias.graph.specs import KeySpec, OperatorSpec, Partitioning, SourceFunctionSpec, SourceSpec
from tamias.types.type_information import TypeInformation

VertexId = NewType("VertexId", int)
OperatorId = NewType("OperatorId", str)  # 32 hex digits: the hash of the uid, or of the place in the graph


@dataclass(frozen=True)
class Operator:
    """One operator inside a chain."""

    id: OperatorId
    uid: str | None
    name: str
    spec: OperatorSpec
    key: KeySpec | None = None  # set when it runs on a keyed stream
    input_type: TypeInformation | None = None
    output_type: TypeInformation | None = None
    description: str | None = None
    input_types: tuple[TypeInformation | None, ...] = ()  # of an operator with several inputs
    keys: tuple[KeySpec | None, ...] = ()  # likewise
    buffer_timeout_ms: int | None = None  # set for this operator; None: as the job says
    parameters: dict[str, str] = field(default_factory=dict)  # for its function to read

    def key_of(self, input_index: int) -> KeySpec | None:
        """How the key of an input's records is found."""
        return self.keys[input_index] if self.keys else self.key

    def __reduce__(self) -> tuple[Any, ...]:
        # Flink: every operator's function is serialized by itself. Two operators that were given one function, or
        # functions that close over one list, share neither once they run.
        return _alone, (cloudpickle.dumps([getattr(self, f.name) for f in fields(self)]), Operator)


@dataclass(frozen=True)
class ChainLink:
    """Inside a chain: what operator `source` emits (under a side output's tag id, or mainly) goes to `target`."""

    source: int
    target: int
    tag: str | None = None


@dataclass(frozen=True)
class Exchange:
    """Between vertices: what operator `source_operator` of the source's chain emits goes to the target's head."""

    id: int
    source: VertexId
    source_operator: int
    target: VertexId
    partitioning: Partitioning
    tag: str | None = None
    input_index: int = 0
    type_info: TypeInformation | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _alone, (cloudpickle.dumps([getattr(self, f.name) for f in fields(self)]), Exchange)


def _alone(pickled: bytes, cls: type) -> Any:
    """An object whose parts were pickled apart from everything else."""
    return cls(*pickle.loads(pickled))


@dataclass(frozen=True)
class Vertex:
    """A chain of operators that runs as one in each of its subtasks; operator 0 is the head."""

    id: VertexId
    name: str
    operators: tuple[Operator, ...]
    links: tuple[ChainLink, ...]
    parallelism: int
    max_parallelism: int
    slot_group: str = "default"
    level: int = 0
    max_parallelism_set: bool = False  # by the user: then a checkpoint with another one cannot be restored

    @property
    def is_source(self) -> bool:
        """True when nothing flows into the head from another vertex."""
        return isinstance(self.operators[0].spec, (SourceSpec, SourceFunctionSpec))


@dataclass(frozen=True)
class CachedFile:
    """A file or folder that reaches every slot under a name."""

    name: str
    path: str
    executable: bool = False


@dataclass(frozen=True)
class ExecutionSettings:
    """What the whole job runs with, parsed from the configuration."""

    batch: bool = False
    object_reuse: bool = False
    auto_watermark_interval_ms: int = 200
    time_characteristic: TimeCharacteristic = TimeCharacteristic.EventTime
    job_parameters: dict[str, str] = field(default_factory=dict)
    cached_files: tuple[CachedFile, ...] = ()
    checkpointing: bool = False
    releases_at_once: bool = False  # AT_LEAST_ONCE: what sinks wrote does not wait for its checkpoint


@dataclass(frozen=True)
class JobGraph:
    """A job as it runs."""

    name: str
    vertices: tuple[Vertex, ...]  # in topological order; a vertex's id is its index
    exchanges: tuple[Exchange, ...]
    settings: ExecutionSettings

    def inputs_of(self, vertex: VertexId) -> tuple[Exchange, ...]:
        """The exchanges that end in a vertex."""
        return tuple(e for e in self.exchanges if e.target == vertex)

    def outputs_of(self, vertex: VertexId) -> tuple[Exchange, ...]:
        """The exchanges that start in a vertex."""
        return tuple(e for e in self.exchanges if e.source == vertex)

    @property
    def levels(self) -> tuple[tuple[Vertex, ...], ...]:
        """Vertices by topological depth."""
        depth = max(v.level for v in self.vertices) + 1
        return tuple(tuple(v for v in self.vertices if v.level == d) for d in range(depth))

    def slot_of(self, vertex: Vertex, subtask: int) -> int:
        """The slot that hosts a subtask: slot-sharing groups side by side, subtask i in its group's slot i."""
        first = 0
        for group, size in self.slot_groups():
            if group == vertex.slot_group:
                return first + subtask
            first += size
        raise AssertionError(f"vertex {vertex.name!r} is in no slot-sharing group")

    def slot_groups(self) -> tuple[tuple[str, int], ...]:
        """Each slot-sharing group with the slots it needs: the highest parallelism inside it."""
        sizes: dict[str, int] = {}
        for vertex in self.vertices:
            sizes[vertex.slot_group] = max(sizes.get(vertex.slot_group, 0), vertex.parallelism)
        return tuple(sizes.items())

    @property
    def slot_count(self) -> int:
        """How many slots the job needs."""
        return sum(size for _, size in self.slot_groups())
