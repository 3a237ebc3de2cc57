"""A job's program runs again from a savepoint, as a job of its own."""

import pytest

from ekorn.config import options
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_submission import started_again
from ekorn.web.http_client import RefusedRequest
from tests.live_jobs import until

RECORD = JobRecord(
    job_id="0" * 32,
    name="count",
    program="p.zip",
    script="p.py",
    arguments=("a",),
    settings={
        "state.backend.type": "rocksdb",
        options.JOB_ID.key: "0" * 32,
        options.WEB_SOCKET.key: "/run/old.rest",
        options.RESTORE_PATH.key: "/old",
        options.RESTORE_CLAIM_MODE.key: "CLAIM",
        options.RESTORE_IGNORE_UNCLAIMED.key: "true",
    },
    slots=2,
    slot_memory_bytes=7,
)


def test_the_new_job_has_the_program_the_arguments_and_the_settings_and_nothing_of_the_old_start():
    wanted = started_again(RECORD, "/saved")
    assert wanted.settings == {"state.backend.type": "rocksdb", options.RESTORE_PATH.key: "/saved"}
    assert (wanted.program, wanted.arguments, wanted.slot_memory_bytes) == ("p.zip", ("a",), 7)
    assert wanted.job_id is None


def test_state_without_an_operator_is_left_out_on_request():
    wanted = started_again(RECORD, "/saved", 3, ignore_unclaimed=True)
    assert wanted.settings is not None and wanted.settings[options.RESTORE_IGNORE_UNCLAIMED.key] == "true"
    assert wanted.parallelism == 3


def test_a_request_that_is_sent_again_starts_no_second_job(client, programs):
    job = client.submit(programs / "bounded.py", arguments=["1"])
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    body = {"savepointPath": "/saved", "submissionId": "once"}
    answers = [client.web.ask("POST", f"/jobs/{job.get_job_id()}/restore", body).json() for _ in range(2)]
    assert answers[0] == answers[1] and len(client.jobs()) == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "'savepointPath' is required"),
        ({"savepointPath": 7}, "not of the type str"),
        ({"savepointPath": "/saved", "parallelism": "2"}, "not of the type int"),
        ({"savepointPath": "/saved", "parallelism": 9}, "it needs 9 slots, but the service has only 2"),
    ],
)
def test_a_wrong_request_starts_nothing(client, programs, body, reason):
    job = client.submit(programs / "bounded.py", arguments=["1"])
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    with pytest.raises(RefusedRequest, match=reason):
        client.web.ask("POST", f"/jobs/{job.get_job_id()}/restore", body).json()
    assert len(client.jobs()) == 1
