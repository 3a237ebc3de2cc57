"""A source of Spark beside the job that reads it; a stand-in for Spark gives rows between offsets.

The stand-in plans every batch anew: the same rows between the same offsets, but in other files and another order.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.checkpoint_settings import CheckpointSettings
from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.driver.submit import submit
from ekorn.engine.beside_job import StartingJob
from ekorn.engine.spark.data_frames.spark_source_input import SparkSourceInput
from ekorn.errors import ConfigurationError, JobExecutionError, SparkSourceFailed
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Boundedness
from ekorn.program.environment.environment_sources import DeferredInputs
from ekorn.testing.local_engine import LocalEngine
from ekorn.types.data_type_info import row_type_info
from tests.connectors.data_frames.row_files import ROW_TYPE, committed_rows, rows, write_part
from tests.live_jobs import until

WAIT_S = 60


class Numbers:
    """Gives the rows of the numbers below `count`, in steps of at most `step`."""

    row_type = ROW_TYPE
    ends_by_itself = True

    def __init__(self, count, step=7, fails_at=None, times=1000):
        self.count = count
        self.notes = None
        self.committed = -1
        self.begun_at = []
        self._step = step
        self._fails_at = fails_at
        self._times = times
        self.opened = 0
        self._plans = random.Random(0)

    def open(self, notes_url, *, available_now):
        self.notes = notes_url
        self.opened += 1

    def initial_offset(self):
        self.begun_at.append(0)
        return "0"

    def latest_offset(self, start):
        if not self.begun_at:
            self.begun_at.append(int(start))
        return str(min(self.count, int(start) + self._step))

    def frame(self, start, end):
        if self._fails_at is not None and int(end) > self._fails_at and self._times > 0:
            self._times -= 1
            raise RuntimeError("the topic is gone")
        assert int(start) >= self.committed, "a source may forget what is committed"
        records = rows(int(start), int(end) - int(start))
        self._plans.shuffle(records)
        cut = self._plans.randrange(len(records) + 1)
        return Frame([part for part in (records[:cut], records[cut:]) if part])

    def commit(self, end):
        self.committed = int(end)

    def close(self):
        pass


class Frame:
    def __init__(self, parts):
        self._parts = parts
        self.write = self

    def mode(self, mode):
        assert mode == "overwrite"
        return self

    def parquet(self, url, compression):
        for number, part in enumerate(self._parts):
            write_part(url.removeprefix("file://"), number, part)


class Session:
    """Stands for a session of Spark and its context."""

    master = "local[2]"

    def __init__(self):
        self.sparkContext = self

    def setJobGroup(self, name, description, interruptOnCancel):
        pass

    def cancelJobGroup(self, name):
        pass


class FailsAt(MapFunction):
    """Fails at each of the numbers once: a file remembers that it did."""

    def __init__(self, folder, numbers):
        self._folder = folder
        self._numbers = numbers

    def map(self, value):
        mark = Path(self._folder) / f"failed-{value.id}"
        if value.id in self._numbers and not mark.exists():
            mark.touch()
            raise RuntimeError("as planned")
        return value


class Program:
    """Copies numbers into row files, exactly once."""

    def __init__(self, folder, stream, *, parallelism=2, fails_at=(), savepoint=None, available_now=False):
        self._folder = folder
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        env.enable_checkpointing(20).get_checkpoint_config().set_checkpoint_storage_dir(f"file://{folder}/checkpoints")
        configuration = Configuration().set_string("restart-strategy.type", "fixed-delay")
        configuration.set_string("restart-strategy.fixed-delay.attempts", "9")
        configuration.set_string("restart-strategy.fixed-delay.delay", "0 s")
        if savepoint is not None:
            configuration.set_string("execution.savepoint.path", savepoint)
        env.configure(configuration)
        deferred = DeferredInputs()
        self.part = SparkSourceInput(Session(), stream, "numbers", available_now=available_now)
        bounds = Boundedness.BOUNDED if available_now else Boundedness.CONTINUOUS_UNBOUNDED
        source = deferred.source(self.part, "numbers", row_type_info(ROW_TYPE), bounds)
        copied = env.from_source(source, None, "numbers").uid("numbers")
        copied.map(FailsAt(str(folder), fails_at)).uid("copy").sink_to(RowFilesSink(f"{folder}/out", ROW_TYPE)).uid(
            "out"
        )
        with deferred.started(env.job_graph("copy"), env.job_settings("copy")) as inputs:
            self.handle = submit(inputs.graph, inputs.settings, engine_for=lambda settings: LocalEngine)
        inputs.end_with(self.handle)

    def written(self):
        return Counter(row.id for row in committed_rows(f"{self._folder}/out", ROW_TYPE))

    def wait_until_written(self, count):
        deadline = time.monotonic() + WAIT_S
        while sum(self.written().values()) < count:
            assert time.monotonic() < deadline, self.handle
            self.handle.results.wait_for_end(0.05)


def each_once(count):
    return Counter(dict.fromkeys(range(count), 1))


def test_rows_are_read_once_although_the_job_fails_and_reads_batches_again(tmp_path):
    stream = Numbers(200)
    program = Program(tmp_path, stream, fails_at=(25, 90, 91, 170), available_now=True)
    program.handle.wait(WAIT_S)
    assert program.written() == each_once(200)
    assert len(list(tmp_path.glob("failed-*"))) == 4
    assert not list(tmp_path.rglob("source.json")), "a finished job leaves nothing"


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_a_savepoint_is_restored_at_another_parallelism_and_reads_the_source_from_its_offset(tmp_path, before, after):
    stream = Numbers(100)
    first = Program(tmp_path, stream, parallelism=before)
    first.wait_until_written(40)
    savepoint = first.handle.request_savepoint(f"file://{tmp_path}/savepoints", then="stop").result(WAIT_S)
    first.handle.wait(WAIT_S)
    assert not list(tmp_path.rglob("batches")), "the batches go with the job"

    again = Numbers(150, step=11)
    second = Program(tmp_path, again, parallelism=after, savepoint=savepoint, available_now=True)
    second.handle.wait(WAIT_S)
    assert second.written() == each_once(150)
    assert again.begun_at[0] >= 40, "read from the savepoint's offset on"
    assert again.notes == stream.notes, "the offsets refer to what the source noted down for the earlier job"


def test_a_savepoint_whose_notes_are_gone_is_refused(tmp_path):
    first = Program(tmp_path, Numbers(50))
    first.wait_until_written(50)
    savepoint = first.handle.request_savepoint(f"file://{tmp_path}/savepoints", then="stop").result(WAIT_S)
    next(tmp_path.rglob("source.json")).unlink()
    second = Program(tmp_path, Numbers(50), savepoint=savepoint)
    with pytest.raises(JobExecutionError) as caught:
        second.handle.wait(WAIT_S)
    assert "no longer exists; it belongs to the savepoint" in str(caught.value)


def test_the_source_forgets_what_a_checkpoint_covers_and_nothing_else(tmp_path):
    stream = Numbers(100)
    program = Program(tmp_path, stream)
    program.wait_until_written(100)
    deadline = time.monotonic() + WAIT_S
    while stream.committed < 100:
        assert time.monotonic() < deadline
        program.handle.results.wait_for_end(0.05)
    batches = next(tmp_path.rglob("batches"))
    assert list(batches.iterdir()) == []
    stream.count = 120
    program.wait_until_written(120)
    program.handle.cancel()
    program.handle.results.wait_for_end(WAIT_S)
    assert program.written() == each_once(120)


def test_the_failure_of_the_source_ends_the_job_after_the_rows_before_it(tmp_path):
    program = Program(tmp_path, Numbers(50, fails_at=30))
    with pytest.raises(JobExecutionError) as caught:
        program.handle.wait(WAIT_S)
    assert SparkSourceFailed.__name__ in str(caught.value)
    assert "source 'numbers' of Spark, whose rows the job reads, failed: the topic is gone" in str(caught.value)


def test_a_source_that_failed_is_opened_again_for_each_restart_of_the_job(tmp_path):
    stream = Numbers(100, fails_at=30, times=3)
    program = Program(tmp_path, stream, fails_at=(60,), available_now=True)
    program.handle.wait(WAIT_S)
    assert program.written() == each_once(100)
    assert stream.opened == 4
    assert stream.begun_at == [0], "it goes on behind the last batch that was written"


def test_a_job_without_checkpoints_is_refused():
    part = SparkSourceInput(Session(), Numbers(1), "numbers", available_now=False)
    with pytest.raises(ConfigurationError, match=r"offsets of 'numbers' are kept in checkpoints.*enable_checkpointing"):
        part.start(StartingJob(JobSettings("job"), "op"))


def test_reading_waits_for_the_lanes_and_ends_without_them(tmp_path):
    settings = JobSettings(
        "job", checkpoints=CheckpointSettings(interval_ms=1000, storage="filesystem", directory=str(tmp_path))
    )
    stream, running = Numbers(10), set(threading.enumerate())  # those of earlier tests may still end
    part = SparkSourceInput(Session(), stream, "numbers", available_now=False)
    part.start(StartingJob(settings, "op"))
    part.end(JobStatus.CANCELED, False)
    assert stream.notes is None
    until(lambda: set(threading.enumerate()) <= running)


def test_a_batch_that_is_being_written_when_the_job_ends_is_finished_and_not_cancelled(tmp_path, monkeypatch):
    """Spark logs a stack trace for each task that is cancelled."""
    cancelled, writing, written = [], threading.Event(), threading.Event()
    monkeypatch.setattr(Session, "cancelJobGroup", lambda self, name: cancelled.append(name))
    usual = Frame.parquet

    def parquet(self, url, compression):
        writing.set()
        until(lambda: program.part._run is None)  # the job has ended, and its source is being stopped
        usual(self, url, compression)
        written.set()

    monkeypatch.setattr(Frame, "parquet", parquet)
    program = Program(tmp_path, Numbers(100))
    assert writing.wait(WAIT_S)
    program.handle.cancel()
    program.handle.results.wait_for_end(WAIT_S)
    assert written.wait(WAIT_S)
    until(lambda: not list(tmp_path.rglob("run-*")))
    assert cancelled == []
