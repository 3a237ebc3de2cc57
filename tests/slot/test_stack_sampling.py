"""Samples of the thread that runs the subtasks of a slot: which subtask, which frames, on a core or waiting."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from ekorn.graph.addresses import SubtaskId
from ekorn.slot.stack_sampling import sample_stacks
from ekorn.slot_protocol.diagnostics import SamplingPlan

SUBTASK = SubtaskId(1, 0)


@dataclass
class Host:
    running: SubtaskId | None = None
    thread: int = 0


class Worker(threading.Thread):
    """A thread that calls a function again and again, until it is stopped."""

    def __init__(self, step):
        super().__init__(daemon=True)
        self._step = step
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.is_set():
            self._step(self.stopped)


def counts_in_a_loop(stopped):
    for _ in range(1000):
        pass


def waits_for_an_answer(stopped):
    stopped.wait(60)


@pytest.fixture
def worker():
    started = []

    def start(step):
        started.append(Worker(step))
        started[-1].start()
        return Host(SUBTASK, started[-1].ident or 0)

    yield start
    for each in started:
        each.stopped.set()
        each.join(30)


def test_a_busy_subtask_is_seen_on_a_core_with_its_frames(worker):
    found = sample_stacks(worker(counts_in_a_loop), SamplingPlan(10, 5, 50))
    assert sum(each.times for each in found) == 10 and {each.subtask for each in found} == {SUBTASK}
    innermost = [each.frames[-1] for each in found if "counts_in_a_loop" in each.frames[-1]]
    assert innermost and innermost[0].startswith("tests.slot.test_stack_sampling.counts_in_a_loop:")
    assert all("Thread._bootstrap:" in each.frames[0] for each in found), "the outermost frame is first"


def test_a_subtask_that_waits_is_not_on_a_core(worker):
    found = sample_stacks(worker(waits_for_an_answer), SamplingPlan(6, 20, 50))
    waiting = [each for each in found if not each.on_cpu]
    assert sum(each.times for each in waiting) >= 4, "the first sample has nothing to compare with"
    assert any("waits_for_an_answer" in frame for frame in waiting[0].frames)


def test_the_innermost_frames_are_kept(worker):
    (found, *_) = sample_stacks(worker(waits_for_an_answer), SamplingPlan(1, 1, 2))
    assert len(found.frames) == 2 and "wait" in found.frames[-1]


def test_a_slot_without_work_and_a_thread_that_has_ended_have_no_frames():
    plan = SamplingPlan(3, 0, 10)
    assert sample_stacks(Host(), plan) == [(None, False, (), 3)]
    assert sample_stacks(Host(SUBTASK, 12345), plan) == [(None, False, (), 3)]
