"""Fills the state of an operator from its input, and writes it to a savepoint when the input ends.

The bootstrap operator runs the operator that fills the state exactly as the job that restores the savepoint will run
it, so the state has the same tables. Event time and processing time stand still for that operator: timers are
registered and windows are opened, but nothing fires before the savepoint is restored.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import InvalidProgramError, preview
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import BootstrapSpec, SavepointFilesSpec, WindowSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import SubtaskOrder
from ekorn.operators.operator import RuntimeOperator
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.codecs import EXACT
from ekorn.state.operator_state_files import OperatorState, encode_operator_state
from ekorn.state.snapshots import OperatorRestore, OperatorSnapshot, StateFile, StateInfo, SubtaskSnapshot
from ekorn.state.state_files import write_state
from ekorn.storage.file_store import FileStore, open_files


class BootstrapOperator(RuntimeOperator):
    """Runs the operator that fills the state. Its own checkpoints are those of that operator."""

    needs_out = True

    def __init__(
        self, operator: Operator, spec: BootstrapSpec, environment: SubtaskEnvironment, filled: RuntimeOperator
    ) -> None:
        super().__init__(replace(operator, key=None), environment)  # the other operator has the backend
        self._spec = spec
        self._filled = filled
        self.backend = filled.backend
        filled.out = _drop

    def functions(self) -> Iterable[Any]:
        return self._filled.functions()

    def restore(self, restored: OperatorRestore | None, parts: OperatorState | None, store: FileStore | None) -> None:
        self._filled.restore(restored, parts, store)
        self.states = self._filled.states

    def initialize(self) -> None:
        with _exact_types():
            self._filled.initialize()

    def open(self) -> None:
        with _exact_types():
            self._filled.open()

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        is_window = isinstance(self._spec.filled, WindowSpec)
        self._filled.generate(code, value, time, _generate_nothing if is_window else _refuse_in(code), {})

    def begin_epoch(self, order: SubtaskOrder) -> None:
        self._filled.begin_epoch(order)

    def end_epoch(self) -> None:
        self._filled.end_epoch()

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self._filled.before_snapshot(checkpoint_id, now_ms)

    def snapshot_functions(self, checkpoint_id: int, now_ms: int) -> None:
        self._filled.snapshot_functions(checkpoint_id, now_ms)

    def after_snapshot(self) -> None:
        self._filled.after_snapshot()

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        self._filled.checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._filled.checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self._filled.close()

    def infos(self) -> tuple[StateInfo, ...]:
        return self._filled.infos()

    def finish(self) -> None:
        """Write the state, and emit its description."""
        spec, filled, environment = self._spec, self._filled, self.environment
        checkpoint_id, now_ms = spec.files.checkpoint_id, environment.clock.now_ms()
        try:
            filled.before_snapshot(checkpoint_id, now_ms)
            filled.snapshot_functions(checkpoint_id, now_ms)
            target = _SavepointTarget(spec.files, environment)
            state = keyed = None
            if filled.states.infos():
                state = target.write(target.exclusive("operator"), encode_operator_state(filled.states.snapshot()))
            if filled.backend is not None:
                captured = filled.backend.full_snapshot(checkpoint_id)
                captured.key_groups = filled.key_groups()
                keyed = captured.write(target)
        finally:
            filled.after_snapshot()
        snapshot = OperatorSnapshot(spec.operator_id, spec.uid, self.operator.name, keyed, state, filled.infos())
        self.out(SubtaskSnapshot(environment.vertex.id, environment.index, (snapshot,)), None)


@contextmanager
def _exact_types() -> Iterator[None]:
    """Let states that are declared inside the block refuse values that their type would change."""
    token = EXACT.set(True)
    try:
        yield
    finally:
        EXACT.reset(token)


class _SavepointTarget:
    """Writes the files of one subtask beside the metadata of the savepoint."""

    def __init__(self, files: SavepointFilesSpec, environment: SubtaskEnvironment) -> None:
        self.bytes_written = 0
        self.payload_bytes = PAYLOAD_BYTES
        self._spec = files
        self._files = open_files(files.directory)
        self._prefix = f"v{environment.vertex.id}-s{environment.index}"

    def shared(self, label: str) -> str:
        return self.exclusive(label)

    def exclusive(self, label: str) -> str:
        return f"{self._prefix}-{secrets.token_hex(8)}"

    def write(self, path: str, payload: bytes) -> StateFile:
        spec = self._spec
        file = write_state(
            self._files, path, payload, spec.inline_bytes, compressed=spec.compressed, hashed=spec.hashed
        )
        self.bytes_written += file.size
        return file


def _drop(value: Any, time_ms: int | None) -> None:
    """Drop the result of a window whose trigger fires with a record: it belongs to the past that is bootstrapped."""


def _generate_nothing(value: str, time: str) -> None:
    """Generate no code for the result of a window, so that the result is dropped inside the loop."""


def _refuse_in(code: CodeBuilder) -> Callable[[str, str], None]:
    def emit(value: str, time: str) -> None:
        code.line(f"{code.bind(_refuse, 'refuse')}({value})")

    return emit


def _refuse(value: Any) -> NoReturn:
    raise InvalidProgramError(
        f"a bootstrap function emitted {preview(value)}: it writes to state only, and nothing receives its results"
    )
