"""Vertices and subtasks as they are answered: states, times, input and output, back pressure, attempts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.driver.statistics.job_metrics import Totals
from ekorn.driver.statistics.subtask_lives import SubtaskLife
from ekorn.graph.addresses import SubtaskId
from ekorn.rest import vertex_answers
from ekorn.rest.subtask_answers import HOST, counts, io_metrics, state_of, status_durations, subtask_details, times
from ekorn.web.http_messages import HttpError
from tests.rest.fakes import job, vertex

NOW = 10_000


def life(state: str = "RUNNING", attempt: int = 2, slot: int = 0, **entered: int) -> SubtaskLife:
    given = entered or {"CREATED": 1_000, "DEPLOYING": 2_000, "RUNNING": 3_000}
    return SubtaskLife(attempt, slot, state, given)  # type: ignore[arg-type]


def ended(at_ms: int, state: str = "FINISHED") -> SubtaskLife:
    return life(state, DEPLOYING=2_000, RUNNING=3_000, **{state: at_ms})


@pytest.mark.parametrize(
    ("states", "worst"),
    [
        ([], "CREATED"),
        (["RUNNING", "FINISHED"], "RUNNING"),
        (["FINISHED", "FINISHED"], "FINISHED"),
        (["RUNNING", "FAILED", "CANCELED"], "FAILED"),
        (["CREATED"], "CREATED"),
        (["SCHEDULED", "DEPLOYING"], "DEPLOYING"),
    ],
)
def test_a_vertex_is_in_the_state_that_needs_most_attention(states, worst):
    lives = [life(state) for state in states]
    assert state_of(lives) == worst
    assert {state: count for state, count in counts(lives).items() if count} == {
        state: states.count(state) for state in states
    }


def test_subtasks_began_with_the_first_and_ended_with_the_last():
    assert times([], NOW) == {"start-time": -1, "end-time": -1, "duration": -1}
    assert times([life(CREATED=1_000)], NOW) == {"start-time": -1, "end-time": -1, "duration": -1}
    later = life(DEPLOYING=4_000)
    assert times([life(), later], NOW) == {"start-time": 2_000, "end-time": -1, "duration": 8_000}
    assert times([ended(6_000), later], NOW) == {"start-time": 2_000, "end-time": -1, "duration": 8_000}
    assert times([ended(6_000), ended(7_000, "FAILED")], NOW) == {
        "start-time": 2_000,
        "end-time": 7_000,
        "duration": 5_000,
    }


def test_input_output_and_times_are_those_of_all_subtasks():
    parts = [
        (Totals(records_in=5, records_out=7, bytes_in=50, bytes_out=100, busy_ms=1_000.25, blocked_ms=500.0), life()),
        (Totals(records_in=1, records_out=2, bytes_in=5, bytes_out=10, busy_ms=10.0, blocked_ms=0.5), ended(4_000)),
        (Totals(), life(CREATED=1)),
    ]
    assert io_metrics(parts, NOW) == {
        "read-bytes": 55,
        "read-bytes-complete": True,
        "write-bytes": 110,
        "write-bytes-complete": True,
        "read-records": 6,
        "read-records-complete": True,
        "write-records": 9,
        "write-records-complete": True,
        "accumulated-backpressured-time": 500,
        "accumulated-idle-time": 6_489,  # 7,000 and 1,000 of life, without what was busy or waited
        "accumulated-busy-time": 1_010.25,
    }
    assert io_metrics([(Totals(busy_ms=9_000.0), life())], NOW)["accumulated-idle-time"] == 0
    assert io_metrics([(Totals(), life(RUNNING=NOW + 5))], NOW)["accumulated-idle-time"] == 0


def test_a_subtask_was_in_each_state_until_it_entered_the_next():
    assert status_durations(life(), NOW) == {
        "CREATED": 1_000,
        "SCHEDULED": -1,
        "DEPLOYING": 1_000,
        "INITIALIZING": -1,
        "RUNNING": 7_000,
    }
    at_once = life(CREATED=5, DEPLOYING=5, RUNNING=5)
    assert status_durations(at_once, 9)["RUNNING"] == 4 and status_durations(at_once, 9)["CREATED"] == 0


OF = vertex(3, 3)
LIVES = [life(slot=1), life(slot=0, attempt=5), ended(6_000)]
EARLIER = life("FAILED", attempt=1, DEPLOYING=100, RUNNING=200, FAILED=300)


class Lives:
    def of(self, number: int) -> list[SubtaskLife]:
        return LIVES

    def present(self, subtask: SubtaskId) -> SubtaskLife:
        return LIVES[subtask.subtask]

    def earlier(self, subtask: SubtaskId) -> list[SubtaskLife]:
        return [EARLIER] if subtask.subtask == 0 else []


class Accumulator:
    def __init__(self, value: Any) -> None:
        self._value = value

    def get_local_value(self) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class Metrics:
    blocked = (0.0, 100.0, 500.0)

    def totals(self, subtask: SubtaskId) -> Totals:
        return Totals(records_in=subtask.subtask + 1)

    def rates(self, subtask: SubtaskId) -> Any:
        return SimpleNamespace(blocked_ms=self.blocked[subtask.subtask], busy_ms=250.06, idle_ms=123.46)

    def accumulators(self, subtask: SubtaskId) -> dict[str, Any]:
        return {"b": Accumulator(ValueError("no")), "a": Accumulator(subtask.subtask)}


@pytest.fixture
def known() -> Any:
    found = job(OF, lives=Lives(), metrics=Metrics())
    found.slot_id = lambda slot: f"slot {slot}"
    return found


def test_a_subtask_is_told_with_its_present_attempt_and_figures(known):
    found = vertex_answers.subtask_answer(known, SubtaskId(3, 1))
    assert (found["subtask"], found["attempt"], found["status"], found["taskmanager-id"]) == (1, 5, "RUNNING", "slot 0")
    assert found["metrics"]["read-records"] == 2 and found["endpoint"] == HOST
    assert found["duration"] == 8_000 and found["status-duration"]["RUNNING"] == 7_000


def test_an_earlier_attempt_is_told_without_the_figures_of_the_present_one(known):
    found = vertex_answers.attempt_answer(known, SubtaskId(3, 0), "1")
    assert (found["attempt"], found["status"], found["duration"]) == (1, "FAILED", 200)
    assert found["metrics"]["read-records"] == 0
    assert vertex_answers.attempt_answer(known, SubtaskId(3, 0), "2")["metrics"]["read-records"] == 1
    with pytest.raises(HttpError, match="subtask 0 has no attempt 7, or it is no longer kept"):
        vertex_answers.attempt_answer(known, SubtaskId(3, 0), "7")
    with pytest.raises(HttpError, match="the attempt is 'x'"):
        vertex_answers.attempt_answer(known, SubtaskId(3, 0), "x")
    assert subtask_details(known, SubtaskId(3, 0), LIVES[0], NOW)["metrics"]["read-records"] == 1


def test_the_times_of_subtasks_are_when_they_entered_their_states(known):
    found = vertex_answers.subtask_times(known, OF)
    assert (found["id"], found["name"], found["now"]) == ("op3", "vertex 3", NOW)
    assert [each["subtask"] for each in found["subtasks"]] == [0, 1, 2]
    assert [each["duration"] for each in found["subtasks"]] == [8_000, 8_000, 4_000]
    stamps = found["subtasks"][2]["timestamps"]
    assert (stamps["RUNNING"], stamps["FINISHED"], stamps["FAILED"]) == (3_000, 6_000, 0)


def test_back_pressure_is_the_part_of_a_second_that_a_subtask_waited(known):
    found = vertex_answers.back_pressure(known, OF)
    assert [each["ratio"] for each in found["subtasks"]] == [0.0, 0.1, 0.5]
    assert [each["backpressure-level"] for each in found["subtasks"]] == ["ok", "ok", "low"]
    assert [each["attempt-number"] for each in found["subtasks"]] == [2, 5, 2]
    assert found["subtasks"][0]["busyRatio"] == 0.2501 and found["subtasks"][0]["idleRatio"] == 0.1235
    assert (found["status"], found["backpressure-level"], found["backpressureLevel"]) == ("ok", "low", "low")
    assert found["end-timestamp"] == NOW
    known.statistics.metrics.blocked = (101.0, 501.0, 0.0)
    found = vertex_answers.back_pressure(known, OF)
    assert [each["backpressureLevel"] for each in found["subtasks"]] == ["low", "high", "ok"]
    assert found["backpressureLevel"] == "high"


def test_accumulators_are_text_and_those_that_raise_say_what(known):
    rows = [
        {"name": "a", "type": "Accumulator", "value": "0"},
        {"name": "b", "type": "Accumulator", "value": "<ValueError: no>"},
    ]
    found = vertex_answers.subtask_accumulators(known, OF)
    assert (found["id"], found["parallelism"], len(found["subtasks"])) == ("op3", 3, 3)
    assert found["subtasks"][0] == {"subtask": 0, "attempt": 2, "endpoint": HOST, "user-accumulators": rows}
    assert len(vertex_answers.vertex_accumulators(known, OF)["user-accumulators"]) == 6
    present = vertex_answers.attempt_accumulators(known, OF, SubtaskId(3, 0), "2")
    assert present == {"subtask": 0, "attempt": 2, "id": "op3", "user-accumulators": rows}
    assert vertex_answers.attempt_accumulators(known, OF, SubtaskId(3, 0), "1")["user-accumulators"] == []


def test_the_subtasks_of_a_vertex_are_told_by_the_slot_that_hosts_them(known, monkeypatch):
    monkeypatch.setattr(vertex_answers, "_aggregated", lambda job, of, indices, now_ms: indices)
    found = vertex_answers.vertex_slots(known, OF)
    assert (found["id"], found["name"], found["now"]) == ("op3", "vertex 3", NOW)
    first, second = found["taskmanagers"]
    assert (first["taskmanager-id"], first["aggregated"]) == ("slot 1", [0])
    assert (second["taskmanager-id"], second["aggregated"], second["status"]) == ("slot 0", [1, 2], "RUNNING")
    assert second["metrics"]["read-records"] == 5 and second["status-counts"]["FINISHED"] == 1
