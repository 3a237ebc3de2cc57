"""What the REST API tells about the alignment of a checkpoint, subtask by subtask."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ekorn.clock import ManualClock
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.statistics.checkpoint_statistics import CheckpointStatistics
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.rest.checkpoint_answers import record_answer, subtasks_answer
from ekorn.rest.metric_answers import job_metrics
from ekorn.state.snapshots import AlignmentStats, SubtaskSnapshot
from ekorn.testing.drawn_job import drawn_job
from tests.checkpoint.checkpoint_values import vertex

COUNT = vertex(0, "count", parallelism=2)
ALIGNED = AlignmentStats(start_delay_ms=3.0, aligned_ms=40.0, held_bytes=500)
OVERTAKEN = AlignmentStats(start_delay_ms=5.0, aligned_ms=2.0, recorded_ms=9.0, in_flight_bytes=7_000, unaligned=True)


def test_held_and_stored_bytes_and_the_phases_of_each_subtask_are_told() -> None:
    statistics = CheckpointStatistics(ManualClock(1_000))
    statistics.begin(7, frozenset({SubtaskId(0, 0), SubtaskId(0, 1)}))
    for index, alignment in enumerate((ALIGNED, OVERTAKEN)):
        statistics.acknowledge(7, SubtaskSnapshot(0, index, sync_ms=1.0, async_ms=6.0, alignment=alignment))
    record = statistics.find(7)
    assert record is not None
    job: Any = SimpleNamespace(statistics=SimpleNamespace(clock=ManualClock(1_000)), vertices=[COUNT])
    answer = subtasks_answer(job, record, COUNT)
    first, second = answer["subtasks"]
    assert first["alignment"] == {"buffered": 500, "processed": 0, "persisted": 0, "duration": 40}
    assert second["alignment"] == {"buffered": 0, "processed": 0, "persisted": 7_000, "duration": 11}
    assert (first["start_delay"], second["start_delay"]) == (3, 5)
    assert (first["unaligned_checkpoint"], second["unaligned_checkpoint"]) == (False, True)
    assert second["checkpoint"] == {"sync": 1, "async": 6}
    assert answer["summary"]["alignment"]["persisted"]["max"] == 7_000
    whole = record_answer(job, record, 1_000, with_vertices=False)
    assert (whole["alignment_buffered"], whole["persisted_data"]) == (500, 7_000)


def test_the_records_in_flight_of_the_last_checkpoint_are_a_metric_of_the_job() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).print()
    statistics = JobStatistics(*drawn_job(env), ManualClock(1_000))
    statistics.checkpoints.begin(7, frozenset({SubtaskId(0, 0)}))
    statistics.checkpoints.acknowledge(7, SubtaskSnapshot(0, 0, alignment=OVERTAKEN))
    statistics.checkpoints.complete(7, None)
    view: Any = SimpleNamespace(progress=lambda: SimpleNamespace(restarts=0))
    job: Any = SimpleNamespace(statistics=statistics, view=view, status=JobStatus.RUNNING)
    assert job_metrics(job)["lastCheckpointPersistedData"] == 7_000
