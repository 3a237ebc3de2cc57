"""The output of a subtask for the driver: printed lines and collected records.

Output leaves in parts while the subtask emits, so that neither a slot nor a message holds all that an epoch puts out.
What is left at the end of the epoch travels with the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ekorn.errors import RecordTooLargeError
from ekorn.graph.job_graph import Vertex
from ekorn.graph.specs import CollectSpec, PrintSpec
from ekorn.operators.epoch import OutputPart
from ekorn.operators.sinks.collected_run import CollectedRun, collected_runs
from ekorn.types.by_value import size_of

_T = TypeVar("_T")


class DriverOutput:
    """The lines and records that have not left yet.

    Args:
        vertex: The vertex of the subtask.
        subtask: The index of the subtask.
        part_bytes: The size at which a part leaves.
        max_record_bytes: The size above which a record is refused.

    Attributes:
        lines: Printed lines. `print` appends to it.
        records: Collected records. `execute_and_collect` appends to it.
        is_used: Whether the vertex prints or collects.
    """

    def __init__(self, vertex: Vertex, subtask: int, *, part_bytes: int, max_record_bytes: int) -> None:
        self.lines: list[str] = []
        self.records: list[Any] = []
        self._vertex = vertex.id
        self._collected_from = _collected_from(vertex)
        self.is_used = any(isinstance(operator.spec, (CollectSpec, PrintSpec)) for operator in vertex.operators)
        self._subtask = subtask
        self._part_bytes = part_bytes
        self._max_record_bytes = max_record_bytes
        self._parts = 0  # parts that have left since the epoch began
        self._bytes_taken = 0
        self._held_bytes = 0.0  # the estimated size of the lines and records that the last look covered
        self._seen_lines = self._seen_records = 0  # the numbers of lines and records that `_held_bytes` covers

    def sample(self) -> int:
        """Measure the last line and the last record; return how many items of the larger size fill a part."""
        line_bytes = len(self.lines[-1]) if self.lines else 0
        record_bytes = size_of(self.records[-1]) if self.records else 0
        self._held_bytes += line_bytes * (len(self.lines) - self._seen_lines)
        self._held_bytes += record_bytes * (len(self.records) - self._seen_records)
        self._seen_lines, self._seen_records = len(self.lines), len(self.records)
        return max(1, self._part_bytes // max(1, line_bytes, record_bytes))

    def held_bytes(self) -> float:
        """Return an estimate of the bytes that have not left yet."""
        self.sample()
        return self._held_bytes

    def take_full(self) -> Iterator[OutputPart]:
        """Yield parts if enough has gathered for one."""
        if self.held_bytes() >= self._part_bytes:
            yield from self._take_parts()

    def _take_parts(self) -> Iterator[OutputPart]:
        lines, runs = self._take()
        for some in _cut(lines, len, self._part_bytes):
            yield self._part(some, [])
        for some_runs in _cut(runs, _size_of_run, self._part_bytes):
            yield self._part([], some_runs)

    def _part(self, lines: list[str], runs: list[CollectedRun]) -> OutputPart:
        self._parts += 1
        part = OutputPart(self._vertex, self._subtask, self._parts, lines, runs)
        self._bytes_taken += part.size_bytes
        return part

    def take_rest(self) -> OutputPart:
        """Return what is left at the end of an epoch."""
        lines, runs = self._take()
        last = self._part(lines, list(runs))
        self._parts = 0
        return last

    def bytes_taken(self) -> int:
        """Return how many bytes have left since the last call."""
        taken, self._bytes_taken = self._bytes_taken, 0
        return taken

    def _take(self) -> tuple[list[str], Iterator[CollectedRun]]:
        lines, self.lines = self.lines, []
        records, self.records = self.records, []
        self._held_bytes, self._seen_lines, self._seen_records = 0.0, 0, 0
        return lines, map(self._checked, collected_runs(records))

    def _checked(self, run: CollectedRun) -> CollectedRun:
        if run.size_bytes > self._max_record_bytes:
            error = RecordTooLargeError(run.size_bytes, self._max_record_bytes, None)
            error.emitted_by = self._collected_from
            raise error
        return run


def _collected_from(vertex: Vertex) -> int:
    """Return the operator whose output is collected, or the head if no output is collected."""
    collecting = {n for n, operator in enumerate(vertex.operators) if isinstance(operator.spec, CollectSpec)}
    return next((link.source for link in vertex.links if link.target in collecting), 0)


def _size_of_run(run: CollectedRun) -> int:
    return run.size_bytes


def _cut(items: Iterable[_T], size: Callable[[_T], int], most_bytes: int) -> Iterator[list[_T]]:
    """Cut items into lists of at most `most_bytes` bytes. An item that is larger forms a list of its own."""
    some: list[_T] = []
    some_bytes = 0
    for item in items:
        if some and some_bytes + size(item) > most_bytes:
            yield some
            some, some_bytes = [], 0
        some.append(item)
        some_bytes += size(item)
    if some:
        yield some
