"""`execute_and_collect` with a program that reads slowly: the job waits, and the driver's memory is bounded."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from ekorn.config.job_id import JobID
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.output.collect_queue import CollectQueue
from ekorn.driver.output.job_output import CollectedRecords
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.engine.protocol import EpochResult
from ekorn.errors import CollectSpillError
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import EpochOrder
from ekorn.operators.sinks.collected_run import CollectedRun, collected_runs
from ekorn.testing.local_engine import LocalEngine
from tests.live_jobs import environment, generated, open_files, until

LIMIT = 20_000


class Watched(LocalEngine):
    """Notes how many bytes wait for the program when an epoch starts, and how often the loop waits."""

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph)
        self.submitted: Future[JobHandle] = Future()
        self.started_with: list[int] = []
        self.waits = 0

    @property
    def handle(self) -> JobHandle:
        return self.submitted.result(30)

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        self.started_with.append(self.handle.results.collected.size_bytes)
        return super().run_epoch(order)

    def wait(self, timeout_s: float) -> None:
        self.waits += 1
        super().wait(timeout_s)


@pytest.fixture
def watched():
    """The engine of the job that the test runs; its `handle` is the job's."""
    made: list[Watched] = []

    def make(graph):
        made.append(Watched(graph))
        return made[0]

    def submit_watched(graph, settings):
        handle = submit(graph, settings, engine_for=lambda settings: make)
        made[0].submitted.set_result(handle)
        return handle

    with jobs_submitted_by(submit_watched):
        yield made


def endless(tmp_path: Path | None, **keys):
    return generated(environment(tmp_path, ekorn__collect__buffer_size=f"{LIMIT} b", **keys), None)


def wait_for_the_wait(engine: Watched) -> None:
    until(lambda: engine.handle.results.collected.size_bytes >= LIMIT)
    waits = engine.waits
    until(lambda: engine.waits >= waits + 2)


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_job_that_is_ahead_of_its_reader_waits(tmp_path, watched, checkpoints):
    with endless(tmp_path if checkpoints else None).execute_and_collect() as records:
        assert next(records) == 0
        (engine,) = watched
        wait_for_the_wait(engine)
        assert [next(records) for _ in range(100_000)] == list(range(1, 100_001))
        assert engine.handle.progress().restarts == engine.handle.progress().checkpoints_failed == 0
    assert max(engine.started_with) < LIMIT
    assert engine.handle.status() is JobStatus.CANCELED
    assert engine.handle.results.collected.size_bytes == 0


def test_a_job_that_waits_for_its_reader_ends_when_the_iterator_is_closed(watched):
    records = endless(None).execute_and_collect()
    wait_for_the_wait(watched[0])
    records.close()
    assert watched[0].handle.status() is JobStatus.CANCELED


def test_a_savepoint_is_taken_while_the_job_waits_for_its_reader(tmp_path, watched):
    with endless(tmp_path / "checkpoints").execute_and_collect():
        wait_for_the_wait(watched[0])
        handle = watched[0].handle
        assert os.path.isdir(handle.request_savepoint(str(tmp_path / "one")).result(30).removeprefix("file:"))
        assert handle.results.collected.size_bytes >= LIMIT
        assert os.path.isdir(
            handle.request_savepoint(str(tmp_path / "two"), then="stop").result(30).removeprefix("file:")
        )
        assert handle.wait(30) is not None


# ------------------------------------------------------------------------------------------------ what waits on disk

FIRST, SECOND = SubtaskId(0, 0), SubtaskId(0, 1)


def handle() -> JobHandle:
    return JobHandle(JobID.generate(), "collecting")


@pytest.mark.heavy
def test_what_exceeds_the_memory_for_collected_records_waits_on_disk_in_order(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    job = handle()
    collected = CollectedRecords(job.results.collected, most_bytes=100_000)
    texts = [f"{n:0100d}" for n in range(20_000)]
    tracemalloc.start()
    for epoch in range(10):
        collected.add(epoch, FIRST, list(collected_runs(texts[epoch * 2_000 : (epoch + 1) * 2_000])))
    collected.release(9)
    in_memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert open_files(tmp_path)
    assert in_memory < 200_000
    assert job.results.collected.count == 20_000
    assert job.results.collected.size_bytes > 2_000_000
    job.end(JobStatus.FINISHED, None, None)
    assert list(job.results.records()) == texts
    assert job.results.collected.size_bytes == job.results.collected.count == 0
    del collected
    gc.collect()
    assert not open_files(tmp_path)


def test_what_a_failure_takes_back_leaves_memory_and_disk():
    job = handle()
    collected = CollectedRecords(job.results.collected, most_bytes=5_000)
    for epoch, subtask in enumerate([FIRST, SECOND, FIRST, SECOND]):
        collected.add(epoch, subtask, list(collected_runs([f"{epoch}"] * 3_000)))
    collected.drop(frozenset({SECOND}))
    collected.release(3)
    collected.drop()
    job.end(JobStatus.FINISHED, None, None)
    assert list(job.results.records()) == ["0"] * 3_000 + ["2"] * 3_000


def run_of(size_bytes: int, count: int = 1) -> CollectedRun:
    return CollectedRun(b"x" * size_bytes, count)


def taken_meanwhile(collected: CollectQueue, act: Callable[[], object]) -> list[CollectedRun | None]:
    """Let another thread wait in `take`, act, and return what the thread has got."""
    got: list[CollectedRun | None] = []
    waiting = threading.Thread(target=lambda: got.append(collected.take()), daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive(), "there is nothing to take yet"
    act()
    waiting.join(60)
    return got


def test_a_reader_that_waits_goes_on_with_the_next_run_or_with_the_end():
    collected, run = CollectQueue(), run_of(10)
    assert taken_meanwhile(collected, lambda: collected.put(run)) == [run]
    assert taken_meanwhile(collected, collected.end) == [None]
    assert collected.take() is None


def test_what_waits_is_counted_and_comes_in_order_also_after_the_end():
    collected, runs = CollectQueue(), [run_of(10, 2), run_of(20, 3)]
    for run in runs:
        collected.put(run)
    assert (collected.count, collected.size_bytes) == (5, 30)
    collected.end()
    assert collected.take() is runs[0]
    assert (collected.count, collected.size_bytes) == (3, 20)
    collected.clear()
    assert (collected.count, collected.size_bytes) == (0, 0)
    assert collected.take() is None


@pytest.mark.heavy
def test_as_many_bytes_as_the_memory_has_stay_there(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    job = handle()
    collected = CollectedRecords(job.results.collected, most_bytes=30)
    collected.add(1, FIRST, [run_of(10), run_of(20)])
    assert not open_files(tmp_path)
    collected.add(2, FIRST, [run_of(1)])
    assert len(open_files(tmp_path)) == 1
    collected.release(1)
    assert (job.results.collected.count, job.results.collected.size_bytes) == (2, 30)
    collected.release(2)
    assert (job.results.collected.count, job.results.collected.size_bytes) == (3, 31)


def test_large_records_are_cut_into_small_runs():
    runs = list(collected_runs(["x" * 700_000] * 7))
    assert [run.count for run in runs] == [1] * 7
    assert [r for run in runs for r in run.records()] == ["x" * 700_000] * 7


def test_a_disk_that_cannot_take_collected_records_is_named(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    collected = CollectedRecords(CollectQueue(), most_bytes=10)
    with pytest.raises(CollectSpillError, match=r"missing.*ekorn\.collect\.buffer-size, now 10 bytes"):
        collected.add(0, FIRST, list(collected_runs(["x" * 100])))
