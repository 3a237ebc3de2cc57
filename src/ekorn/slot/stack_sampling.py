"""Samples the stack of the thread that runs the subtasks of a slot, for flame graphs."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple, Protocol

from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.diagnostics import SamplingPlan, StackSample

__all__ = ["RunsSubtasks", "sample_stacks"]


class RunsSubtasks(Protocol):
    """The host of a slot's subtasks.

    Attributes:
        running: The subtask that runs now; None if none does.
        thread: The thread that runs it, or ran one last.
    """

    running: SubtaskId | None
    thread: int


class _Seen(NamedTuple):
    subtask: SubtaskId | None
    on_cpu: bool
    frames: tuple[str, ...]


def sample_stacks(
    host: RunsSubtasks, plan: SamplingPlan, wait: Callable[[float], None] = time.sleep
) -> list[StackSample]:
    """Take samples, which lasts as long as the plan says; return the stacks that were seen."""
    found: Counter[_Seen] = Counter()
    use = _CoreUse()
    for _ in range(plan.samples):
        wait(plan.delay_ms / 1000)
        subtask, thread = host.running, host.thread
        on_cpu = use.is_high(thread)
        frame = None if subtask is None else sys._current_frames().get(thread)
        seen = _Seen(None, False, ()) if frame is None else _Seen(subtask, on_cpu, _frames(frame, plan.depth))
        found[seen] += 1
    return [StackSample(*seen, times) for seen, times in found.items()]


def _frames(innermost: FrameType, depth: int) -> tuple[str, ...]:
    names: list[str] = []
    frame: FrameType | None = innermost
    while frame is not None and len(names) < depth:
        code = frame.f_code
        module = frame.f_globals.get("__name__") or code.co_filename
        names.append(f"{module}.{code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return tuple(reversed(names))


class _Use(NamedTuple):
    at_ns: int
    runnable_ns: int


class _CoreUse:
    """Tells whether a thread was runnable for most of the time since the last look. Linux counts it."""

    def __init__(self) -> None:
        self._last: dict[int, _Use] = {}

    def is_high(self, thread: int) -> bool:
        """Look at a thread. True also if it was never looked at before, or if the system does not tell."""
        native = next((each.native_id for each in threading.enumerate() if each.ident == thread), None)
        runnable_ns = None if native is None else _runnable_ns(native)
        if runnable_ns is None:
            return True
        now, before = _Use(time.monotonic_ns(), runnable_ns), self._last.get(thread)
        self._last[thread] = now
        return before is None or (now.runnable_ns - before.runnable_ns) * 2 > now.at_ns - before.at_ns


def _runnable_ns(native: int) -> int | None:
    """Return how long a thread has run on a core or waited for one; None if the system does not tell."""
    try:
        with open(f"/proc/self/task/{native}/schedstat") as file:
            on_core, waited, *_ = file.read().split()
        return int(on_core) + int(waited)
    except (OSError, ValueError):
        return None
