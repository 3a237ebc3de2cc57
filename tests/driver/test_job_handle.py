"""What is called at the end of a job."""

from ekorn.config.job_id import JobID
from ekorn.driver.job_handle import JobHandle
from ekorn.functions.results.job_status import JobStatus


def ended(handle):
    handle.end(JobStatus.FINISHED, None, None)


def test_everything_that_ends_with_a_job_is_called_once_whenever_it_was_added():
    handle, calls = JobHandle(JobID.generate(), "job"), []

    def first(status, has_savepoint):
        calls.append("first")
        handle.at_end(lambda status, has_savepoint: calls.append("added while the job ended"))

    handle.at_end(first)
    ended(handle)
    handle.at_end(lambda status, has_savepoint: calls.append(f"added later: {status.name}, {has_savepoint}"))
    assert calls == ["first", "added while the job ended", "added later: FINISHED, False"]


def test_what_cannot_be_ended_does_not_keep_the_others_from_it(caplog):
    handle, calls = JobHandle(JobID.generate(), "job"), []

    def fails(status, has_savepoint):
        raise OSError("the storage is away")

    handle.at_end(fails)
    handle.at_end(lambda status, has_savepoint: calls.append(status))
    ended(handle)
    assert calls == [JobStatus.FINISHED]
    assert handle.results.wait_for_end(0)
    assert "the storage is away" in caplog.text


def test_a_savepoint_may_exist_once_it_was_requested(tmp_path):
    handle, calls = JobHandle(JobID.generate(), "job"), []
    handle.at_end(lambda status, has_savepoint: calls.append(has_savepoint))
    handle.request_savepoint(str(tmp_path))
    ended(handle)
    assert calls == [True]
