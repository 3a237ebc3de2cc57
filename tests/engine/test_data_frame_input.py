"""The rows of a DataFrame beside the job that reads them; a stand-in for Spark writes the files."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import types as st

from ekorn.config.choices import ExternalizedCheckpointRetention
from ekorn.config.settings.checkpoint_settings import CheckpointSettings
from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.data_frames.written_rows import MANIFEST
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.submit import submit
from ekorn.engine.beside_job import StartingJob
from ekorn.engine.spark.data_frames.data_frame_input import DataFrameInput
from ekorn.errors import ConfigurationError, DeploymentError
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Boundedness
from ekorn.program.environment.environment_sources import DeferredInputs
from ekorn.testing.kits import SourceJob
from ekorn.testing.local_engine import LocalEngine
from ekorn.types.data_type_info import row_type_info
from tests.connectors.data_frames.row_files import rows, write_part

SCHEMA = st.StructType([st.StructField("id", st.LongType(), False), st.StructField("word", st.StringType())])


class Frame:
    """A DataFrame whose plan gives other rows each time it is run."""

    def __init__(self, master="local[2]", schema=SCHEMA):
        self.schema = schema
        self.runs = 0
        self.sparkSession = self.sparkContext = self.write = self
        self.master = master

    def mode(self, mode):
        assert mode == "overwrite"
        return self

    def parquet(self, url, compression):
        self.runs += 1
        assert url.startswith("file:///")
        write_part(url.removeprefix("file://"), self.runs, rows(self.runs * 1000, 9))


def settings_in(directory, retention=ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION):
    checkpoints = CheckpointSettings(
        interval_ms=1000, storage="filesystem", directory=str(directory), retention=retention
    )
    return JobSettings("job", checkpoints=checkpoints)


def ids(source):
    return sorted(row.id for row in SourceJob(source, 2).read_all())


def test_a_driver_that_continues_the_job_reads_the_rows_of_the_driver_before(tmp_path):
    job, frame = StartingJob(settings_in(tmp_path), "op"), Frame()
    first = DataFrameInput(frame).start(job)
    again = DataFrameInput(frame).start(job)
    assert frame.runs == 1
    assert ids(first) == ids(again) == list(range(1000, 1009))


def test_rows_of_a_driver_that_died_while_writing_are_written_anew(tmp_path):
    job, frame = StartingJob(settings_in(tmp_path), "op"), Frame()
    DataFrameInput(frame).start(job)
    next(tmp_path.rglob(MANIFEST)).unlink()
    next(tmp_path.rglob("*.parquet")).unlink()  # Spark's mode `overwrite` empties the folder
    assert ids(DataFrameInput(frame).start(job)) == list(range(2000, 2009))


def test_a_continued_job_with_other_columns_is_refused(tmp_path):
    job = StartingJob(settings_in(tmp_path), "op")
    DataFrameInput(Frame()).start(job)
    other = Frame(schema=st.StructType([st.StructField("id", st.LongType(), False)]))
    with pytest.raises(
        ConfigurationError, match=r"columns were id .*word .*; now they are id BigIntType\(false\): give"
    ):
        DataFrameInput(other).start(job)


@pytest.mark.parametrize(
    ("status", "has_savepoint", "retention", "kept"),
    [
        (JobStatus.FINISHED, False, "RETAIN_ON_CANCELLATION", False),
        (JobStatus.FINISHED, True, "RETAIN_ON_CANCELLATION", True),
        (JobStatus.FAILED, False, "DELETE_ON_CANCELLATION", True),
        (JobStatus.FAILED, False, "NO_EXTERNALIZED_CHECKPOINTS", False),
        (JobStatus.CANCELED, False, "DELETE_ON_CANCELLATION", False),
        (JobStatus.CANCELED, False, "RETAIN_ON_CANCELLATION", True),
        (JobStatus.SUSPENDED, False, "NO_EXTERNALIZED_CHECKPOINTS", True),
    ],
)
def test_the_rows_are_kept_as_long_as_a_checkpoint_refers_to_them(tmp_path, status, has_savepoint, retention, kept):
    part = DataFrameInput(Frame())
    part.start(StartingJob(settings_in(tmp_path, ExternalizedCheckpointRetention[retention]), "op"))
    part.end(status, has_savepoint)
    assert bool(list(tmp_path.rglob("*.parquet"))) is kept


def test_a_cluster_needs_a_directory_that_every_machine_sees():
    with pytest.raises(ConfigurationError, match=r"ekorn\.data-frames\.dir nor execution\.checkpointing\.dir"):
        DataFrameInput(Frame(master="yarn")).start(StartingJob(JobSettings("job"), "op"))


def test_the_configured_directory_comes_before_the_checkpoint_directory(tmp_path):
    settings = replace(settings_in(tmp_path / "checkpoints"), data_frames_directory=f"file://{tmp_path}/rows")
    DataFrameInput(Frame(master="yarn")).start(StartingJob(settings, "op"))
    assert list((tmp_path / "rows" / str(settings.job_id) / "op").glob("*.parquet"))


def drawn(frame):
    """Draw a program with a deferred source; return its environment, its parts and a list of what it prints."""
    env, deferred = StreamExecutionEnvironment.get_execution_environment(), DeferredInputs()
    part = DataFrameInput(frame)
    source = deferred.source(part, "rows", row_type_info(part.row_type), Boundedness.BOUNDED)
    env.from_source(source, None, "rows").map(lambda row: row.id).print()
    return env, deferred


def test_a_job_reads_the_rows_and_takes_them_with_it_when_it_ends(capsys):
    env, deferred = drawn(Frame())
    with deferred.started(env.job_graph(), env.job_settings("job")) as inputs:
        handle = submit(inputs.graph, inputs.settings, engine_for=lambda settings: LocalEngine)
    folder = inputs.graph.vertices[0].operators[0].spec.source.address
    inputs.end_with(handle)
    handle.wait(30)
    assert sorted(map(int, capsys.readouterr().out.split())) == list(range(1000, 1009))
    assert not Path(folder).exists()


def test_a_job_that_cannot_be_submitted_leaves_no_rows():
    env, deferred = drawn(Frame())
    with (
        pytest.raises(DeploymentError),
        deferred.started(env.job_graph(), env.job_settings("job")) as inputs,
    ):
        folder = inputs.graph.vertices[0].operators[0].spec.source.address
        raise DeploymentError("no Spark")
    assert not Path(folder).exists()


def test_what_is_no_data_frame_of_spark_is_refused_at_the_call():
    env = StreamExecutionEnvironment.get_execution_environment()
    pandas = type("DataFrame", (), {"__module__": "pandas.core.frame"})()
    classic = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "isStreaming": True})
    connect = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    bounded = type("DataFrame", (classic,), {"isStreaming": False})()
    with pytest.raises(TypeError, match=r"needs a Spark DataFrame, got \[1\]"):
        env.from_data_frame([1])
    with pytest.raises(TypeError, match=r"a pandas DataFrame: use from_pandas\(df\)"):
        env.from_data_frame(pandas)
    with pytest.raises(TypeError, match="a Spark Connect DataFrame, whose session cannot run jobs"):
        env.from_data_frame(connect)
    with pytest.raises(TypeError, match="streaming DataFrame: use from_streaming_data_frame"):
        env.from_data_frame(classic())
    with pytest.raises(TypeError, match=r"does not stream: use from_data_frame\(df\)"):
        env.from_streaming_data_frame(bounded, "/progress")


def test_a_program_is_explained_without_running_the_plan():
    frame = Frame()
    env, _ = drawn(frame)
    assert "rows" in env.explain()
    assert frame.runs == 0
