"""What is seen of a job: the reports of a task count once, and those of an attempt before do not count."""

import pickle
import threading

import pytest

from ekorn.batch.jobs.drawn_graph import drawn_graph
from ekorn.batch.jobs.job_watch import JobWatch
from ekorn.batch.planner.run_watch import RunningTask, StageKey
from ekorn.batch.planner.spark_progress import ReportMailbox, Updates
from ekorn.batch.tasks.task_reports import Records, TaskReport, packed_accumulators
from ekorn.clock import ManualClock
from ekorn.common import IntCounter
from ekorn.config.job_id import JobID
from ekorn.config.settings.job_settings import JobSettings
from ekorn.dataset import ExecutionEnvironment
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.errors import JobCancelledError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import ExecutionSettings


class Watched:
    """A job of two stages with two tasks each, whose run is played by the test."""

    def __init__(self):
        env = ExecutionEnvironment().set_parallelism(2)
        env.generate_sequence(1, 4).group_by(lambda n: n).reduce(max).output(print)
        plan = env.plan()
        self.drawn = drawn_graph(plan, "watched", ExecutionSettings())
        self.handle = JobHandle(JobID.generate(), "watched")
        self.clock = clock = ManualClock()
        self.statistics = JobStatistics(self.drawn.graph, JobSettings("watched"), clock)
        self.handle.view.statistics = self.statistics
        self.watch = JobWatch(plan, self.drawn, self.handle, self.statistics, clock)
        self.keys = {vertex: key for key, vertex in self.drawn.vertices.items()}

    def stage(self, vertex):
        told = self.watch.reports_of(self.keys[vertex])
        assert told is not None and told.vertex == vertex
        return told.stage

    def states(self, vertex):
        return [life.state for life in self.statistics.lives.of(vertex)]


@pytest.fixture
def job():
    found = Watched()
    found.watch.begin()
    return found


def report(stage, vertex=0, partition=0, records=3, accumulators=b"", *, busy_ms=5.0):
    return TaskReport(stage, vertex, partition, records, records, 0, 30, 1_000, busy_ms, accumulators)


def test_a_task_that_spark_repeats_counts_once(job):
    stage = job.stage(0)
    job.watch.take([report(stage)])
    job.watch.take([report(stage), report(stage, partition=1)])
    assert job.handle.progress().records_read == 6
    assert job.statistics.metrics.totals(SubtaskId(0, 0)).records_in == 3
    assert job.states(0) == ["FINISHED", "FINISHED"] and job.states(1) == ["SCHEDULED", "SCHEDULED"]


def test_the_attempt_before_no_longer_counts(job):
    before = job.stage(0)
    job.watch.take([report(before)])
    job.watch.begin()
    assert job.states(0) == ["SCHEDULED", "SCHEDULED"]
    job.watch.take([report(before, partition=1)])  # it comes late
    assert job.handle.progress().records_read == 0
    job.watch.take([report(job.stage(0))])
    assert job.handle.progress().records_read == 3
    assert job.statistics.metrics.totals(SubtaskId(0, 0)).records_in == 3


def test_tasks_that_run_are_those_of_the_stages_that_spark_names(job):
    job.watch.staged(17, job.keys[1])
    job.watch.run_now([RunningTask(1, (16, 17)), RunningTask(0, (99,))])
    assert job.states(1) == ["SCHEDULED", "RUNNING"] and job.states(0) == ["SCHEDULED", "SCHEDULED"]


def test_a_task_that_runs_is_busy_before_it_reports_and_its_time_counts_once(job):
    stage, subtask = job.stage(0), SubtaskId(0, 1)
    job.watch.staged(17, job.keys[0])
    for _ in range(3):
        job.watch.run_now([RunningTask(1, (17,))])
        job.clock.advance(1000)
    assert job.statistics.metrics.totals(subtask).busy_ms == 2000
    job.watch.run_now([])
    job.watch.run_now([RunningTask(1, (17,))])
    assert job.statistics.metrics.totals(subtask).busy_ms == 2000, "nobody saw it run in between"
    job.watch.take([report(stage, partition=1, busy_ms=2500.0)])
    assert job.statistics.metrics.totals(subtask).busy_ms == 2500
    job.watch.take([report(job.stage(0), partition=1)])
    assert job.statistics.metrics.totals(subtask).busy_ms == 2505


def test_a_stage_of_more_partitions_than_subtasks_is_shown_modulo_them(job):
    job.watch.take([report(job.stage(0), partition=5)])
    assert job.states(0) == ["SCHEDULED", "FINISHED"]


def test_accumulators_are_merged_while_the_job_runs(job):
    one = IntCounter()
    one.add(2)
    stage = job.stage(0)
    packed = packed_accumulators({"seen": one})
    job.watch.take([report(stage, accumulators=packed), report(stage, partition=1, accumulators=packed)])
    assert job.handle.accumulators() == {"seen": 4}


def test_a_cancelled_run_ends_at_its_next_stage(job):
    job.watch.check()
    job.handle.cancel()
    with pytest.raises(JobCancelledError, match="'watched'"):
        job.watch.check()


def test_a_stage_that_was_not_drawn_is_not_shown(job):
    assert job.watch.reports_of(StageKey(0, 99)) is None


def test_reports_reach_the_job_that_they_are_about():
    mailbox, updates, taken = ReportMailbox(), Updates(), []

    class Accumulator:  # as Spark's: a task begins with zero, and its value travels to the driver
        def __init__(self):
            self.value = updates.zero(mailbox)

        def add(self, term):
            self.value = updates.addInPlace(self.value, term)

    mailbox.accumulator = Accumulator()
    told = mailbox.open("first", taken.extend)
    told.add([report(1)])
    told.add([report(2)])
    sent = pickle.loads(pickle.dumps(mailbox.accumulator.value))
    assert updates.addInPlace(mailbox, sent) is mailbox
    assert taken == [report(1), report(2)]
    mailbox.close("first")
    updates.addInPlace(mailbox, sent)
    assert len(taken) == 2, "a job that has ended gets no more"


def test_large_and_unpicklable_accumulators_wait_for_the_end_of_the_job():
    assert packed_accumulators({}) == b""
    assert packed_accumulators({"large": bytes(1 << 17)}) == b""
    assert packed_accumulators({"lock": threading.Lock()}) == b""


def test_counting_records_takes_none_away():
    records = Records()
    assert list(records.counted(iter("abc"))) == ["a", "b", "c"] and records.number == 3
    assert Records().number == 0
