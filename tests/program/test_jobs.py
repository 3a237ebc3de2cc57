import pickle
from concurrent.futures import Future

import pytest

from ekorn.common import CompletableFuture, JobClient, JobExecutionResult, JobID, JobStatus
from ekorn.common.accumulators import IntCounter
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.job_handle import JobHandle
from ekorn.errors import AccumulatorError, JobCancelledError


def test_a_job_id_has_32_hexadecimal_digits():
    one, other = JobID.generate(), JobID.generate()
    assert one != other
    assert JobID(str(one)) == one == pickle.loads(pickle.dumps(one))
    assert len({one, JobID(str(one))}) == 1
    assert len(repr(one)) == 32
    for wrong in ("", "xyz", "A" * 32, None):
        with pytest.raises(ValueError, match="32 lower-case"):
            JobID(wrong)  # type: ignore[arg-type]


def test_which_states_end_a_job():
    assert {status.name for status in JobStatus if status.is_globally_terminal_state()} == {
        "FAILED",
        "CANCELED",
        "FINISHED",
    }
    assert JobStatus.SUSPENDED.is_terminal_state()
    assert not JobStatus.RUNNING.is_terminal_state()


def test_a_result_holds_accumulators():
    result = JobExecutionResult(JobID("0" * 32), 120, {"n": 5})
    assert result.get_job_id() == JobID("0" * 32)
    assert result.get_net_runtime() == 120
    assert result.get_accumulator_result("n") == 5
    assert result.get_accumulator_result("unknown") is None
    assert result.get_all_accumulator_results() == {"n": 5}
    assert "120 ms" in str(result)


def test_a_broken_accumulator_raises_only_when_it_is_read():
    result = JobExecutionResult(JobID("0" * 32), 0, {"n": 5, "bad": AccumulatorError("no")})
    assert result.get_accumulator_result("n") == 5
    with pytest.raises(AccumulatorError):
        result.get_accumulator_result("bad")


def test_a_completable_future_is_a_future():
    future = CompletableFuture(Future())
    assert (future.done(), future.cancelled()) == (False, False)
    future.set_result(5)
    assert (future.result(), future.exception(), future.done()) == (5, None, True)
    assert future.cancel() is False

    failed = CompletableFuture(Future())
    failed.set_exception(KeyError("k"))
    assert isinstance(failed.exception(), KeyError)
    with pytest.raises(KeyError):
        failed.result()

    given_up = CompletableFuture(Future())
    assert given_up.cancel()
    assert given_up.cancelled()
    seen = []
    given_up.add_done_callback(seen.append)
    assert len(seen) == 1


@pytest.fixture
def handle():
    """The handle of a running job that ends when it is cancelled."""
    running = JobHandle(JobID("1" * 32), "job")
    running.view.update(JobProgress(status=JobStatus.RUNNING, epochs=7))
    running.results.set_accumulators({"n": IntCounter(1)})
    running.requests.wake_with(
        on_cancel=lambda: running.end(JobStatus.CANCELED, None, JobCancelledError("job")), on_request=lambda: None
    )
    return running


def test_a_client_tells_what_the_handle_of_the_job_knows(handle):
    client = JobClient(handle)
    assert client.get_job_id() == handle.job_id
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"n": 1}
    assert client.get_progress() == JobProgress(status=JobStatus.RUNNING, epochs=7)
    assert client.cancel().result(60) is None
    assert handle.requests.cancel_requested


def test_a_client_gives_the_result_of_the_job(handle):
    result = JobClient(handle).get_job_execution_result()
    assert not result.done()
    handle.end(JobStatus.FINISHED, JobExecutionResult(handle.job_id, 1), None)
    assert result.result(60).get_net_runtime() == 1
