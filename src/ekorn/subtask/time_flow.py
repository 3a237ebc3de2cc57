"""Carries watermarks and idleness through the chain of a subtask and out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ekorn.codegen.blame import Blame
from ekorn.graph.job_graph import Vertex
from ekorn.operators.operator import RuntimeOperator
from ekorn.subtask.outbox import Outbox
from ekorn.subtask.wire.frames import IDLE, WATERMARK, Frame
from ekorn.types.time_bounds import MIN_TIMESTAMP


class TimeFlow:
    """Passes watermarks and idleness to every operator of the chain, and sends them over the chain's exchanges.

    An operator that holds watermarks forwards them itself, when the records before them have left.
    """

    def __init__(self, vertex: Vertex, operators: Sequence[RuntimeOperator], outbox: Outbox, blame: Blame) -> None:
        self._operators = operators
        self._blame = blame
        numbers = range(len(operators))
        self._writers = [[w for w in outbox.writers.values() if w.exchange.source_operator == n] for n in numbers]
        self._left_ms = [MIN_TIMESTAMP] * len(operators)  # the last watermark that left each operator
        self._behind = [[link.target for link in reversed(vertex.links) if link.source == n] for n in numbers]
        for number, operator in enumerate(operators):
            if operator.holds_watermarks:
                operator.connect_time(partial(self._forward_watermark, number), partial(self._forward_idle, number))

    @property
    def output_watermark_ms(self) -> int:
        """The lowest of the watermarks that left the ends of the chain last."""
        return min(left for left, behind in zip(self._left_ms, self._behind, strict=True) if not behind)

    def advance(self, watermark_ms: int) -> None:
        """Let a watermark into the head of the chain."""
        if self._take_watermark(0, watermark_ms):
            self._forward_watermark(0, watermark_ms)

    def set_idle(self, idle: bool) -> None:
        """Tell the head of the chain that its input is idle, or active again."""
        if self._take_idle(0, idle):
            self._forward_idle(0, idle)

    def _take_watermark(self, number: int, watermark_ms: int) -> bool:
        """Give a watermark to operator `number`; return whether the watermark passes at once."""
        operator = self._operators[number]
        with self._blame.operator(number):
            operator.on_watermark(watermark_ms)
        return not operator.holds_watermarks

    def _take_idle(self, number: int, idle: bool) -> bool:
        operator = self._operators[number]
        operator.on_idle(idle)
        return not operator.holds_watermarks

    def _forward_watermark(self, number: int, watermark_ms: int) -> None:
        def passes(behind: int) -> bool:
            is_free = self._take_watermark(behind, watermark_ms)
            if is_free:
                self._left_ms[behind] = watermark_ms
            return is_free

        self._left_ms[number] = watermark_ms
        self._spread(number, (WATERMARK, watermark_ms), passes)

    def _forward_idle(self, number: int, idle: bool) -> None:
        self._spread(number, (IDLE, idle), lambda behind: self._take_idle(behind, idle))

    def _spread(self, number: int, mark: Frame, passes: Callable[[int], bool]) -> None:
        """Send a mark out of operator `number` and out of the operators behind it that let it pass, depth first."""
        self._send(number, mark)
        ahead = self._behind[number].copy()
        while ahead:
            here = ahead.pop()
            if passes(here):
                self._send(here, mark)
                ahead += self._behind[here]

    def _send(self, number: int, mark: Frame) -> None:
        for writer in self._writers[number]:
            writer.broadcast(mark)
