"""What the driver remembers of a job: rates of subtasks, their lives, checkpoints and failures; all of it bounded."""

import pytest

from tamias.clock import ManualClock
from tamias.common import JobStatus
from tamias.driver.job_metrics import JobMetrics
from tamias.driver.statistics.checkpoint_statistics import CheckpointStatistics
from tamias.driver.statistics.failure_history import FailureHistory
from tamias.driver.statistics.subtask_lives import SubtaskLives
from tamias.errors import UserFunctionError
from tamias.graph.addresses import SubtaskId
from tamias.operators.epoch import Ack
from tamias.state.snapshots import OperatorSnapshot, StateFile, SubtaskSnapshot
from tests.live_jobs import environment, generated, tallied

A, B = SubtaskId(0, 0), SubtaskId(1, 0)


@pytest.fixture
def graph():
    env = environment()
    tallied(generated(env, 10), 2)
    return env.job_graph("job")


def test_rates_are_those_of_the_last_seconds_and_their_times_fill_the_second(graph):
    clock = ManualClock()
    metrics = JobMetrics(graph, clock)
    for _ in range(30):
        clock.advance(500)
        metrics.add([Ack(0, 0, 0, records_in=100, records_out=50, bytes_out=10, busy_ms=200, blocked_ms=100)])
    rates = metrics.rates(A)
    assert (rates.records_in, rates.records_out, rates.bytes_out) == (200, 100, 20)
    assert (rates.busy_ms, rates.blocked_ms, rates.idle_ms) == (400, 200, 400)
    clock.advance(3_600_000)
    assert metrics.rates(A).records_in < 1, "nothing was read for an hour"


def test_a_subtask_that_has_restarted_has_no_negative_rate(graph):
    clock = ManualClock()
    metrics = JobMetrics(graph, clock)
    for _ in range(4):
        clock.advance(1000)
        metrics.add([Ack(0, 0, 0, records_in=100, busy_ms=10)])
    metrics.restart([A])
    clock.advance(1000)
    metrics.add([Ack(0, 0, 0, records_in=10, busy_ms=1)])
    assert metrics.rates(A).records_in > 0 and metrics.rates(A).busy_ms > 0


def test_a_subtask_lives_once_per_attempt(graph):
    lives = SubtaskLives(graph, 5)
    lives.deploy([A, B], 0, 10)
    lives.enter([A, B], "RUNNING", 20)
    lives.enter([A], "FAILED", 30)
    lives.enter([A], "RUNNING", 31)
    assert (lives.all()[A].state, lives.all()[A].ended_ms) == ("FAILED", 30), "what has ended stays so"
    lives.deploy([A, B], 1, 40)
    assert [life.state for life in (*lives.earlier(A), *lives.earlier(B))] == ["FAILED", "CANCELED"]
    assert lives.earlier(B)[0].times == {"CREATED": 10, "SCHEDULED": 10, "DEPLOYING": 10, "RUNNING": 20, "CANCELED": 40}
    lives.enter([A, B], "RUNNING", 50)
    lives.end(JobStatus.FINISHED, 60)
    assert {life.state for life in lives.all().values()} == {"FINISHED"}
    for attempt in range(2, 100):
        lives.deploy([A], attempt, 70)
    assert len(lives.earlier(A)) == 16


def snapshot(of, size):
    state = OperatorSnapshot("id", None, "op", operator_state=StateFile(size, 0, inline=b""))
    return SubtaskSnapshot(of.vertex, of.subtask, (state,), bytes_written=size // 2, sync_ms=1.5, async_ms=2.5)


def test_a_checkpoint_is_the_sum_of_its_parts():
    clock = ManualClock(1000)
    found = CheckpointStatistics(clock)
    found.begin(1, frozenset({A, B}))
    clock.advance(10)
    found.acknowledge(1, snapshot(A, 100))
    assert found.in_progress == 1 and found.records()[0].outcome == "IN_PROGRESS"
    clock.advance(10)
    found.acknowledge(1, snapshot(B, 50))
    found.complete(1, "/chk-1")
    (record,) = found.records()
    assert (record.state_bytes, record.written_bytes, record.last_acknowledged_ms) == (150, 75, 1020)
    assert (record.triggered_ms, record.ended_ms, record.path) == (1000, 1020, "/chk-1")
    found.acknowledge(1, snapshot(A, 7))
    found.fail(1, "too late")
    assert (found.completed, found.failed) == (1, 0), "a checkpoint ends once"


def test_checkpoints_are_forgotten_and_savepoints_are_the_users():
    found = CheckpointStatistics(ManualClock())
    for number in range(1, 301):
        found.begin(number, frozenset({A}), "CANONICAL" if number == 299 else None)
        found.complete(number, None)
        found.keep({number})
    assert len(found.records()) == 100 and found.completed == 300
    assert [each.checkpoint_id for each in found.records() if not each.discarded] == [300, 299]
    assert found.find(200) is None and found.last_savepoint is not None


def test_failures_name_operator_and_subtask_the_newest_first(graph):
    history = FailureHistory(graph)
    for number in range(20):
        error = UserFunctionError("tally", "tally", 0, "7", "Traceback", "KeyError", str(number))
        history.add(error, frozenset({B}), None, number)
    history.add(OSError("disk full"), frozenset(), 1, 20)
    assert history.count == 21 and len(history.failures) == 16
    newest, second = history.failures[:2]
    assert (newest.name, newest.place, newest.slot) == ("builtins.OSError", None, 1)
    assert second.name == "KeyError" and second.place is not None and second.place.endswith("(1/1)")
    assert "KeyError: 19 in operator 'tally'" in second.trace and second.slot == 0
