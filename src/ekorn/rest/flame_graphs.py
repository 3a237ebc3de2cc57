"""Flame graphs of vertices, in Flink's form.

The slots take samples in the background, while requests are answered from the latest ones.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.rest.known_jobs import KnownJob, flink_id
from ekorn.rest.operations import in_background
from ekorn.slot_protocol.diagnostics import SamplingPlan, StackSample
from ekorn.web.http_messages import HttpError, Request

__all__ = ["FlameGraphs"]

# Flink: a time below zero says why there is no graph.
_TERMINATED, _DISABLED, _WAITING = -1, -2, -3

_MOST_AT_ONCE = 16  # the most slots that are asked at the same time
_NO_INPUT = "(waits for input)"
_OTHER_RUNS = "(another subtask of the slot is running)"

Kind = Literal["FULL", "ON_CPU", "OFF_CPU"]
_KINDS: tuple[Kind, ...] = ("FULL", "ON_CPU", "OFF_CPU")


class _Sampled(NamedTuple):
    """The samples of a job's slots, by the number of the slot, and when the last one was taken."""

    at_ms: int
    by_slot: dict[int, list[StackSample]]


class _Stack(NamedTuple):
    """Frames from the outermost on, and how often they were seen."""

    frames: tuple[str, ...]
    times: int


@dataclass
class _OfJob:
    """The latest samples of a job, and whether new ones are being taken."""

    latest: _Sampled | None = None
    asked_ms: int | None = None
    is_sampling: bool = False


class FlameGraphs:
    """The latest samples of all jobs that were asked for. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, _OfJob] = {}

    def answer(self, job: KnownJob, vertex: Vertex, request: Request) -> dict[str, Any]:
        """Answer `/jobs/:jobid/vertices/:vertexid/flamegraph`: the latest graph, or the reason why there is none.

        Raises:
            HttpError: The type or the subtask is wrong.
        """
        kind, subtask = _kind(request), request.one("subtaskindex")
        indices = range(vertex.parallelism)
        if subtask is not None:
            chosen = job.subtask(flink_id(vertex), subtask).subtask
            indices = range(chosen, chosen + 1)
        if job.status.is_terminal_state():
            with self._lock:
                self._jobs.pop(job.job_id, None)
            return _none(_TERMINATED)
        if not job.statistics.settings.web.flame_graphs.enabled:
            return _none(_DISABLED)
        found = self._latest(job)
        if found is None:
            return _none(_WAITING)
        return {"endTimestamp": found.at_ms, "data": _tree(_stacks(job, vertex, indices, found, kind))}

    def _latest(self, job: KnownJob) -> _Sampled | None:
        """Return the latest samples of a job; let new ones be taken if they are old, or if there are none."""
        now_ms = job.statistics.clock.now_ms()
        with self._lock:
            held = self._jobs.setdefault(job.job_id, _OfJob())
            refresh_ms = job.statistics.settings.web.flame_graphs.refresh_ms
            if not held.is_sampling and (held.asked_ms is None or now_ms - held.asked_ms >= refresh_ms):
                held.is_sampling, held.asked_ms = True, now_ms
                in_background(lambda: self._sample(job, held))
            return held.latest

    def _sample(self, job: KnownJob, held: _OfJob) -> None:
        try:
            found = _sampled(job)
            with self._lock:
                held.latest = found
        finally:
            held.is_sampling = False


def _kind(request: Request) -> Kind:
    given = (request.one("type") or "FULL").upper()
    found = next((kind for kind in _KINDS if kind == given), None)
    if found is None:
        raise HttpError(400, f"unknown type {given[:40]!r}: choose from {', '.join(_KINDS)}")
    return found


def _none(why: int) -> dict[str, Any]:
    return {"endTimestamp": why}  # Flink: the field is absent, not null


def _sampled(job: KnownJob) -> _Sampled:
    """Sample all slots of a job at the same time. A slot that does not answer is left out."""
    settings, statistics = job.statistics.settings.web.flame_graphs, job.statistics
    plan = SamplingPlan(settings.samples, settings.delay_ms, settings.depth)

    def of(slot: int) -> list[StackSample]:
        try:
            return job.view.sample_stacks(slot, plan)
        except SlotLostError:
            return []

    slots = range(statistics.graph.slot_count)
    with ThreadPoolExecutor(min(len(slots), _MOST_AT_ONCE), "ekorn-samples") as pool:
        by_slot = dict(zip(slots, pool.map(of, slots), strict=True))
    return _Sampled(statistics.clock.now_ms(), by_slot)


def _stacks(job: KnownJob, vertex: Vertex, indices: Iterable[int], found: _Sampled, kind: Kind) -> Iterator[_Stack]:
    """Return the stacks of a vertex's subtasks.

    One thread runs all subtasks of a slot, so most samples are of other vertices.
    """
    for index in indices:
        subtask = SubtaskId(vertex.id, index)
        for sample in found.by_slot.get(job.statistics.graph.slot_of(vertex, index), ()):
            is_own = sample.subtask == subtask
            if kind != "FULL" and (is_own and sample.on_cpu) is not (kind == "ON_CPU"):
                continue
            waits = _NO_INPUT if sample.subtask is None else _OTHER_RUNS
            yield _Stack(sample.frames if is_own else (waits,), sample.times)


@dataclass
class _Node:
    times: int = 0
    below: dict[str, _Node] = field(default_factory=dict)


def _tree(stacks: Iterable[_Stack]) -> dict[str, Any]:
    root = _Node()
    for stack in stacks:
        node = root
        node.times += stack.times
        for frame in stack.frames:
            node = node.below.setdefault(frame, _Node())
            node.times += stack.times
    return _shown("root", root)


def _shown(name: str, node: _Node) -> dict[str, Any]:
    return {"name": name, "value": node.times, "children": [_shown(each, below) for each, below in node.below.items()]}
