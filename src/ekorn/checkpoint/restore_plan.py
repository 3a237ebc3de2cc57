"""Plans what every new subtask restores: matches operators by id and redistributes their state.

Values in, values out: no file is read. `checkpoint_choice.py` and `restore_point.py` find the metadata; the slots read
the files that the plan names.
"""

from __future__ import annotations

from dataclasses import replace

from ekorn.checkpoint.finished_subtasks import has_union_state, settled
from ekorn.checkpoint.in_flight_plan import plan_in_flight
from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.errors import RestoreError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph, Vertex
from ekorn.keygroups import key_group_range
from ekorn.state.snapshots import InFlightRestore, KeyedFiles, OperatorRestore, RestorePlan, SubtaskRestore

__all__ = ["apply_max_parallelism", "plan_restore", "settled_subtasks"]


def apply_max_parallelism(graph: JobGraph, metadata: CheckpointMetadata) -> JobGraph:
    """Return the graph with the maximum parallelism that the stored state was written with.

    The number of key groups is fixed with the first checkpoint. If the program does not set it, the stored number is
    taken. If the program sets another number, the state cannot be restored.

    Raises:
        RestoreError: The program's setting, its parallelism, or two stored operators contradict the stored number.
    """
    return replace(graph, vertices=tuple(_with_stored_maximum(vertex, metadata) for vertex in graph.vertices))


def _with_stored_maximum(vertex: Vertex, metadata: CheckpointMetadata) -> Vertex:
    stored = [s for s in _stored(vertex, metadata) if s.has_state]
    for operator in stored:
        maximum = operator.max_parallelism
        if vertex.max_parallelism_set and vertex.max_parallelism != maximum:
            raise RestoreError(
                f"cannot restore operator {operator.label()}: the program sets max parallelism "
                f"{vertex.max_parallelism}, but its state was stored with {maximum}; set {maximum}, or leave "
                "it unset"
            )
        if vertex.parallelism > maximum:
            raise RestoreError(
                f"cannot restore operator {operator.label()} at parallelism {vertex.parallelism}: its state was stored "
                f"with max parallelism {maximum}; run it at {maximum} or less"
            )
        if maximum != stored[0].max_parallelism:
            raise RestoreError(
                f"cannot restore operators {stored[0].label()} and {operator.label()} in one chain: their state was "
                f"stored with max parallelism {stored[0].max_parallelism} and {maximum}; call start_new_chain() "
                "between them"
            )
    return replace(vertex, max_parallelism=stored[0].max_parallelism) if stored else vertex


def plan_restore(
    graph: JobGraph,
    metadata: CheckpointMetadata,
    directory: str,
    allow_non_restored_state: bool = False,
    *,
    ignored_in_flight_id: int | None = None,
) -> RestorePlan:
    """Return what every subtask of the job restores.

    Args:
        graph: The job, after `apply_max_parallelism`.
        metadata: The checkpoint.
        directory: The directory that the paths of the state files are relative to, in the form `open_files` takes.
        allow_non_restored_state: Drop the state of operators that the job no longer has.
        ignored_in_flight_id: The number of a checkpoint whose blobs in flight are dropped.

    Raises:
        RestoreError: State would be left behind, or does not fit.
    """
    if not allow_non_restored_state:
        _refuse_to_leave_state_behind(graph, metadata)
    finished = _finished(graph, metadata)
    in_flight: dict[SubtaskId, tuple[InFlightRestore, ...]] = {}
    if metadata.checkpoint_id != ignored_in_flight_id:
        in_flight = plan_in_flight(graph, metadata, may_drop=allow_non_restored_state)
    subtasks: dict[SubtaskId, SubtaskRestore] = {}
    for vertex in graph.vertices:
        stored = _stored(vertex, metadata)
        for index in range(vertex.parallelism):
            subtasks[SubtaskId(int(vertex.id), index)] = SubtaskRestore(
                operators=tuple(_plan_operator(vertex, index, part, metadata) for part in stored),
                finished=finished[vertex.id][index],
                in_flight=in_flight.get(SubtaskId(int(vertex.id), index), ()),
            )
    return RestorePlan(directory=directory, checkpoint_id=metadata.checkpoint_id, subtasks=subtasks)


def settled_subtasks(plan: RestorePlan) -> frozenset[SubtaskId]:
    """Return the subtasks that are restored as finished and need not be asked for a snapshot again."""
    finished = {subtask for subtask, restore in plan.subtasks.items() if restore.finished}
    with_union = {subtask.vertex for subtask, restore in plan.subtasks.items() if has_union_state(restore.operators)}
    return settled(finished, plan.subtasks.keys(), with_union)


def _plan_operator(
    vertex: Vertex, index: int, stored: OperatorMetadata, metadata: CheckpointMetadata
) -> OperatorRestore:
    return OperatorRestore(
        operator_id=stored.operator_id,
        keyed=_overlapping(vertex, index, stored),
        operator_state=tuple(None if s is None else s.operator_state for s in stored.subtasks),
        states=stored.states,
        restored_checkpoint_id=metadata.checkpoint_id,
        max_parallelism=vertex.max_parallelism,
        label=stored.label(),
    )


def _overlapping(vertex: Vertex, index: int, stored: OperatorMetadata) -> tuple[KeyedFiles, ...]:
    """Return the stored files that hold a key group of the new subtask. The subtask reads only its own key groups."""
    keyed = [s.keyed for s in stored.subtasks if s is not None and s.keyed is not None]
    if not keyed:
        return ()
    if vertex.max_parallelism != stored.max_parallelism:
        raise RestoreError(
            f"cannot restore operator {stored.label()}: it runs with max parallelism {vertex.max_parallelism}, "
            f"its state was stored with {stored.max_parallelism}"
        )
    first, last = key_group_range(vertex.max_parallelism, vertex.parallelism, index)
    return tuple(k for k in keyed if k.key_group_first <= last and first <= k.key_group_last)


def _stored(vertex: Vertex, metadata: CheckpointMetadata) -> list[OperatorMetadata]:
    found = [metadata.operator(operator.id) for operator in vertex.operators]
    return [part for part in found if part is not None]


def _refuse_to_leave_state_behind(graph: JobGraph, metadata: CheckpointMetadata) -> None:
    present = {operator.id for vertex in graph.vertices for operator in vertex.operators}
    left = [o for o in metadata.operators if o.has_state and o.operator_id not in present]
    if left:
        names = "; ".join(o.label() for o in left)
        raise RestoreError(
            f"{metadata.kind} {metadata.checkpoint_id} holds state that belongs to no operator of job {graph.name!r}: "
            f"{names}. Give the operators their old uid (or uid_hash with the id), or allow non-restored state "
            "(-n, execution.state-recovery.ignore-unclaimed-state) to drop it"
        )


def _finished(graph: JobGraph, metadata: CheckpointMetadata) -> dict[int, tuple[bool, ...]]:
    """Return, for each vertex, which of its new subtasks are restored as finished."""
    result: dict[int, tuple[bool, ...]] = {}
    for vertex in graph.vertices:  # in topological order, so the inputs of a vertex are known before it
        stored = _stored(vertex, metadata)
        if len(stored) < len(vertex.operators):
            flags = (False,) * vertex.parallelism  # a new operator makes the chain another vertex
        elif all(part.fully_finished for part in stored):
            flags = (True,) * vertex.parallelism
        elif all(part.parallelism == vertex.parallelism for part in stored):
            flags = tuple(all(part.finished[index] for part in stored) for index in range(vertex.parallelism))
        else:
            # Flink: after rescaling, no new subtask is the finished one; its state is redistributed over all.
            flags = (False,) * vertex.parallelism
        if all(flags) and not vertex.is_source:
            running = [e.source for e in graph.inputs_of(vertex.id) if not all(result[e.source])]
            if running:
                raise RestoreError(
                    f"cannot restore {vertex.name!r} as finished: {graph.vertices[running[0]].name!r} before it has "
                    "not finished; the records of an operator that was added before a finished one cannot be received, "
                    "so remove it, or give the operators after it new uids"
                )
        result[vertex.id] = flags
    return result
