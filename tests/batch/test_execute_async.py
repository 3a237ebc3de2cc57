"""A program that runs while the driver's program goes on."""

import subprocess
import sys
import threading

import pytest

from ekorn.common import JobStatus, RestartStrategies
from ekorn.dataset import ExecutionEnvironment, OutputFormat
from ekorn.errors import JobExecutionError, OutputsPartlyVisibleError
from ekorn.testing import on_local_engine

STARTED, GO_ON = threading.Event(), threading.Event()


def waiting(value):  # a function of a module is pickled by its name, so these are the events of this process
    STARTED.set()
    assert GO_ON.wait(60)
    return value


@pytest.fixture
def env():
    with on_local_engine():
        yield ExecutionEnvironment().set_parallelism(2)


def test_the_job_runs_beside_the_program_and_its_future_has_the_result(env, tmp_path):
    env.from_elements(1, 2).map(waiting).write_as_text(tmp_path / "out").set_parallelism(1)
    client = env.execute_async("beside")
    assert STARTED.wait(60)
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert not client.get_job_execution_result().done()
    assert not (tmp_path / "out").exists()
    with pytest.raises(RuntimeError, match="nothing to execute"):
        env.execute()  # the sinks are taken
    GO_ON.set()
    result = client.get_job_execution_result().result(60)
    assert result.get_job_id() == client.get_job_id()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_accumulators().result(60) == {}
    assert (tmp_path / "out").read_text() == "1\n2\n"
    assert env.get_last_job_execution_result() is result


def test_the_future_of_a_failing_job_raises_what_ended_it(env, tmp_path):
    env.from_elements(0).map(lambda x: 1 // x).name("risky").write_as_text(tmp_path / "out")
    client = env.execute_async()
    with pytest.raises(JobExecutionError, match="'risky'"):
        client.get_job_execution_result().result(60)
    assert client.get_accumulators().result(60) == {}  # Flink: those that are known, whatever the end
    assert client.get_job_status().result() is JobStatus.FAILED
    assert "FAILED" in repr(client)


def test_a_job_that_ends_in_spite_of_a_cancel_is_finished(env, tmp_path):
    env.from_elements(1).write_as_text(tmp_path / "out")
    client = env.execute_async()
    client.get_job_execution_result().result(60)
    client.cancel().result(60)
    assert client.get_job_status().result() is JobStatus.FINISHED


FAILED = threading.Event()


def failing(value):
    FAILED.set()
    raise OSError("not yet")


def test_a_cancelled_job_does_not_wait_for_its_next_attempt(env, tmp_path):
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 3_600_000))
    env.from_elements(1).map(failing).write_as_text(tmp_path / "out")
    client = env.execute_async()
    assert FAILED.wait(60)
    client.cancel().result(60)
    assert client.get_job_status().result() is JobStatus.CANCELED


COMMITTING, FAIL = threading.Event(), threading.Event()


class FailingLate(OutputFormat):
    def open(self, task_number, num_tasks):
        pass

    def write_record(self, record):
        pass

    def finalize_global(self, parallelism):
        COMMITTING.set()
        assert FAIL.wait(60)
        raise OSError("no space left")


def test_a_cancel_does_not_hide_that_some_sinks_are_visible(env, tmp_path):
    numbers = env.from_elements(1)
    numbers.write_as_text(tmp_path / "out")
    numbers.output(FailingLate())
    client = env.execute_async()
    assert COMMITTING.wait(60)
    ended = client.cancel()
    FAIL.set()
    with pytest.raises(OutputsPartlyVisibleError):
        ended.result(60)
    with pytest.raises(OutputsPartlyVisibleError):
        client.get_job_execution_result().result(60)
    assert client.get_job_status().result() is JobStatus.FAILED


ENDS_OVER_ITS_JOB = """
import sys, time
from ekorn.dataset import ExecutionEnvironment
from ekorn.testing import on_local_engine

def slow(value):
    time.sleep(1)
    return value

with on_local_engine():
    env = ExecutionEnvironment().set_parallelism(1)
    env.from_elements(1).map(slow).write_as_text(sys.argv[1])
    env.execute_async("slow one")
"""


def test_a_program_that_ends_over_its_job_says_so(tmp_path):
    command = [sys.executable, "-c", ENDS_OVER_ITS_JOB, str(tmp_path / "out")]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert ended.stderr.startswith("ekorn: the program ended while job 'slow one' was running, so the job ends too")
    assert ended.stderr.endswith("its sinks leave nothing, and the next run starts from the beginning\n")
    assert not (tmp_path / "out").exists()


CANCELS_BEFORE_SPARK_RUNS = """
import sys
sys.modules["pyspark"] = None  # a start of Spark fails
from ekorn.batch.planner.plan_runner import RunSettings, cancel
cancel(RunSettings("not started", {}, {}))
"""


def test_a_cancel_starts_no_spark():
    subprocess.run([sys.executable, "-c", CANCELS_BEFORE_SPARK_RUNS], check=True, timeout=60)


def test_there_must_be_a_sink(env):
    with pytest.raises(RuntimeError, match="nothing to execute"):
        env.execute_async()
