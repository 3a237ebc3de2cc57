"""Feedback loops: the head of a loop emits in one epoch what the tail of the same subtask took in the epoch before.

Head and tail are in one slot and share a queue, so nothing is sent. The tail comes after the head in every epoch, and
saves the content of the queue in each checkpoint. The queue holds all records in flight, so a loop loses and repeats
nothing when the job fails. Flink: records in flight are lost.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import compress

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import FeedbackHeadSpec, FeedbackTailSpec
from ekorn.operators.environment import LoopSubtask, SubtaskEnvironment
from ekorn.operators.epoch import SubtaskOrder
from ekorn.operators.operator import RuntimeOperator
from ekorn.types.by_value import own

_log = logging.getLogger(__name__)
_UNDER_WAY = ListStateDescriptor("_under_way")
_SPIN_MS = 100  # a loop inside one subtask runs many rounds per epoch, for this long at most
_SPIN_ROUNDS = 10_000  # a loop inside one subtask runs at most this many rounds per epoch


class FeedbackHead(RuntimeOperator):
    """Emits the input and the records that were fed back.

    A loop ends for all subtasks at once: when every head has waited long enough and no tail has records left. A head
    cannot decide that alone, since a record that is fed back may be sent to any head.
    """

    needs_out = True

    def __init__(self, operator: Operator, spec: FeedbackHeadSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._loop = spec.loop
        self._max_wait_ms = spec.max_wait_ms
        self._tag = spec.tag
        self._queue = environment.feedback_queues.setdefault(LoopSubtask(spec.loop, environment.index), deque())
        # The monotonic time since which the input has ended and nothing has been fed back.
        self._waiting_since: float | None = None
        self._over = False

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        emit(value, time)

    def set_open_loops(self, loops: frozenset[int]) -> None:
        self._over = self._loop not in loops

    def begin_epoch(self, order: SubtaskOrder) -> None:
        self._drain()

    def end_epoch(self) -> None:
        # Only a tail in this subtask can have added to the queue during the epoch.
        until_ms = self.environment.clock.monotonic() * 1000 + _SPIN_MS
        for _ in range(_SPIN_ROUNDS):
            if not self._queue or self.environment.clock.monotonic() * 1000 >= until_ms:
                break
            self._drain()

    def _drain(self) -> None:
        out = self.out if self._tag is None else self.side_out.get(self._tag)
        waiting = range(len(self._queue))  # a tail in this subtask may add to the queue meanwhile
        for _ in compress(waiting, self.relief):
            self._waiting_since = None
            value, time = self._queue.popleft()
            if out is not None:
                out(value, time)

    def may_finish(self) -> bool:
        if self._waiting_since is None:
            self._waiting_since = self.environment.clock.monotonic()
        return self._over

    def open_loop(self) -> int | None:
        left_ms = self._left_ms()
        return None if left_ms is not None and left_ms <= 0 else self._loop

    def _left_ms(self) -> int | None:
        """Return how long the loop still waits for records; None if it does not wait, or waits without a limit."""
        if self._waiting_since is None or self._max_wait_ms == 0:
            return None
        return self._max_wait_ms - round((self.environment.clock.monotonic() - self._waiting_since) * 1000)

    def next_timer_ms(self) -> int | None:
        if self._queue:
            return self.environment.clock.now_ms()
        left_ms = self._left_ms()
        return None if left_ms is None else self.environment.clock.now_ms() + left_ms


class FeedbackTail(RuntimeOperator):
    """Takes the records to feed back."""

    def __init__(self, operator: Operator, spec: FeedbackTailSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._loop = spec.loop
        self._queue = environment.feedback_queues.setdefault(LoopSubtask(spec.loop, environment.index), deque())

    def initialize(self) -> None:
        super().initialize()
        self._queue.clear()  # a failed attempt may have left records
        self._queue.extend(self.states.get_list_state(_UNDER_WAY).get())

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._queue.append, 'feed_back')}(({code.bind(own, 'own')}({value}), {time}))")

    def finish(self) -> None:
        if self._queue:  # the head has finished already
            _log.warning(
                "%d records were fed back to %s after the loop had ended, and are lost; "
                "raise max_wait_time_millis to keep the loop open longer",
                len(self._queue),
                self.environment.name,
            )
            self._queue.clear()

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self.states.get_list_state(_UNDER_WAY).update(list(self._queue))

    def open_loop(self) -> int | None:
        return self._loop if self._queue else None

    def next_timer_ms(self) -> int | None:
        return self.environment.clock.now_ms() if self._queue else None
