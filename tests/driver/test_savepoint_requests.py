"""Requests of savepoints: each is answered once, with what became of the savepoint and of the job."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest, SavepointRequests, Then
from ekorn.errors import CheckpointError
from ekorn.functions.results.job_status import JobStatus

JOB = "ab" * 16


@pytest.fixture
def requests() -> SavepointRequests:
    return SavepointRequests(JOB)


def admitted(requests: SavepointRequests, directory: Path, then: Then = "go on") -> SavepointRequest:
    request = SavepointRequest(str(directory), then=then)
    assert requests.admit(request, None)
    return request


def why(request: SavepointRequest) -> str:
    error = request.future.exception(timeout=0)
    assert isinstance(error, CheckpointError)
    return str(error)


def test_an_admitted_request_has_a_directory_which_the_slots_are_told(
    requests: SavepointRequests, tmp_path: Path
) -> None:
    request = admitted(requests, tmp_path)
    (directory,) = tmp_path.iterdir()
    order = requests.start(request.request_id, 7)
    assert (order.directory, order.native) == (str(directory), False)
    assert requests.in_flight(7) is request
    assert requests.in_flight(8) is None
    assert not request.exists and not request.failed
    native = SavepointRequest(str(tmp_path), native=True)
    requests.admit(native, None)
    assert requests.start(native.request_id, 8).native


def test_requests_have_ids_that_differ(tmp_path: Path) -> None:
    ids = {SavepointRequest(str(tmp_path)).request_id for _ in range(100)}
    assert len(ids) == 100 and {len(each) for each in ids} == {16}


def test_a_request_cannot_be_cancelled_because_the_job_decides(tmp_path: Path) -> None:
    assert not SavepointRequest(str(tmp_path)).future.cancel()


@pytest.mark.parametrize(
    ("then", "ends_with_it"), [("go on", False), ("stop", True), ("drain", True), ("cancel", False)]
)
def test_a_job_that_finishes_with_a_savepoint_reads_nothing_after_it(
    tmp_path: Path, then: Then, ends_with_it: bool
) -> None:
    assert SavepointRequest(str(tmp_path), then=then).synchronous is ends_with_it


@pytest.mark.parametrize("then", get_args(Then))
def test_a_request_is_answered_when_the_savepoint_exists_or_when_the_job_has_ended_with_it(
    requests: SavepointRequests, tmp_path: Path, then: Then
) -> None:
    request = admitted(requests, tmp_path, then)
    path = requests.start(request.request_id, 7).directory
    assert requests.complete(7) is request
    assert (request.exists, request.path) == (True, path)
    assert requests.in_flight(7) is None
    assert requests.complete(7) is None, "a checkpoint has no request"
    assert not request.future.done()  # not before the job's statistics have the savepoint
    request.answer()
    assert request.future.done() is (then == "go on")
    requests.job_ended(JobStatus.CANCELED if then == "cancel" else JobStatus.FINISHED)
    assert request.future.result(timeout=0) == path
    requests.remove_unfinished()
    assert Path(path).exists()


@pytest.mark.parametrize(("then", "status"), [("stop", JobStatus.FAILED), ("cancel", JobStatus.FINISHED)])
def test_a_job_that_ends_otherwise_than_asked_says_that_the_savepoint_exists(
    requests: SavepointRequests, tmp_path: Path, then: Then, status: JobStatus
) -> None:
    request = admitted(requests, tmp_path, then)
    path = requests.start(request.request_id, 7).directory
    requests.complete(7)
    requests.job_ended(status)
    says = f"the savepoint was taken, at {path!r}, but the job did not end with it: the job is {status.name}"
    assert why(request) == says
    requests.job_ended(JobStatus.FINISHED)  # a later answer changes nothing
    assert why(request) == says


def test_a_job_that_goes_on_says_so_whether_the_savepoint_exists_or_not(
    requests: SavepointRequests, tmp_path: Path
) -> None:
    taken, lost = (admitted(requests, tmp_path, "stop") for _ in range(2))
    requests.start(taken.request_id, 7)
    requests.complete(7)
    taken.job_did_not_end("it restarted")
    lost.job_did_not_end("it restarted")
    assert "but the job did not end with it: it restarted" in why(taken)
    assert not taken.failed
    assert why(lost) == "the savepoint was not taken: it restarted"
    assert lost.failed


def test_a_job_that_is_over_answers_what_is_open(requests: SavepointRequests, tmp_path: Path) -> None:
    request = admitted(requests, tmp_path)
    requests.job_ended(JobStatus.FAILED)
    assert why(request) == "the savepoint was not taken: the job has ended (FAILED)"


def test_a_request_that_is_refused_leaves_no_directory(requests: SavepointRequests, tmp_path: Path) -> None:
    request = admitted(requests, tmp_path)
    requests.refuse(request.request_id, "too many")
    assert why(request) == "the savepoint was not taken: too many"
    assert list(tmp_path.iterdir()) == []
    requests.refuse(request.request_id, "again")
    requests.refuse("", "a periodic checkpoint has no request")
    assert why(request) == "the savepoint was not taken: too many"


def test_while_checkpointing_is_suspended_no_directory_is_made(requests: SavepointRequests, tmp_path: Path) -> None:
    request = SavepointRequest(str(tmp_path / "savepoints"))
    assert not requests.admit(request, "checkpoints are off")
    assert why(request) == "the savepoint was not taken: checkpoints are off"
    assert not (tmp_path / "savepoints").exists()


def test_a_directory_that_cannot_be_made_refuses_the_request(requests: SavepointRequests, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    request = SavepointRequest(str(tmp_path / "file"))
    assert not requests.admit(request, None)
    assert why(request).startswith(f"the savepoint was not taken: cannot write a savepoint to '{tmp_path}/file'")


def test_an_aborted_savepoint_is_removed_again_as_long_as_slots_may_write_to_it(
    requests: SavepointRequests, tmp_path: Path
) -> None:
    request = admitted(requests, tmp_path)
    directory = Path(requests.start(request.request_id, 7).directory)
    assert not requests.abort(8, "a checkpoint")
    assert requests.abort(7, "expired")
    assert why(request) == "the savepoint was not taken: expired"
    assert directory.exists(), "slots may write to it still"
    assert not requests.remove_aborted(8)
    for _ in range(2):
        directory.mkdir(exist_ok=True)
        (directory / "late").touch()
        assert requests.remove_aborted(7)
        assert not directory.exists()


def test_at_the_end_of_a_job_nothing_is_left_of_savepoints_that_will_never_exist(
    requests: SavepointRequests, tmp_path: Path
) -> None:
    completed, started, waiting, aborted = (admitted(requests, tmp_path, "stop") for _ in range(4))
    for number, request in enumerate((completed, started, aborted)):
        requests.start(request.request_id, number)
    requests.complete(0)
    requests.abort(2, "expired")
    assert waiting.target is not None
    requests.remove_unfinished()
    assert [str(path) for path in tmp_path.iterdir()] == [completed.path]
