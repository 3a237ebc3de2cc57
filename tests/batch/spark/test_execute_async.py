"""A DataSet program that runs on Spark while its program goes on, and is cancelled."""

import time

import pytest

from ekorn.common import JobStatus
from ekorn.errors import JobCancelledError


def test_a_program_runs_beside_another_and_has_its_result(env, tmp_path):
    env.generate_sequence(1, 100).map(lambda x: x + 1).write_as_text(tmp_path / "out").set_parallelism(1)
    client = env.execute_async("beside")
    assert env.from_elements(1, 2).count() == 2  # another job of this thread
    assert client.get_job_execution_result().result(60).get_job_id() == client.get_job_id()
    assert len((tmp_path / "out").read_text().split()) == 100


def test_a_cancelled_program_leaves_no_output(env, tmp_path):
    marker = str(tmp_path / "started")

    def slow(value):
        open(marker, "w").close()
        time.sleep(60)
        return value

    env.from_elements(1).map(slow).write_as_text(tmp_path / "out")
    client = env.execute_async("slow")
    limit = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    client.cancel().result(60)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="'slow' was cancelled"):
        client.get_job_execution_result().result(60)
    assert not (tmp_path / "out").exists()
