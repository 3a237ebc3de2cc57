"""Snapshots of one subtask: captured at the end of an epoch, written in the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ekorn.codegen.blame import Blame
from ekorn.errors import UserFunctionError, may_be_retried
from ekorn.faults import point
from ekorn.graph.job_graph import Operator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import SavepointOrder
from ekorn.operators.operator import RuntimeOperator
from ekorn.state.keyed_backend import CapturedState, KeyedStateBackend, SnapshotTarget
from ekorn.state.operator_state_files import encode_operator_state
from ekorn.state.snapshots import NO_ALIGNMENT, AlignmentStats, OperatorSnapshot, StateInfo, SubtaskSnapshot
from ekorn.subtask.in_flight import InFlight


@dataclass(frozen=True)
class CapturedOperator:
    """The captured state of one operator."""

    operator: Operator
    keyed: CapturedState | None
    operator_state: bytes | None
    infos: tuple[StateInfo, ...]


@dataclass(frozen=True)
class CapturedSubtask:
    """The captured state of a subtask. `write` may run on another thread while the subtask continues."""

    environment: SubtaskEnvironment
    checkpoint_id: int
    operators: tuple[CapturedOperator, ...]
    finished: bool
    sync_ms: float
    savepoint: SavepointOrder | None = None
    alignment: AlignmentStats = NO_ALIGNMENT
    in_flight: InFlight | None = None  # the blobs that the mark has overtaken

    def write(self, target: SnapshotTarget) -> SubtaskSnapshot:
        """Write the state files; return the description of the snapshot."""
        started = self.environment.clock.monotonic()
        operators = []
        for captured in self.operators:
            operator = captured.operator
            state = None
            if captured.operator_state is not None:
                state = target.write(target.exclusive("operator"), captured.operator_state)
            operators.append(
                OperatorSnapshot(
                    operator_id=operator.id,
                    uid=operator.uid,
                    name=operator.name,
                    keyed=captured.keyed.write(target) if captured.keyed is not None else None,
                    operator_state=state,
                    states=captured.infos,
                )
            )
        alignment = self.alignment
        if self.in_flight is not None:
            point("in-flight", self.environment.index)
            stored = self.in_flight.write(target)
            operators[0] = replace(operators[0], in_flight=stored)
            alignment = replace(alignment, in_flight_bytes=0 if stored is None else stored.size_bytes)
        return SubtaskSnapshot(
            vertex=self.environment.vertex.id,
            subtask=self.environment.index,
            operators=tuple(operators),
            finished=self.finished,
            bytes_written=target.bytes_written,
            sync_ms=self.sync_ms,
            async_ms=(self.environment.clock.monotonic() - started) * 1000,
            alignment=alignment,
        )


@dataclass(frozen=True)
class Declined:
    """A snapshot that was not taken, because `snapshot_state` of a function raised an exception.

    The subtask goes on. Nothing of it has changed: states captured before count as those of an aborted checkpoint, and
    transactions that sinks have prepared wait for the next checkpoint.
    """

    # Flink: a failure of the synchronous part fails the task, whatever number of failures is tolerated. Here that is so
    # for sinks and backends, which may have lost something. A function that raises has lost nothing.

    checkpoint_id: int
    error: UserFunctionError


def capture(
    operators: Sequence[RuntimeOperator],
    blame: Blame,
    *,
    checkpoint_id: int,
    triggered_ms: int,
    savepoint: SavepointOrder | None,
) -> tuple[CapturedOperator, ...] | Declined:
    """Capture the state of all operators: the synchronous part of a snapshot. The tail of the chain comes first.

    Raises:
        UserFunctionError: A sink could not prepare its output, or a backend could not capture its state: what they
            hold is not known any more, and the attempt has failed.
    """
    captured: list[CapturedOperator] = []
    try:
        for number in reversed(range(len(operators))):
            operator = operators[number]
            with blame.operator(number):
                operator.before_snapshot(checkpoint_id, triggered_ms)
            try:
                with blame.operator(number):
                    operator.snapshot_functions(checkpoint_id, triggered_ms)
                    state = encode_operator_state(operator.states.snapshot()) if operator.states.infos() else None
            except UserFunctionError as error:
                if not may_be_retried(error):
                    raise
                return Declined(checkpoint_id, error)
            with blame.operator(number):
                keyed = _capture_keyed(operator.backend, checkpoint_id, savepoint)
                if keyed is not None:
                    keyed.key_groups = operator.key_groups()
                captured.append(CapturedOperator(operator.operator, keyed, state, operator.infos()))
    finally:
        for operator in operators:
            operator.after_snapshot()
    return tuple(reversed(captured))


def _capture_keyed(
    backend: KeyedStateBackend | None, checkpoint_id: int, savepoint: SavepointOrder | None
) -> CapturedState | None:
    if backend is None:
        return None
    if savepoint is None:
        return backend.snapshot(checkpoint_id)
    return backend.native_snapshot(checkpoint_id) if savepoint.native else backend.full_snapshot(checkpoint_id)
