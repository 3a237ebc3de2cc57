"""Resuming a job: the newest checkpoint of the same name decides which job it is."""

import os
from dataclasses import replace

import pytest

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.metadata_file import encode_metadata
from ekorn.checkpoint.ownership import claim
from ekorn.clock import SystemClock
from ekorn.config.job_id import JobID
from ekorn.config.options import JOB_ID
from ekorn.driver.recovery.resume import resumed
from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import open_files
from tests.driver.savepoint_programs import environment

A, B, C = (letter * 32 for letter in "abc")


def leave(directory, job_id, checkpoint_id, timestamp_ms, *, name="orders", kind="checkpoint"):
    """Write a checkpoint as an earlier job has left it."""
    place = directory / job_id / f"chk-{checkpoint_id}"
    place.mkdir(parents=True)
    metadata = CheckpointMetadata(checkpoint_id, job_id, name, timestamp_ms, (), kind)
    (place / "_metadata").write_bytes(encode_metadata(metadata))
    return place / "_metadata"


def to_resume(directory, **keys):
    return replace(environment(directory, **keys).job_settings("orders"), resume=True)


def test_the_job_with_the_newest_checkpoint_is_resumed(tmp_path):
    leave(tmp_path, A, 9, timestamp_ms=1_000)
    leave(tmp_path, B, 3, timestamp_ms=3_000)
    leave(tmp_path, C, 20, timestamp_ms=2_000)
    assert str(resumed(to_resume(tmp_path)).job_id) == B


def test_of_two_checkpoints_of_one_moment_the_later_one_counts(tmp_path):
    leave(tmp_path, A, 9, timestamp_ms=1_000)
    leave(tmp_path, B, 10, timestamp_ms=1_000)
    assert str(resumed(to_resume(tmp_path)).job_id) == B


def test_other_jobs_savepoints_and_unreadable_checkpoints_do_not_count(tmp_path):
    leave(tmp_path, A, 1, timestamp_ms=1_000)
    leave(tmp_path, B, 2, timestamp_ms=2_000, name="payments")
    leave(tmp_path, B, 3, timestamp_ms=3_000, kind="savepoint")
    leave(tmp_path, C, 4, timestamp_ms=4_000).write_bytes(b"damaged")
    settings = to_resume(tmp_path)
    assert resumed(settings) == replace(settings, job_id=resumed(settings).job_id)
    assert str(resumed(settings).job_id) == A


def test_without_a_checkpoint_of_its_name_a_job_keeps_its_new_id(tmp_path, caplog):
    leave(tmp_path, B, 2, timestamp_ms=2_000, name="payments")
    settings = to_resume(tmp_path)
    assert resumed(settings) is settings
    assert "job orders starts from the beginning" in caplog.text


def test_a_job_that_is_not_to_be_resumed_keeps_its_new_id(tmp_path):
    leave(tmp_path, A, 1, timestamp_ms=1_000)
    settings = replace(to_resume(tmp_path), resume=False)
    assert resumed(settings) is settings


def test_a_directory_of_one_job_and_a_fixed_id_need_no_search(tmp_path):
    leave(tmp_path, A, 1, timestamp_ms=1_000)
    alone = to_resume(tmp_path, create_subdir="false")
    assert resumed(alone) is alone
    fixed = to_resume(tmp_path)
    fixed = replace(fixed, configuration={**fixed.configuration, JOB_ID.key: B})
    assert resumed(fixed) is fixed


def test_a_job_without_a_checkpoint_directory_or_with_a_path_is_not_resumed(tmp_path):
    for settings in (to_resume(None), to_resume(None, interval="10 ms")):
        with pytest.raises(ConfigurationError, match="keeps no checkpoints"):
            resumed(settings)
    with pytest.raises(ConfigurationError, match="choose one"):
        resumed(replace(to_resume(tmp_path), restore_path="/somewhere"))


def of_service(directory):
    """The settings of a job that a service has given an id."""
    settings = to_resume(directory)
    given = {**settings.configuration, JOB_ID.key: A}
    return replace(settings, job_id=JobID(A), executions="many", configuration=given)


def test_a_job_of_a_service_keeps_its_id_and_starts_from_the_newest_checkpoint(tmp_path):
    leave(tmp_path, B, 3, timestamp_ms=3_000)
    settings = resumed(of_service(tmp_path))
    assert (str(settings.job_id), settings.restore_path) == (A, str(tmp_path / B / "chk-3"))
    assert resumed(settings) is settings, "a source beside the job has asked before"


def test_a_job_of_a_service_that_has_a_checkpoint_of_its_own_continues_from_it(tmp_path):
    leave(tmp_path, A, 3, timestamp_ms=3_000)
    leave(tmp_path, B, 3, timestamp_ms=2_000)
    settings = resumed(of_service(tmp_path))
    assert (str(settings.job_id), settings.restore_path) == (A, None)


def test_a_job_of_a_service_does_not_resume_a_job_that_runs(tmp_path):
    leave(tmp_path, B, 3, timestamp_ms=3_000)
    claim(open_files(str(tmp_path / B)), Driver.this_process(), SystemClock().now_ms())
    with pytest.raises(
        ConfigurationError, match=rf"cannot be resumed, because it is still running: job {B}, process {os.getpid()}"
    ):
        resumed(of_service(tmp_path))
