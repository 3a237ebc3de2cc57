"""One subtask of a vertex: its operators from open to close, and each epoch's path through them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tamias.codegen.blame import blame
from tamias.errors import UserFunctionError
from tamias.functions.record_functions import Function
from tamias.graph.channels import senders_of
from tamias.graph.job_graph import Operator
from tamias.graph.specs import Custom, Hash
from tamias.operators.build import build
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.epoch import Ack, EpochOrder, SavepointOrder
from tamias.operators.keys import key_function
from tamias.operators.operator import RuntimeOperator
from tamias.operators.sink_operators import DriverOutput
from tamias.operators.source_operators import Budget, SourceHead, SourceProgress, SplitSourceOperator
from tamias.operators.timestamps import TimestampsOperator
from tamias.operators.watermarks import SourceEvent, SourceTime
from tamias.state.backend import CapturedState, KeyedStateBackend, SnapshotTarget
from tamias.state.operator_state_files import OperatorState, decode_operator_state, encode_operator_state, redistribute
from tamias.state.snapshots import OperatorRestore, OperatorSnapshot, StateInfo, SubtaskRestore, SubtaskSnapshot
from tamias.state.state_files import read_state
from tamias.storage.file_store import FileStore
from tamias.subtask.batch_order import Held, HeldBack, KeySorter
from tamias.subtask.chain import Chain
from tamias.subtask.inputs import Inputs
from tamias.subtask.outbox import Outbox
from tamias.subtask.sort_keys import sort_key_for
from tamias.subtask.wire.frames import END, IDLE, RECORDS, WATERMARK, Blob, Frame, in_order
from tamias.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class Subtask:
    """One parallel instance of a vertex, in one attempt of the job."""

    def __init__(self, environment: SubtaskEnvironment) -> None:
        self.environment = environment
        self.driver_output = DriverOutput()
        self.operators: list[RuntimeOperator] = []
        self.finished = False
        self.chain: Chain | None = None
        self._input_ended = False
        self._drained = False  # its input was ended by a request to stop, with more to read
        self._ended_before = False  # restored from a checkpoint taken after its input had ended
        graph, vertex = environment.graph, environment.vertex
        self.outbox = Outbox(graph, vertex, environment.index)
        self._inputs_of = graph.inputs_of(vertex.id)
        self.inputs = Inputs(
            (e.id, sender)
            for e in self._inputs_of
            for sender in senders_of(e, graph.vertices[e.source], vertex, environment.index)
        )
        self._input_of = {e.id: e.input_index for e in self._inputs_of}
        self._read_first: frozenset[int] = frozenset()  # exchanges whose blobs come before all others in an epoch
        self._held: Held | None = None
        self._records_in = 0
        settings = graph.settings
        self._source_time = SourceTime(
            settings.time_characteristic, environment.clock, settings.auto_watermark_interval_ms
        )

    # ------------------------------------------------------------------------------------------------ the start

    def open(self, restored: SubtaskRestore | None, store: FileStore | None) -> None:
        """Build the operators, hand them their state, and open them: from the end of the chain to its head."""
        environment = self.environment
        self._ended_before = restored is not None and restored.finished
        for number, spec in enumerate(environment.vertex.operators):
            with self._blaming(number):
                self.operators.append(build(spec, environment, self.driver_output))
        for number in reversed(range(len(self.operators))):
            operator = self.operators[number]
            saved = restored.of(operator.operator.id) if restored is not None else None
            operator.restore(saved, self._operator_state(saved, store), store)
            with self._blaming(number):
                operator.initialize()
                operator.open()
        for number, helper in self._helpers():
            with self._blaming(number):
                helper.open(self.operators[number].runtime_context())
        seed = environment.vertex.id * 100_003 + environment.index
        self.chain = Chain(environment.graph, environment.vertex, self.operators, self.outbox, seed)
        for number, operator in enumerate(self.operators):
            if isinstance(operator, TimestampsOperator):
                operator.emitter.on_watermark = partial(self._forward, number)
                operator.emitter.on_idle = partial(self._forward_idle, number)
            if operator.holds_watermarks:
                operator.pass_watermark = partial(self._forward, number)
                operator.pass_idle = partial(self._forward_idle, number)
        first = self.operators[0].first_input
        self._read_first = frozenset(e.id for e in self._inputs_of if e.input_index == first)
        if environment.graph.settings.batch:
            self._held = self._held_in_batch()

    def _held_in_batch(self) -> Held | None:
        """What keeps records in BATCH mode until their turn comes; None where they are processed as they come."""
        head, spec, scratch = self.operators[0], self.environment.vertex.operators[0], self.environment.scratch
        assert scratch is not None
        if head.backend is not None:
            assert spec.key is not None
            key_of = [None if key is None else key_function(key) for key in spec.keys or (spec.key,)]
            return KeySorter(key_of, sort_key_for(spec.key.type_info), scratch)
        waiting = [n for n in range(len(head.inputs())) if n != head.first_input]
        return HeldBack(waiting, scratch) if len(head.inputs()) > 1 else None

    def _helpers(self) -> Iterator[tuple[int, Function]]:
        """Key selectors and partitioners, with the operator that calls them."""
        for number, operator in enumerate(self.environment.vertex.operators):
            for key in operator.keys or (operator.key,):
                if key is not None and isinstance(key.selector, Function):
                    yield number, key.selector
        for exchange in self.environment.graph.outputs_of(self.environment.vertex.id):
            match exchange.partitioning:
                case Hash(key):
                    candidates = [key.selector]
                case Custom(partitioner, key):
                    candidates = [partitioner, key.selector]
                case _:
                    candidates = []
            for candidate in candidates:
                if isinstance(candidate, Function):
                    yield exchange.source_operator, candidate

    def _operator_state(self, saved: OperatorRestore | None, store: FileStore | None) -> OperatorState | None:
        if saved is None or not any(saved.operator_state):
            return None
        assert store is not None
        old = [None if f is None else decode_operator_state(read_state(store, f)) for f in saved.operator_state]
        return redistribute(old, self.environment.vertex.parallelism, self.environment.index)

    # ------------------------------------------------------------------------------------------------ an epoch

    def run_epoch(self, order: EpochOrder, blobs: list[Blob]) -> Iterator[Blob]:
        """Push one epoch through the chain in order; yield what leaves it. `ack` is there once it is exhausted."""
        assert self.chain is not None, "open comes before the first epoch"
        started = time.perf_counter()
        ack = Ack(self.environment.vertex.id, self.environment.index, order.number)
        self._records_in = 0
        self._drained = self._drained or (order.drain and not self.finished)
        with self._blaming():
            self._look_at_the_clock()
            self._begin_epoch(order)
            if isinstance(self.operators[0], SourceHead):
                yield from self._read_source(self.operators[0], order, ack)
            else:
                yield from self._read_blobs(blobs)
            if self._input_ended:
                yield from self._finish_if_over()
            if not self.finished:
                for operator in self.operators:
                    operator.end_epoch()
                    if operator.backend is not None:
                        operator.backend.end_epoch()
            self._look_at_the_clock()
            yield from self.outbox.flush()
        self._complete(ack)
        ack.busy_ms = (time.perf_counter() - started) * 1000
        self.ack = ack

    def _begin_epoch(self, order: EpochOrder) -> None:
        if not self.finished:
            for number, operator in enumerate(self.operators):
                with self._blaming(number):
                    operator.begin_epoch(order)

    def _look_at_the_clock(self) -> None:
        if not self.finished:
            for number, operator in enumerate(self.operators):
                with self._blaming(number):
                    operator.on_clock(self.environment.clock.now_ms())

    def _read_blobs(self, blobs: list[Blob]) -> Iterator[Blob]:
        for blob in in_order(blobs, self._read_first):
            channel, input_index = (blob.exchange, blob.sender), self._input_of[blob.exchange]
            for frame in blob.frames():
                if frame[0] == RECORDS:
                    self._process(frame[1], frame[2], input_index)
                else:
                    yield from self._control(channel, frame)
            yield from self.outbox.take_full()

    def _process(self, values: list[Any], times: list[int | None] | None, input_index: int = 0) -> None:
        assert self.chain is not None
        self._records_in += len(values)
        if self._held is not None and self._held.holds(input_index):
            self._held.add(values, times, input_index)
        elif times is None:
            self.chain.loops[input_index].process(values)
        else:
            self.chain.loops[input_index].process_timed(values, times)

    def _control(self, channel: tuple[int, int], frame: Frame) -> Iterator[Blob]:
        """A watermark or a mark: between two runs, exactly where its sender put it."""
        kind = frame[0]
        if kind == WATERMARK:
            self._advance(self.inputs.advance(channel, frame[1]))
        elif kind == IDLE:
            was_idle = self.inputs.idle
            self._advance(self.inputs.set_idle(channel, frame[1]))
            if self.inputs.idle is not was_idle:
                self._flow_idle(0, self.inputs.idle)
        elif kind == END and self.inputs.end(channel):
            self._input_ended = True
            yield from self._finish_if_over()

    def _advance(self, watermark: int | None) -> None:
        if watermark is not None and self._held is None:
            self._flow(0, watermark)

    def _read_source(self, head: SourceHead, order: EpochOrder, ack: Ack) -> Iterator[Blob]:
        if self._input_ended:
            return
        progress = SourceProgress(finished=self._ended_before)
        if not self._ended_before and not order.drain:
            for item in head.read(Budget(order.max_records, order.max_source_ms, order.group_watermarks), progress):
                self._take(item)
                yield from self.outbox.take_full()
        if order.checkpoint_id is not None or order.drain:
            for item in head.cut(progress):  # the source stands still until its state is captured
                self._take(item)
                yield from self.outbox.take_full()
        progress.finished = progress.finished or order.drain
        for event in self._source_time.end_epoch():
            self._take_event(event)
        ack.backlog = progress.backlog
        if isinstance(head, SplitSourceOperator) and not progress.finished:
            ack.group_watermarks = head.group_watermarks()
        if progress.finished:
            self._flow_idle(0, False)  # the last watermark counts, also of a source that was idle
            self._flow(0, MAX_TIMESTAMP)
            self._input_ended = True
            yield from self._finish_if_over()

    def _take(self, item: Any) -> None:
        for part in self._source_time.apply(item):
            if isinstance(part, SourceEvent):
                self._take_event(part)
            else:
                self._process(part.values, part.timestamps)  # type: ignore[arg-type]

    def _take_event(self, event: SourceEvent) -> None:
        if event.watermark_ms is not None:
            self._advance(self._later(event.watermark_ms))
        if event.idle is not None:
            self._flow_idle(0, event.idle)

    def _later(self, watermark_ms: int) -> int | None:
        """A source's own watermark, if it moves time forward."""
        if watermark_ms <= self.inputs.watermark:
            return None
        self.inputs.watermark = watermark_ms
        return watermark_ms

    # ---------------------------------------------------------------------------------------- time and the end

    def _flow(self, number: int, watermark: int) -> None:
        """Let a watermark reach operator `number`, then go on to what is behind it."""
        if self._passes(number, watermark):
            self._forward(number, watermark)

    def _passes(self, number: int, watermark: int) -> bool:
        """Let a watermark reach operator `number`; whether it goes on by itself."""
        operator = self.operators[number]
        with self._blaming(number):
            operator.on_watermark(watermark)
        if operator.holds_watermarks:
            return False  # it passes them on when what came before has left
        if isinstance(operator, TimestampsOperator):
            if watermark != MAX_TIMESTAMP:
                return False  # it makes watermarks of its own
            operator.end_input()
        return True

    def _forward(self, number: int, watermark: int) -> None:
        self._spread(number, (WATERMARK, watermark), lambda behind: self._passes(behind, watermark))

    def _flow_idle(self, number: int, idle: bool) -> None:
        """Let operator `number` know that its input is idle, or is so no more."""
        if self._passes_idle(number, idle):
            self._forward_idle(number, idle)

    def _passes_idle(self, number: int, idle: bool) -> bool:
        operator = self.operators[number]
        if operator.holds_watermarks:
            operator.on_idle(idle)
            return False
        return not isinstance(operator, TimestampsOperator)  # Flink: it decides by itself

    def _forward_idle(self, number: int, idle: bool) -> None:
        self._spread(number, (IDLE, idle), lambda behind: self._passes_idle(behind, idle))

    def _spread(self, number: int, mark: Frame, passes: Callable[[int], bool]) -> None:
        """Send a mark out of operator `number`, and out of those behind it that let it pass, branch by branch."""
        self._send_mark(number, mark)
        ahead = self._behind(number)
        while ahead:
            here = ahead.pop()
            if passes(here):
                self._send_mark(here, mark)
                ahead += self._behind(here)

    def _send_mark(self, number: int, mark: Frame) -> None:
        for writer in self.outbox.writers.values():
            if writer.exchange.source_operator == number:
                writer.broadcast(mark)

    def _behind(self, number: int) -> list[int]:
        """The operators linked behind one, the first of them last."""
        return [link.target for link in reversed(self.environment.vertex.links) if link.source == number]

    def _finish_if_over(self) -> Iterator[Blob]:
        """The input has ended: finish, unless a loop may still bring records."""
        now_ms = self.environment.clock.now_ms()
        ready = [operator.may_finish(now_ms) for operator in self.operators]  # each begins to wait, ready or not
        if not self.finished and (self._ended_before or all(ready)):
            yield from self._finish()

    def _finish(self) -> Iterator[Blob]:
        """The whole input has been read: give out what is left, head first, and tell everyone behind."""
        if self._held is not None:
            yield from self._run_held(self._held)
            self._flow(0, MAX_TIMESTAMP)
        if not self._ended_before:
            for number, operator in enumerate(self.operators):
                with self._blaming(number):
                    operator.finish()
        self.outbox.end()
        self.finished = True

    def _run_held(self, held: Held) -> Iterator[Blob]:
        """BATCH: what was held, such as the records of one key after another with state and results per key."""
        assert self.chain is not None
        head = self.operators[0]
        for parts in held.groups():
            for part in parts:
                loops = self.chain.loops[part.input_index]
                if any(t is not None for t in part.times):
                    loops.process_timed(part.values, part.times)
                else:
                    loops.process(part.values)
            if head.backend is not None:
                head.end_key()
                head.backend.drop_all()
            yield from self.outbox.take_full()
        self._held = None

    def _complete(self, ack: Ack) -> None:
        ack.records_in = self._records_in
        ack.records_out, ack.bytes_out = self.outbox.taken()
        ack.finished = self.finished
        ack.watermark = self.inputs.watermark if self.operators else MIN_TIMESTAMP
        timers = [t for t in (o.next_timer_ms() for o in self.operators) if t is not None]
        ack.next_timer_ms = min(timers, default=None)
        if not self.finished:
            now_ms = self.environment.clock.now_ms()
            ack.open_loops = frozenset(n for n in (o.open_loop(now_ms) for o in self.operators) if n is not None)
        ack.lines, ack.records = self.driver_output.take()
        ack.accumulators = {name: a.clone() for name, a in self.environment.accumulators.items()}
        ack.metrics = {
            (operator, name): report
            for operator, group in self.environment.metrics.items()
            for name, report in group.reports().items()
        }

    # -------------------------------------------------------------------------------------------- checkpoints

    def snapshot(
        self, checkpoint_id: int, savepoint: SavepointOrder | None = None, triggered_ms: int | None = None
    ) -> Captured:
        """The synchronous part of a snapshot, at the end of the epoch that carries the checkpoint: tail first."""
        started = time.perf_counter()
        if triggered_ms is None:
            triggered_ms = self.environment.clock.now_ms()
        parts: list[_CapturedOperator] = []
        try:
            for number in reversed(range(len(self.operators))):
                operator = self.operators[number]
                with self._blaming(number):
                    operator.before_snapshot(checkpoint_id, triggered_ms)
                    keyed = _keyed_snapshot(operator.backend, checkpoint_id, savepoint)
                    if keyed is not None:
                        keyed.key_groups = operator.key_groups()
                    state = encode_operator_state(operator.states.snapshot()) if operator.states.infos() else None
                    parts.append(_CapturedOperator(operator.operator, keyed, state, operator.infos()))
        finally:
            if isinstance(self.operators[0], SourceHead):
                self.operators[0].release()
        sync_ms = (time.perf_counter() - started) * 1000
        # What a drained source did not read is still there for whoever starts from the savepoint.
        finished = self.finished and not self._drained
        return Captured(self.environment, checkpoint_id, tuple(reversed(parts)), finished, sync_ms, savepoint)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """Tell the operators, tail first."""
        for number in reversed(range(len(self.operators))):
            with self._blaming(number):
                self.operators[number].checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the operators, tail first."""
        for number in reversed(range(len(self.operators))):
            with self._blaming(number):
                self.operators[number].checkpoint_aborted(checkpoint_id)

    # ------------------------------------------------------------------------------------------------ the end

    def close(self) -> None:
        """Close the operators, tail first; the first error is raised when all have been closed."""
        first: UserFunctionError | None = None
        for number in reversed(range(len(self.operators))):
            try:
                with self._blaming(number):
                    self.operators[number].close()
            except UserFunctionError as error:
                first = first or error
        for number, helper in self._helpers() if self.chain is not None else ():
            try:
                with self._blaming(number):
                    helper.close()
            except UserFunctionError as error:
                first = first or error
        if self.chain is not None:
            self.chain.compiled.release()
        if first is not None:
            raise first

    def _blaming(self, number: int = 0) -> _Blaming:
        return _Blaming(self, number)


class _Blaming:
    """Turns what is raised inside into an error that names the operator."""

    __slots__ = ("_number", "_subtask")

    def __init__(self, subtask: Subtask, number: int) -> None:
        self._subtask = subtask
        self._number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, frames: Any) -> None:
        if error is None or isinstance(error, (UserFunctionError, GeneratorExit, KeyboardInterrupt)):
            return
        environment, chain = self._subtask.environment, self._subtask.chain
        compiled = chain.compiled if chain is not None else None
        raise blame(error, environment.vertex, environment.index, compiled, self._number) from error


def _keyed_snapshot(
    backend: KeyedStateBackend | None, checkpoint_id: int, savepoint: SavepointOrder | None
) -> CapturedState | None:
    if backend is None:
        return None
    if savepoint is None:
        return backend.snapshot(checkpoint_id)
    return backend.native_snapshot(checkpoint_id) if savepoint.native else backend.full_snapshot(checkpoint_id)


@dataclass(frozen=True)
class _CapturedOperator:
    operator: Operator
    keyed: CapturedState | None
    operator_state: bytes | None
    infos: tuple[StateInfo, ...]


@dataclass(frozen=True)
class Captured:
    """The captured state of a subtask; `write` may run on another thread while the subtask goes on."""

    environment: SubtaskEnvironment
    checkpoint_id: int
    parts: tuple[_CapturedOperator, ...]
    finished: bool
    sync_ms: float
    savepoint: SavepointOrder | None = None

    def write(self, target: SnapshotTarget) -> SubtaskSnapshot:
        """Write the state files and say what the snapshot consists of."""
        started = time.perf_counter()
        operators = []
        for part in self.parts:
            operator = part.operator
            state = None
            if part.operator_state is not None:
                state = target.write(target.exclusive("operator"), part.operator_state)
            operators.append(
                OperatorSnapshot(
                    operator_id=operator.id,
                    uid=operator.uid,
                    name=operator.name,
                    keyed=part.keyed.write(target) if part.keyed is not None else None,
                    operator_state=state,
                    states=part.infos,
                )
            )
        return SubtaskSnapshot(
            vertex=self.environment.vertex.id,
            subtask=self.environment.index,
            operators=tuple(operators),
            finished=self.finished,
            bytes_written=target.bytes_written,
            sync_ms=self.sync_ms,
            async_ms=(time.perf_counter() - started) * 1000,
        )
