"""The job as the program draws it: operators that can still be named and tuned, and the edges between them.

Nothing is decided here. A mistake that is visible at the call (a parallelism of 0, a malformed uid hash) raises at the
call. Mistakes that depend on the whole graph are found by `graph/translation.py`.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ekorn.errors import UnsupportedOperationError
from ekorn.functions.dead_letters import OnRecordError
from ekorn.graph.specs import Custom, KeySpec, OperatorSpec, Partitioning
from ekorn.keygroups import MAX_PARALLELISM
from ekorn.types.type_information import TypeInformation

PARALLELISM_DEFAULT = -1  # Flink: stands for the environment's parallelism where a number is expected
DEFAULT_SLOT_GROUP = "default"

_UID_HASH = re.compile(r"[0-9a-f]{32}")
_PACKAGE = str(Path(__file__).resolve().parent.parent)


class Chaining(enum.Enum):
    """The neighbours that an operator may share a vertex with."""

    ALWAYS = "always"
    HEAD = "head"  # may not share a vertex with its input
    NEVER = "never"


class Kind(enum.Enum):
    """The position of an operator in the graph."""

    SOURCE = "source"
    OPERATOR = "operator"
    SINK = "sink"


@dataclass(frozen=True, eq=False)
class Edge:
    """Leads from an output of an operator to the next operator, with a partitioning.

    A stream is a tuple of edges whose target does not exist yet: one edge for each input of a union.
    """

    source: Node
    partitioning: Partitioning | None = None  # None: forward if both parallelisms are equal, else rebalance
    tag: str | None = None
    tag_type: TypeInformation | None = None
    input_index: int = 0

    @property
    def type_info(self) -> TypeInformation | None:
        """The type of the records on this edge."""
        return self.source.output_type if self.tag is None else self.tag_type

    def partitioned(self, partitioning: Partitioning) -> Edge:
        """Return the edge with another partitioning. The last partitioning counts."""
        return replace(self, partitioning=partitioning)


@dataclass(eq=False)
class Node:
    """One operator, source or sink."""

    id: int
    name: str
    kind: Kind
    spec: OperatorSpec
    inputs: tuple[Edge, ...] = ()
    key: KeySpec | None = None
    keys: tuple[KeySpec | None, ...] = ()  # one for each input if there are two
    output_type: TypeInformation | None = None
    written_at: str = ""
    non_parallel: bool = False
    like_input: bool = False  # whether it takes the parallelism of its input, so that no exchange is needed
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_group: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    buffer_timeout_ms: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)  # the function reads them from its context
    input_types: tuple[TypeInformation | None, ...] = field(default=())
    side_types: dict[str, TypeInformation | None] = field(default_factory=dict)  # the side outputs in use, by tag
    on_record_error: OnRecordError | None = None  # None: as the job's settings say
    beside: Node | None = None  # subtask i of this node runs in the slot of subtask i of that node

    @property
    def full_name(self) -> str:
        """The name as shown: with a prefix for sources and sinks."""
        prefix = {Kind.SOURCE: "Source: ", Kind.OPERATOR: "", Kind.SINK: "Sink: "}[self.kind]
        return prefix + self.name

    @property
    def where(self) -> str:
        """The operator as named in error messages: its name, and the line of the program that created it."""
        return f"operator {self.full_name!r}" + (f" (written at {self.written_at})" if self.written_at else "")

    def set_name(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of an operator must be a non-empty string, got {name!r}")
        self.name = name

    def set_description(self, description: str) -> None:
        """Set the text shown in plans."""
        if not isinstance(description, str):
            raise TypeError(f"the description of an operator must be a string, got {description!r}")
        self.description = description

    def set_uid(self, uid: str) -> None:
        """Set the name under which the operator's state is saved."""
        if not isinstance(uid, str) or not uid:
            raise ValueError(f"the uid of an operator must be a non-empty string, got {uid!r}")
        self.uid = uid

    def set_uid_hash(self, uid_hash: str) -> None:
        """Set the operator id, as a checkpoint lists it."""
        if not isinstance(uid_hash, str) or not _UID_HASH.fullmatch(uid_hash):
            raise ValueError(
                f"a uid hash must be 32 lower-case hex digits, as a checkpoint lists them, got {uid_hash!r}; "
                "use uid(...) for a name of your own"
            )
        self.uid_hash = uid_hash

    def set_parallelism(self, parallelism: int) -> None:
        """Set the number of subtasks."""
        self._refuse_for_non_parallel("parallelism", parallelism)
        self.parallelism = checked_parallelism(parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> None:
        """Set the number of key groups of the operator's state."""
        self._refuse_for_non_parallel("max parallelism", max_parallelism)
        self.max_parallelism = checked_max_parallelism(max_parallelism)

    def force_non_parallel(self) -> None:
        """Limit the operator to one subtask."""
        self.non_parallel = True
        self.parallelism = self.max_parallelism = None

    def set_buffer_timeout(self, timeout_ms: int) -> None:
        """Set how long output may wait to be sent in a larger batch; -1: until the batch is full."""
        if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < -1:
            raise ValueError(f"a buffer timeout must be at least 0 milliseconds, or -1, got {timeout_ms!r}")
        self.buffer_timeout_ms = timeout_ms

    def side_output(self, tag: str, type_info: TypeInformation | None) -> Edge:
        """Return the edge of a side output. All requests for one tag must declare the same type."""
        known = self.side_types.setdefault(tag, type_info)
        if known != type_info:
            raise UnsupportedOperationError(
                f"side output {tag!r} of {self.where} was requested as {known or 'undeclared'} and is now requested as "
                f"{type_info or 'undeclared'}; tags with one id are one side output: use another id for the second type"
            )
        return Edge(self, tag=tag, tag_type=type_info)

    def _refuse_for_non_parallel(self, what: str, value: int) -> None:
        if self.non_parallel and value not in (1, PARALLELISM_DEFAULT):
            raise ValueError(f"the {what} of {self.where} must be 1, since it cannot run in parallel; got {value!r}")


class StreamGraph:
    """The operators that an environment has been asked to run."""

    def __init__(self) -> None:
        self.has_run = False  # whether a job of this graph was submitted
        self._pending: list[Node] = []
        self._count = 0

    def source(self, name: str, spec: OperatorSpec, output_type: TypeInformation | None, **more: Any) -> Node:
        """Add a source. A source runs only if an operator or a sink reads it."""
        return self._node(Kind.SOURCE, name, spec, (), output_type=output_type, **more)

    def operator(
        self, name: str, spec: OperatorSpec, inputs: Iterable[Edge], output_type: TypeInformation | None, **more: Any
    ) -> Node:
        """Add an operator that reads edges."""
        node = self._node(Kind.OPERATOR, name, spec, tuple(inputs), output_type=output_type, **more)
        self._pending.append(node)
        return node

    def sink(self, name: str, spec: OperatorSpec, inputs: Iterable[Edge], **more: Any) -> Node:
        """Add a sink that reads edges."""
        node = self._node(Kind.SINK, name, spec, tuple(inputs), **more)
        self._pending.append(node)
        return node

    def discard(self, node: Node) -> None:
        """Remove an operator that nothing reads."""
        self._pending = [pending for pending in self._pending if pending is not node]

    def nodes(self) -> list[Node]:
        """Return all operators to run and the operators they read, inputs first."""
        return with_inputs(self._pending)

    def pending(self) -> list[Node]:
        """Return the operators and sinks that were added and not submitted yet."""
        return list(self._pending)

    def submitted(self) -> None:
        """Forget the operators to run, after their submission. Existing streams can be extended again."""
        self.has_run = True
        self._pending.clear()

    def clear(self) -> None:
        """Forget the operators to run."""
        self._pending.clear()

    def _node(self, kind: Kind, name: str, spec: OperatorSpec, inputs: tuple[Edge, ...], **more: Any) -> Node:
        self._count += 1
        types = tuple(edge.type_info for edge in inputs)
        return Node(self._count, name, kind, spec, inputs, written_at=calling_line(), input_types=types, **more)


def with_inputs(nodes: Iterable[Node]) -> list[Node]:
    """Return operators and all operators they read, inputs first."""
    found: dict[int, Node] = {}
    open_nodes = list(nodes)
    while open_nodes:
        node = open_nodes.pop()
        if node.id not in found:
            found[node.id] = node
            open_nodes.extend(edge.source for edge in node.inputs)
    return [found[node_id] for node_id in sorted(found)]  # an operator is created after its inputs


def checked_parallelism(parallelism: int) -> int | None:
    """Return the parallelism given by the user; None stands for the environment's."""
    if isinstance(parallelism, bool) or not isinstance(parallelism, int):
        raise TypeError(f"a parallelism must be an int, got {parallelism!r}")
    if parallelism == PARALLELISM_DEFAULT:
        return None
    if not 1 <= parallelism <= MAX_PARALLELISM:
        raise ValueError(f"a parallelism must be from 1 to {MAX_PARALLELISM}, got {parallelism}")
    return parallelism


def checked_max_parallelism(max_parallelism: int) -> int:
    """Return the maximum parallelism given by the user."""
    if isinstance(max_parallelism, bool) or not isinstance(max_parallelism, int):
        raise TypeError(f"a max parallelism must be an int, got {max_parallelism!r}")
    if not 1 <= max_parallelism <= MAX_PARALLELISM:
        raise ValueError(f"a max parallelism must be from 1 to {MAX_PARALLELISM}, got {max_parallelism}")
    return max_parallelism


def uses_custom_partitioning(nodes: Iterable[Node]) -> Node | None:
    """Return the first operator that reads a stream partitioned with `partition_custom`, if any."""
    for node in nodes:
        if any(isinstance(edge.partitioning, Custom) for edge in node.inputs):
            return node
    return None


def calling_line() -> str:
    """Return file and line of the innermost caller outside of this package: the line of the user's program."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
