"""A streaming query beside the job that reads its rows; a stand-in for Spark runs the query."""

import threading

import pytest
from pyspark.sql import types as st

from ekorn.config.settings.checkpoint_settings import CheckpointSettings
from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.data_frames.row_batches import RowBatches
from ekorn.engine.beside_job import StartingJob
from ekorn.engine.spark.data_frames import streaming_input
from ekorn.engine.spark.data_frames.ended_feed import asked_to_go_on
from ekorn.engine.spark.data_frames.streaming_input import StreamingDataFrameInput
from ekorn.errors import ConfigurationError, StreamingQueryFailed
from ekorn.functions.results.job_status import JobStatus
from ekorn.storage.file_store import open_files
from ekorn.testing.kits import SourceJob
from tests.connectors.data_frames.row_files import rows, write_part

SCHEMA = st.StructType([st.StructField("id", st.LongType(), False), st.StructField("word", st.StringType())])
CHECKPOINTED = JobSettings("job", checkpoints=CheckpointSettings(interval_ms=1000))


class Query:
    """A streaming DataFrame, its writer and its running query; a test calls for batches itself."""

    def __init__(self, cores=2):
        self.schema = SCHEMA
        self.sparkSession = self.sparkContext = self.writeStream = self
        self.defaultParallelism, self.master = cores, f"local[{cores}]"
        self.settings: dict[str, object] = {}
        self.ended = threading.Event()
        self.failure: Exception | None = None
        self.starts = 0
        self.runId = "run"

    def queryName(self, name):
        return self.option("name", name)

    def option(self, key, value):
        self.settings[key] = value
        return self

    def foreachBatch(self, function):
        self.function = function
        return self

    def trigger(self, **how):
        return self.option("trigger", how)

    def start(self):
        self.starts += 1
        return self

    def awaitTermination(self):
        assert self.ended.wait(30)
        if self.failure is not None:
            raise self.failure

    def stop(self):
        self.ended.set()

    def batch(self, number, records):
        self.function(Batch(records), number)


class Batch:
    def __init__(self, records, failure=None):
        self._records = records
        self._failure = failure
        self.write = self

    def mode(self, mode):
        assert mode == "overwrite"
        return self

    def parquet(self, url, compression):
        if self._failure is not None:
            raise self._failure
        write_part(url.removeprefix("file://"), 0, self._records)


@pytest.fixture(autouse=True)
def without_tasks(monkeypatch):
    """The stand-in for Spark has no tasks whose end could be waited for."""
    monkeypatch.setattr(streaming_input, "cancel_quietly", lambda context, group, cancel: cancel())


def started(tmp_path, query, *, available_now=False, parallelism=1):
    part = StreamingDataFrameInput(query, str(tmp_path), "clicks", available_now=available_now)
    return part, part.start(StartingJob(CHECKPOINTED, "op", parallelism))


def folder(tmp_path):
    return RowBatches(open_files(str(tmp_path / "ekorn-rows")))


def wait_for(condition):
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen in 30 s")


def test_rows_of_the_query_are_read_in_the_order_of_its_batches(tmp_path):
    query = Query()
    part, source = started(tmp_path, query)
    assert query.settings["checkpointLocation"] == f"file://{tmp_path}"
    assert query.settings["trigger"] == {"processingTime": "0 seconds"}
    query.batch(0, rows(0, 3))
    query.batch(1, rows(10, 3))
    query.batch(1, rows(100, 3))  # repeated after a failure of the query
    assert [row.id for row in SourceJob(source, 1).read_available()] == [0, 1, 2, 10, 11, 12]
    part.end(JobStatus.CANCELED, False)
    assert folder(tmp_path).ended() is None, "the query of the next start goes on"


def test_a_query_of_what_is_available_now_ends_the_source(tmp_path):
    query = Query()
    part, source = started(tmp_path, query, available_now=True, parallelism=2)
    assert query.settings["trigger"] == {"availableNow": True}
    query.batch(0, rows(0, 3))
    query.ended.set()
    wait_for(lambda: folder(tmp_path).ended() is not None)
    assert [row.id for row in SourceJob(source, 2).read_all()] == [0, 1, 2]
    part.end(JobStatus.FINISHED, False)


def test_the_failure_of_the_query_fails_the_job(tmp_path):
    query = Query()
    part, source = started(tmp_path, query)
    job = SourceJob(source, 1)
    assert job.read_available() == []
    query.failure = RuntimeError("java.lang.IllegalStateException: the topic is gone\n\tat org.apache.spark.Thing")
    query.ended.set()
    wait_for(lambda: folder(tmp_path).ended() is not None)
    with pytest.raises(StreamingQueryFailed, match=r"'clicks', whose rows the job reads, failed: .*the topic is gone;"):
        wait_for(lambda: job.read(0, 1))
    part.end(JobStatus.FAILED, False)


def test_a_query_that_failed_is_started_again_for_each_restart_of_the_job(tmp_path):
    query = Query()
    part, source = started(tmp_path, query)
    query.batch(0, rows(0, 3))
    for failures in (1, 2):
        query.failure = RuntimeError("the topic is away")
        query.ended.set()
        wait_for(lambda: folder(tmp_path).ended() is not None)
        assert query.starts == failures, "nobody has asked for more"
        query.ended.clear()
        query.failure = None
        restarted = SourceJob(source, 1)
        assert [row.id for row in restarted.read_available()] == [0, 1, 2], "the known failure fails no attempt"
        wait_for(lambda: query.starts == failures + 1)  # noqa: B023
    query.batch(1, rows(10, 3))
    assert [row.id for row in SourceJob(source, 1).read_available()] == [0, 1, 2, 10, 11, 12]
    query.ended.set()
    wait_for(lambda: folder(tmp_path).ended() is not None)
    assert [row.id for row in SourceJob(source, 1).read_all()] == [0, 1, 2, 10, 11, 12], "its end ends the source"
    part.end(JobStatus.FINISHED, False)


class Unwilling(RowBatches):
    """A folder whose storage fails twice."""

    fails = 2

    def end(self, query, failure):
        if self.fails:
            self.fails -= 1
            raise OSError("the storage is away")
        super().end(query, failure)


def test_readers_are_told_of_a_failure_although_the_storage_is_away_for_a_moment(tmp_path):
    batches, stopping, answers = Unwilling(open_files(str(tmp_path))), threading.Event(), []
    feed = threading.Thread(
        target=lambda: answers.append(asked_to_go_on(batches, "clicks", "the topic is gone", stopping))
    )
    feed.start()
    reader = RowBatches(open_files(str(tmp_path)))
    wait_for(lambda: reader.ended() is not None)
    reader.ask_again()
    feed.join(30)
    assert answers == [True]
    assert asked_to_go_on(batches, "clicks", None, stopping) is False
    stopping.set()
    assert asked_to_go_on(batches, "clicks", "the topic is gone", stopping) is False


def test_a_query_that_is_far_ahead_waits_and_is_stopped_while_it_waits(tmp_path):
    query = Query()
    part, _ = started(tmp_path, query)
    for number in range(100):
        query.batch(number, [])
    refused = []

    def write():
        try:
            query.batch(100, [])
        except Exception as error:
            refused.append(str(error))

    writing = threading.Thread(target=write)
    writing.start()
    part.end(JobStatus.CANCELED, False)
    writing.join(30)
    assert [each.rpartition(" ")[2] for each in refused] == ["java.lang.InterruptedException"]  # Spark looks for it
    assert max(folder(tmp_path).ready()) == 99


def test_the_error_of_a_batch_reaches_spark_in_one_line(tmp_path):
    """In a text with Java's frames, Spark searches until the stack of the query's thread overflows."""
    query = Query()
    part, _ = started(tmp_path, query)
    text = (
        "An error occurred while calling o1.parquet.\n: java.io.IOException: disk full\n" + "\tat a.b.C.d(C:1)\n" * 99
    )
    with pytest.raises(RuntimeError, match=r"^.*java\.io\.IOException: disk full$"):
        query.function(Batch([], RuntimeError(text)), 0)
    part.end(JobStatus.FAILED, False)


@pytest.mark.parametrize(("settings", "batch"), [(JobSettings("job"), False), (CHECKPOINTED, True)])
def test_a_job_without_checkpoints_is_refused(tmp_path, settings, batch):
    part = StreamingDataFrameInput(Query(), str(tmp_path), "clicks", available_now=True)
    with pytest.raises(ConfigurationError, match=r"the job takes no checkpoints: call env\.enable_checkpointing"):
        part.start(StartingJob(settings, "op", 1, batch))
    part.end(JobStatus.FAILED, False)


def test_one_core_for_both_is_worth_a_warning(tmp_path, caplog):
    started(tmp_path, Query(cores=1))[0].end(JobStatus.CANCELED, False)
    assert "query clicks and job job share Spark's only core (local[1])" in caplog.text
