"""Plans which stored blobs every new subtask processes before new input: those that marks had overtaken. Pure."""

from __future__ import annotations

from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.errors import RestoreError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Exchange, JobGraph, Vertex
from ekorn.graph.specs import Broadcast, Custom, Forward, Global, Hash, Rebalance, Rescale, Shuffle
from ekorn.state.snapshots import InFlightFiles, InFlightInput, InFlightRestore, Share, StoredInput
from ekorn.subtask.in_flight import stored_inputs

__all__ = ["plan_in_flight"]

_WHAT_TO_DO = (
    "start from a savepoint or from an aligned checkpoint, which have no records in flight; or drop these records "
    "(-n, execution.state-recovery.ignore-unclaimed-state)"
)


def plan_in_flight(
    graph: JobGraph, metadata: CheckpointMetadata, *, may_drop: bool
) -> dict[SubtaskId, tuple[InFlightRestore, ...]]:
    """Return the stored blobs that every subtask of the job processes first.

    Args:
        graph: The job.
        metadata: The checkpoint.
        may_drop: Drop the blobs of inputs that the job no longer has.

    Raises:
        RestoreError: Blobs would be left behind, or cannot be divided among the subtasks.
    """
    plans: dict[SubtaskId, tuple[InFlightRestore, ...]] = {}
    heads: dict[str, Vertex] = {vertex.operators[0].id: vertex for vertex in graph.vertices}
    for operator in metadata.operators:
        if not any(operator.in_flight):
            continue
        vertex = heads.get(operator.operator_id)
        if vertex is None:
            if may_drop:
                continue
            raise RestoreError(
                f"{metadata.kind} {metadata.checkpoint_id} holds records in flight to operator {operator.label()}, "
                f"which no longer begins a chain of operators at this parallelism; run it at parallelism "
                f"{operator.parallelism} again, call start_new_chain() on it, or {_WHAT_TO_DO}"
            )
        for index in range(vertex.parallelism):
            planner = _Planner(graph, metadata, operator, vertex, index, may_drop=may_drop)
            parts = (planner.part(old, files) for old, files in enumerate(operator.in_flight) if files is not None)
            plans[SubtaskId(vertex.id, index)] = tuple(part for part in parts if part is not None)
    return plans


class _Planner:
    """Plans for one new subtask."""

    def __init__(
        self,
        graph: JobGraph,
        metadata: CheckpointMetadata,
        operator: OperatorMetadata,
        vertex: Vertex,
        index: int,
        *,
        may_drop: bool,
    ) -> None:
        names = stored_inputs(graph, vertex.id)
        inputs = graph.inputs_of(vertex.id)
        self._exchanges = {names[exchange.id]: exchange for exchange in inputs}
        self._senders = {names[exchange.id].source: graph.vertices[exchange.source].parallelism for exchange in inputs}
        self._metadata = metadata
        self._operator = operator
        self._vertex = vertex
        self._index = index
        self._may_drop = may_drop

    def part(self, old: int, files: InFlightFiles) -> InFlightRestore | None:
        """Return the share of this subtask in the blobs that were on their way to an old one; None: nothing."""
        inputs = tuple(self._input(old, stored) for stored in files.inputs)
        if all(part.share is Share.NONE for part in inputs):
            return None
        return InFlightRestore(files.files, inputs)

    def _input(self, old: int, stored: StoredInput) -> InFlightInput:
        exchange = self._exchanges.get(stored)
        if exchange is None:
            if self._may_drop:
                return InFlightInput(-1, Share.NONE)
            sender = self._metadata.operator(stored.source)
            named = f"operator {stored.source}" if sender is None else f"operator {sender.label()}"
            raise RestoreError(
                f"{self._metadata.kind} {self._metadata.checkpoint_id} holds records in flight from {named} to "
                f"operator {self._operator.label()}, between which the job no longer has an exchange; {_WHAT_TO_DO}"
            )
        if self._vertex.parallelism == self._operator.parallelism:
            sender = self._metadata.operator(stored.source)
            same = sender is not None and sender.parallelism == self._senders[stored.source]
            share = Share.ALL if old == self._index else Share.NONE
            return InFlightInput(exchange.id, share, keeps_watermarks=same)
        return InFlightInput(exchange.id, self._share_after_rescaling(old, exchange))

    def _share_after_rescaling(self, old: int, exchange: Exchange) -> Share:
        match exchange.partitioning:
            case Hash():
                return Share.OWN_KEYS
            case Global():
                mine = self._index == 0
            case Rebalance() | Shuffle() | Forward() | Rescale():
                mine = old % self._vertex.parallelism == self._index
            case Custom() | Broadcast():
                # Flink: before 2.3, every subtask asked the partitioner which records are its own; since then marks do
                # not overtake these. Here a partitioner, which may have state, is asked by the sender alone.
                raise RestoreError(
                    f"cannot restore the records in flight to operator {self._operator.label()} at parallelism "
                    f"{self._vertex.parallelism}: they were partitioned by the program for "
                    f"{self._operator.parallelism} subtasks; run it at {self._operator.parallelism}, or {_WHAT_TO_DO}"
                )
        return Share.ALL if mine else Share.NONE
