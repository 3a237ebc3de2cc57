"""The job as it is drawn: operators that the program may still name and tune, and the edges between them.

Nothing is decided here. What a call can be told at once to be wrong about (a parallelism of 0, a uid hash
that is none) raises where it is written; what depends on the whole graph waits for `graph/translation.py`.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tamias.errors import UnsupportedOperationError
from tamias.graph.specs import Custom, KeySpec, OperatorSpec, Partitioning
from tamias.keygroups import MAX_PARALLELISM
from tamias.types.type_information import TypeInformation

PARALLELISM_DEFAULT = -1  # Flink: "whatever the environment says", where a number is expected
DEFAULT_SLOT_GROUP = "default"

_UID_HASH = re.compile(r"[0-9a-f]{32}")
_PACKAGE = str(Path(__file__).resolve().parent.parent)


class Chaining(enum.Enum):
    """With which neighbours an operator may share a vertex."""

    ALWAYS = "always"
    HEAD = "head"  # not with what comes before it
    NEVER = "never"


class Kind(enum.Enum):
    """Where an operator stands."""

    SOURCE = "source"
    OPERATOR = "operator"
    SINK = "sink"


@dataclass(frozen=True, eq=False)
class Edge:
    """From an operator to the next one: which of its outputs, and how its records are spread.

    A stream is a tuple of these whose end is still open: one for each input of a union.
    """

    source: Node
    partitioning: Partitioning | None = None  # None: forward where the parallelism allows it, else round robin
    tag: str | None = None
    tag_type: TypeInformation | None = None
    input_index: int = 0

    @property
    def type_info(self) -> TypeInformation | None:
        """Type of the records on this edge."""
        return self.source.output_type if self.tag is None else self.tag_type

    def partitioned(self, partitioning: Partitioning) -> Edge:
        """The same with another partitioning: the last one asked for counts."""
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
    keys: tuple[KeySpec | None, ...] = ()  # of each input, where there are two
    output_type: TypeInformation | None = None
    written_at: str = ""
    non_parallel: bool = False
    like_input: bool = False  # takes its input's parallelism, so that nothing has to be exchanged
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_group: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    buffer_timeout_ms: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)  # for its function to read
    input_types: tuple[TypeInformation | None, ...] = field(default=())
    side_types: dict[str, TypeInformation | None] = field(default_factory=dict)  # of the side outputs asked for
    beside: Node | None = None  # subtask by subtask in the slots of this one

    @property
    def full_name(self) -> str:
        """The name as it is shown: sources and sinks say what they are."""
        prefix = {Kind.SOURCE: "Source: ", Kind.OPERATOR: "", Kind.SINK: "Sink: "}[self.kind]
        return prefix + self.name

    @property
    def where(self) -> str:
        """The operator in an error message: its name, and the line of the program that made it."""
        return f"operator {self.full_name!r}" + (f" (written at {self.written_at})" if self.written_at else "")

    def set_name(self, name: str) -> None:
        """Give it a name."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of an operator must be a non-empty string, got {name!r}")
        self.name = name

    def set_description(self, description: str) -> None:
        """Give it a longer text for plans."""
        if not isinstance(description, str):
            raise TypeError(f"the description of an operator must be a string, got {description!r}")
        self.description = description

    def set_uid(self, uid: str) -> None:
        """Give it the name under which its state is saved."""
        if not isinstance(uid, str) or not uid:
            raise ValueError(f"the uid of an operator must be a non-empty string, got {uid!r}")
        self.uid = uid

    def set_uid_hash(self, uid_hash: str) -> None:
        """Give it an operator id as found in a checkpoint."""
        if not isinstance(uid_hash, str) or not _UID_HASH.fullmatch(uid_hash):
            raise ValueError(
                f"a uid hash is 32 lower-case hex digits, as a checkpoint lists them, got {uid_hash!r}; "
                "use uid(...) for a name of your own"
            )
        self.uid_hash = uid_hash

    def set_parallelism(self, parallelism: int) -> None:
        """Set how many subtasks it has."""
        self._refuse_for_non_parallel("parallelism", parallelism)
        self.parallelism = checked_parallelism(parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> None:
        """Set how many key groups its state is cut into."""
        self._refuse_for_non_parallel("max parallelism", max_parallelism)
        self.max_parallelism = checked_max_parallelism(max_parallelism)

    def force_non_parallel(self) -> None:
        """Fix it to one subtask."""
        self.non_parallel = True
        self.parallelism = self.max_parallelism = None

    def set_buffer_timeout(self, timeout_ms: int) -> None:
        """Set how long its output may wait to be sent with more; -1 for until enough is there."""
        if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < -1:
            raise ValueError(f"a buffer timeout is a number of milliseconds from 0 on, or -1, got {timeout_ms!r}")
        self.buffer_timeout_ms = timeout_ms

    def side_output(self, tag: str, type_info: TypeInformation | None) -> Edge:
        """One of its side outputs, which is of one type however often it is asked for."""
        known = self.side_types.setdefault(tag, type_info)
        if known != type_info:
            raise UnsupportedOperationError(
                f"side output {tag!r} of {self.where} was asked for as {known or 'undeclared'} and now as "
                f"{type_info or 'undeclared'}; tags with one id are one output: give the second one another id"
            )
        return Edge(self, tag=tag, tag_type=type_info)

    def _refuse_for_non_parallel(self, what: str, value: int) -> None:
        if self.non_parallel and value not in (1, PARALLELISM_DEFAULT):
            raise ValueError(f"the {what} of {self.where} must be 1, since it cannot run in parallel; got {value!r}")


class StreamGraph:
    """What an environment has been asked to run so far."""

    def __init__(self) -> None:
        self._pending: list[Node] = []
        self._count = 0

    def source(self, name: str, spec: OperatorSpec, output_type: TypeInformation | None, **more: Any) -> Node:
        """Add a source. It runs only when something is made of it."""
        return self._node(Kind.SOURCE, name, spec, (), output_type=output_type, **more)

    def operator(
        self, name: str, spec: OperatorSpec, inputs: Iterable[Edge], output_type: TypeInformation | None, **more: Any
    ) -> Node:
        """Add an operator behind some edges."""
        node = self._node(Kind.OPERATOR, name, spec, tuple(inputs), output_type=output_type, **more)
        self._pending.append(node)
        return node

    def sink(self, name: str, spec: OperatorSpec, inputs: Iterable[Edge], **more: Any) -> Node:
        """Add a sink behind some edges."""
        node = self._node(Kind.SINK, name, spec, tuple(inputs), **more)
        self._pending.append(node)
        return node

    def discard(self, node: Node) -> None:
        """Take back an operator that nothing was made of."""
        self._pending = [pending for pending in self._pending if pending is not node]

    def nodes(self) -> list[Node]:
        """All operators that are to run and what they read from, inputs first."""
        found: dict[int, Node] = {}
        open_nodes = list(self._pending)
        while open_nodes:
            node = open_nodes.pop()
            if node.id not in found:
                found[node.id] = node
                open_nodes.extend(edge.source for edge in node.inputs)
        return [found[node_id] for node_id in sorted(found)]  # an operator is made after its inputs

    def clear(self) -> None:
        """Forget what is to run: it was handed over. Streams already drawn can be built upon again."""
        self._pending.clear()

    def _node(self, kind: Kind, name: str, spec: OperatorSpec, inputs: tuple[Edge, ...], **more: Any) -> Node:
        self._count += 1
        types = tuple(edge.type_info for edge in inputs)
        return Node(self._count, name, kind, spec, inputs, written_at=calling_line(), input_types=types, **more)


def checked_parallelism(parallelism: int) -> int | None:
    """A parallelism as given by the user; None for "as the environment says"."""
    if isinstance(parallelism, bool) or not isinstance(parallelism, int):
        raise TypeError(f"a parallelism is a whole number, got {parallelism!r}")
    if parallelism == PARALLELISM_DEFAULT:
        return None
    if not 1 <= parallelism <= MAX_PARALLELISM:
        raise ValueError(f"a parallelism is from 1 to {MAX_PARALLELISM}, got {parallelism}")
    return parallelism


def checked_max_parallelism(max_parallelism: int) -> int:
    """A maximum parallelism as given by the user."""
    if isinstance(max_parallelism, bool) or not isinstance(max_parallelism, int):
        raise TypeError(f"a max parallelism is a whole number, got {max_parallelism!r}")
    if not 1 <= max_parallelism <= MAX_PARALLELISM:
        raise ValueError(f"a max parallelism is from 1 to {MAX_PARALLELISM}, got {max_parallelism}")
    return max_parallelism


def uses_custom_partitioning(nodes: Iterable[Node]) -> Node | None:
    """The first operator that is fed through `partition_custom`, if any."""
    for node in nodes:
        if any(isinstance(edge.partitioning, Custom) for edge in node.inputs):
            return node
    return None


def calling_line() -> str:
    """File and line of the innermost caller outside of this package: where the program wrote the call."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
