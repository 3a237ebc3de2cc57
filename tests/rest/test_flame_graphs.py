"""Flame graphs: which samples they are made of, when new ones are taken, and why there may be none."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.errors import SlotLostError
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.rest.flame_graphs import FlameGraphs
from ekorn.slot_protocol.diagnostics import SamplingPlan, StackSample
from ekorn.web.http_messages import HttpError
from tests.live_jobs import until
from tests.rest.fakes import JOB, asked, job, vertex

OF = vertex(3, 2)
FIRST, SECOND, OTHER = SubtaskId(3, 0), SubtaskId(3, 1), SubtaskId(5, 0)
SAMPLES = {
    0: [
        StackSample(FIRST, True, ("main", "map"), 3),
        StackSample(FIRST, False, ("main", "wait"), 2),
        StackSample(OTHER, True, ("main", "other"), 5),
        StackSample(None, False, (), 7),
    ],
    1: [StackSample(SECOND, True, ("main", "map"), 1)],
}


class Slots:
    """The slots of a job, which take samples as long as they may."""

    def __init__(self, *, status: JobStatus = JobStatus.RUNNING, enabled: bool = True) -> None:
        self.asked: list[tuple[int, SamplingPlan]] = []
        self.go = threading.Event()
        self.go.set()
        graphs = SimpleNamespace(enabled=enabled, refresh_ms=1_000, samples=10, delay_ms=5, depth=20)
        self.job = job(OF, status=status, settings=SimpleNamespace(web=SimpleNamespace(flame_graphs=graphs)))
        self.job.view.sample_stacks = self._sample
        self.clock = self.job.statistics.clock
        self.lost = False
        self.graphs = FlameGraphs()

    def _sample(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        self.asked.append((slot, plan))
        assert self.go.wait(60)
        if self.lost and slot == 1:
            raise SlotLostError(slot, "gone")
        return SAMPLES[slot]

    def answer(self, **query: str) -> dict[str, Any]:
        return self.graphs.answer(self.job, OF, asked(**query))

    def sampled(self, **query: str) -> dict[str, Any]:
        """Return the graph once there is one."""
        until(lambda: "data" in self.answer())
        return self.answer(**query)


def flat(node: dict[str, Any], above: str = "") -> dict[str, int]:
    found = {above + node["name"]: node["value"]}
    for below in node["children"]:
        found |= flat(below, f"{above}{node['name']}/")
    return found


def test_a_graph_has_the_stacks_of_all_subtasks_and_the_time_of_the_others():
    slots = Slots()
    assert slots.answer() == {"endTimestamp": -3}, "the first request lets samples be taken"
    found = slots.sampled()
    assert found["endTimestamp"] == 10_000
    assert flat(found["data"]) == {
        "root": 18,
        "root/main": 6,
        "root/main/map": 4,
        "root/main/wait": 2,
        "root/(another subtask of the slot is running)": 5,
        "root/(waits for input)": 7,
    }
    assert sorted(slots.asked) == [(0, SamplingPlan(10, 5, 20)), (1, SamplingPlan(10, 5, 20))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"subtaskindex": "1"}, {"root": 1, "root/main": 1, "root/main/map": 1}),
        ({"type": "on_cpu"}, {"root": 4, "root/main": 4, "root/main/map": 4}),
        (
            {"type": "OFF_CPU", "subtaskindex": "0"},
            {
                "root": 14,
                "root/main": 2,
                "root/main/wait": 2,
                "root/(another subtask of the slot is running)": 5,
                "root/(waits for input)": 7,
            },
        ),
    ],
)
def test_samples_are_chosen_by_subtask_and_by_what_the_processor_did(query, expected):
    assert flat(Slots().sampled(**query)["data"]) == expected


def test_new_samples_are_taken_when_the_latest_are_old_and_never_twice_at_once():
    slots = Slots()
    slots.sampled()
    until(lambda: not slots.graphs._jobs[JOB].is_sampling)
    slots.clock.advance(999)
    slots.answer()
    assert len(slots.asked) == 2
    slots.clock.advance(1)
    slots.go.clear()
    assert slots.answer()["endTimestamp"] == 10_000, "the latest samples until there are new ones"
    slots.clock.advance(5_000)
    slots.answer()
    until(lambda: len(slots.asked) == 4)
    slots.go.set()
    until(lambda: not slots.graphs._jobs[JOB].is_sampling)
    assert len(slots.asked) == 4, "no request asked again while samples were taken"
    assert slots.answer()["endTimestamp"] == 16_000


def test_a_slot_that_does_not_answer_is_left_out():
    slots = Slots()
    slots.lost = True
    assert flat(slots.sampled()["data"])["root"] == 17


def test_a_failure_of_sampling_does_not_prevent_the_next_one():
    slots = Slots()
    slots.job.statistics.graph.slot_count = 0  # no slot: the pool cannot be made
    slots.answer()
    until(lambda: JOB in slots.graphs._jobs and not slots.graphs._jobs[JOB].is_sampling)
    slots.job.statistics.graph.slot_count = 2
    slots.clock.advance(1_000)
    assert slots.sampled()["endTimestamp"] == 11_000


def test_an_ended_job_has_no_graph_and_is_forgotten():
    slots = Slots()
    slots.sampled()
    slots.job.status = JobStatus.FINISHED
    assert slots.answer() == {"endTimestamp": -1}
    assert slots.graphs._jobs == {}
    assert Slots(status=JobStatus.FAILED).answer() == {"endTimestamp": -1}


def test_graphs_may_be_disabled():
    slots = Slots(enabled=False)
    assert slots.answer() == {"endTimestamp": -2} and slots.asked == []


def test_an_unknown_type_is_named_and_cut():
    with pytest.raises(HttpError, match=f"unknown type '{'X' * 40}': choose from FULL, ON_CPU, OFF_CPU") as refused:
        Slots().answer(type="x" * 50)
    assert refused.value.status == 400
