"""The end of a job is noted before its checkpoints are deleted, for a service that must not start it again."""

import os

import pytest

from ekorn.common import JobStatus
from ekorn.driver.job_outcome import note_outcomes_with
from tests.driver.submitted_jobs import start_locally
from tests.live_jobs import Held, environment, generated, tallied, until


@pytest.fixture
def noted(tmp_path):
    """The outcomes that were noted, each with what was left of the checkpoints at that moment."""
    found = []
    note_outcomes_with(lambda outcome: found.append((outcome, os.listdir(tmp_path / "checkpoints"))))
    yield found
    note_outcomes_with(None)


def bounded(tmp_path, per_second=2000):
    env = environment(tmp_path / "checkpoints")
    tallied(generated(env, 500, per_second), 5)
    return start_locally(env)


def test_the_outcome_is_noted_while_the_checkpoints_exist(noted, tmp_path):
    handle = bounded(tmp_path)
    assert handle.results.wait_for_end(60)
    ((outcome, left),) = noted
    assert (outcome.job_id, outcome.status) == (str(handle.job_id), JobStatus.FINISHED)
    assert left == [str(handle.job_id)] and os.listdir(tmp_path / "checkpoints") == []


@pytest.mark.parametrize("then", ["go on", "stop"])
def test_the_outcome_has_the_savepoint_that_the_job_stopped_with_and_no_earlier_one(noted, tmp_path, then):
    held = Held(tmp_path, 250)
    handle = bounded(tmp_path, held)
    until(lambda: handle.progress().checkpoints_completed > 0)
    path = handle.request_savepoint(str(tmp_path / "saved"), then=then).result(60)
    held.let_go()
    assert handle.results.wait_for_end(60) and handle.status() is JobStatus.FINISHED
    ((outcome, _),) = noted
    assert outcome.savepoint == (path if then == "stop" else None)


def test_checkpoints_stay_if_the_outcome_cannot_be_noted(tmp_path):
    def fail(outcome):
        raise OSError("the storage is away")

    note_outcomes_with(fail)
    try:
        handle = bounded(tmp_path)
        assert handle.results.wait_for_end(60) and handle.status() is JobStatus.FINISHED
    finally:
        note_outcomes_with(None)
    assert os.listdir(tmp_path / "checkpoints") == [str(handle.job_id)]


def test_a_driver_that_was_replaced_notes_nothing(noted, tmp_path):
    env = environment(tmp_path / "checkpoints")
    tallied(generated(env, None, 500), 5)
    handle = start_locally(env)
    until(lambda: handle.progress().checkpoints_completed > 0)
    owner = tmp_path / "checkpoints" / str(handle.job_id) / "owner"
    (owner / "claim-000002").write_text("{}")  # of the driver of another leader
    assert handle.results.wait_for_end(60)
    assert handle.status() is JobStatus.FAILED and noted == []
