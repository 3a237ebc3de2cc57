"""Asynchronous I/O: requests to other systems are in flight while the next records are processed.

An epoch waits only a moment for its requests: results that come later are emitted in a later epoch. A checkpoint
contains the records whose requests are in flight, and after a restore their requests are made again.

In a job that runs continuously, one thread runs all subtasks of a slot and must not wait. A record beyond the capacity
waits in the operator, and the subtask gets no more records until the record has left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import compress
from math import ceil
from operator import itemgetter
from typing import Any

from ekorn.codegen.blame import user_error
from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import preview
from ekorn.functions.async_functions import AsyncBatchFunction, AsyncFunction
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import AsyncSpec
from ekorn.operators.asynchronous.async_queue import OrderedQueue, PendingRecord, Queue, UnorderedQueue
from ekorn.operators.asynchronous.async_requests import AsyncRequest, Calls, Requests
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import UserFunctionOperator
from ekorn.operators.results import PROCESS_RESULTS
from ekorn.types.by_value import loaded, stored

_IN_FLIGHT = ListStateDescriptor("_in_flight")
# The most records that may wait beyond the capacity; a step brings fewer unless earlier operators multiply them.
_MOST_WAITING = 10_000


class AsyncWaitOperator(UserFunctionOperator):
    """An `AsyncFunction` or an `AsyncBatchFunction`. At most `capacity` requests have results that have not left."""

    needs_out = True
    holds_watermarks = True
    may_be_full = True

    def __init__(self, operator: Operator, spec: AsyncSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._spec = spec
        self._queue: Queue = OrderedQueue() if spec.ordered else UnorderedQueue()
        self._filling: AsyncRequest | None = None  # the batch that is being filled
        self._due: float | None = None  # the monotonic time at which the batch is sent even if it is not full
        self._sent = 0  # requests whose results have not all left
        self._waiting: deque[PendingRecord] = deque()  # records beyond the capacity
        self._most_waiting = _MOST_WAITING if environment.continuous else 0
        self._to_repeat: list[tuple[Any, int | None]] = []  # the records that were in flight in the restored checkpoint
        self.requests: Requests | None = None
        # An epoch waits this long for its answers. Most come in time and need not wait for the next epoch. A continuous
        # job emits answers at any time.
        self._linger_s = 0.0 if environment.continuous else environment.graph.settings.async_linger_ms / 1000
        self._hurried = False

    def initialize(self) -> None:
        super().initialize()
        self._to_repeat = list(self.states.get_list_state(_IN_FLIGHT).get())

    def open(self) -> None:
        super().open()
        calls = _single(self._function) if self._spec.batch_size is None else _batched(self._function)
        self.requests = Requests(calls, self._spec.timeout_ms, self._spec.retry, f"async-{self.environment.name}")

    # ------------------------------------------------------------------------------------------- records come

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._add, 'ask')}({value}, {time})")

    def _add(self, value: Any, time: int | None) -> None:
        self._let_out()
        self._wait_while(lambda: not self._has_place and len(self._waiting) >= self._most_waiting)
        pending = PendingRecord(stored(value), time)
        self._queue.add(pending)
        if self._has_place:
            self._ask(pending)
        else:
            self._waiting.append(pending)

    @property
    def _has_place(self) -> bool:
        """Whether a new record can join a request at once, without waiting for capacity."""
        return self._filling is not None or self._sent < self._spec.capacity

    @property
    def is_full(self) -> bool:
        return bool(self._waiting)

    def _ask(self, pending: PendingRecord) -> None:
        if self._filling is None:
            self._filling = AsyncRequest()
            self._sent += 1
            if self._spec.batch_timeout_ms is not None:
                self._due = self.environment.clock.monotonic() + self._spec.batch_timeout_ms / 1000
        pending.request = self._filling
        self._filling.records.append(pending)
        if len(self._filling.records) >= (self._spec.batch_size or 1):
            self._send()
        else:
            self._send_if_due()

    def _send_if_due(self) -> None:
        if self._due is not None and self.environment.clock.monotonic() >= self._due:
            self._send()

    def _send(self) -> None:
        assert self.requests is not None and self._filling is not None
        request, self._filling, self._due = self._filling, None, None
        self.requests.send(request)

    def on_watermark(self, watermark_ms: int) -> None:
        self._queue.add_mark(partial(self.forward_watermark, watermark_ms))
        self._let_out()

    def on_idle(self, idle: bool) -> None:
        self._queue.add_mark(partial(self.forward_idle, idle))
        self._let_out()

    # ------------------------------------------------------------------------------------------- results leave

    def _let_out(self) -> None:
        """Emit the results that may leave; raise the error of a failed request."""
        assert self.requests is not None
        done, queue = self.requests.done, self._queue
        while done:
            request = done.popleft()
            if request.error is not None:
                raise self._blame(request, request.error)
            for pending, results in zip(request.records, request.results, strict=True):
                pending.results = results
                queue.complete(pending)
        while (item := queue.take()) is not None:
            if isinstance(item, PendingRecord):
                self._emit(item)
            else:
                item()
        while self._waiting and self._has_place:
            self._ask(self._waiting.popleft())

    def _emit(self, pending: PendingRecord) -> None:
        pending.request.left -= 1
        if pending.request.left == 0:
            self._sent -= 1
        assert pending.results is not None
        for result in compress(pending.results, self.relief):
            self.out(result, pending.time)

    def _blame(self, request: AsyncRequest, error: BaseException) -> BaseException:
        values = [loaded(pending.kept) for pending in request.records]
        record = values[0] if self._spec.batch_size is None else values
        all_frames, frames = self.environment.graph.settings.all_frames, error.__traceback__
        if frames is not None and not all_frames:
            frames = frames.tb_next  # the first frame is not the user's
        return user_error(error, self.operator, self.environment.index, preview(record), frames, all_frames=all_frames)

    def _wait_while(self, condition: Callable[[], bool]) -> None:
        assert self.requests is not None
        while condition():
            self.requests.wait()
            self._let_out()

    # ------------------------------------------------------------------------------------------- time passes

    def on_clock(self, now_ms: int) -> None:
        repeated, self._to_repeat = self._to_repeat, []
        for value, time in repeated:  # before the first record of the attempt
            self._add(value, time)
        self._send_if_due()
        self._let_out()

    def end_epoch(self) -> None:
        assert self.requests is not None
        until_s = self.requests.now_s() + self._linger_s
        self._let_out()
        while self._in_flight and (left_s := until_s - self.requests.now_s()) > 0:
            self.requests.wait(left_s)
            self._let_out()

    @property
    def _in_flight(self) -> int:
        """Return how many requests are in flight."""
        return self._sent - (self._filling is not None)

    def next_timer_ms(self) -> int | None:
        clock = self.environment.clock
        if self._in_flight or self._to_repeat:
            return clock.now_ms()
        return None if self._due is None else clock.now_ms() + max(0, ceil((self._due - clock.monotonic()) * 1000))

    # ------------------------------------------------------------------------------------------- the end

    def may_finish(self) -> bool:
        """Return whether all answers have arrived. Until then epochs continue, and checkpoints with them."""
        assert self.requests is not None
        if self._filling is not None:
            self._send()
        if not self._hurried:  # Flink: at the end of the input a request that waits for its retry is retried at once
            self.requests.hurry()
            self._hurried = True
        self._let_out()
        return len(self._queue) == 0

    def finish(self) -> None:
        """Wait for the requests of records that the operators before this one emitted at the end."""
        assert self.requests is not None
        while len(self._queue) > 0:
            if self._filling is not None:
                self._send()
            self.requests.wait()
            self._let_out()

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        waiting = [(loaded(pending.kept), pending.time) for pending in self._queue.waiting()]
        self.states.get_list_state(_IN_FLIGHT).update(waiting + self._to_repeat)

    def close(self) -> None:
        self.stop()
        super().close()

    def stop(self) -> None:
        """Cancel the requests in flight."""
        if self.requests is not None:
            self.requests.stop()


def _single(function: AsyncFunction[Any, Any]) -> Calls:
    """Return the calls that make one request per record."""
    return Calls(itemgetter(0), function.async_invoke, function.timeout, _results_of_record)


def _results_of_record(value: Any, results: Any) -> list[list[Any]]:
    if not isinstance(results, Iterable):
        must = "cannot be none" if results is None else "should be of list type"
        raise RuntimeError(
            f"The result of AsyncFunction {must}: async_invoke or timeout returned {preview(results)} for "
            f"{preview(value)}; return a list of results, [] for none"
        )
    if results.__class__ not in PROCESS_RESULTS.known:
        PROCESS_RESULTS.check(results, "async_invoke or timeout")
    return [list(results)]


def _batched(function: AsyncBatchFunction[Any, Any]) -> Calls:
    """Return the calls that make one request per batch of records."""
    return Calls(list, function.async_invoke_batch, function.timeout, _results_of_batch)


def _results_of_batch(values: list[Any], results: Any) -> list[list[Any]]:
    if not isinstance(results, Iterable):
        raise RuntimeError(
            f"async_invoke_batch or timeout returned {preview(results)}; return a list with a result for each input"
        )
    given = list(results)
    if len(given) != len(values):
        raise ValueError(
            f"async_invoke_batch or timeout returned {len(given)} results for {len(values)} inputs; "
            f"return a result for each input, in their order"
        )
    return [[result] for result in given]
