"""Before a driver deploys anything it records in the job's directory where its history begins."""

import json

import pytest

from ekorn.common.job_id import JobID
from ekorn.datastream import ExternalizedCheckpointRetention
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted, start_scripted
from tests.driver.savepoint_programs import EXPECTED, counting, environment, numbers


def starts(directory):
    """Return, by term, the checkpoint that each driver of the job started from."""
    found = [json.loads(path.read_text()) for path in sorted(directory.rglob("owner/start-*"))]
    return {start["term"]: start["checkpoint_id"] for start in found}


def test_a_start_is_recorded_once_however_often_the_job_restarts(tmp_path):
    seen = []
    script = Script(crashes=[Crash("in-epoch", 5)], deeds={n: lambda _: seen.append(starts(tmp_path)) for n in (1, 4)})
    run = run_scripted(counting(numbers(environment(tmp_path, restarts=1))), script)
    assert run.records == EXPECTED
    assert seen == [{1: None}, {1: None}]


def test_the_next_driver_records_the_checkpoint_it_continues_from(tmp_path):
    job_id, seen = JobID.generate(), []

    def program():
        env = environment(tmp_path)
        retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        return counting(numbers(env))

    with pytest.raises(DriverDied):
        start_scripted(program(), Script(crashes=[Crash("in-notify", 2)], driver_dies=True), job_id=job_id)
    look = Script(deeds={1: lambda _: seen.append(starts(tmp_path))})
    second = run_scripted(program(), look, job_id=job_id)
    (restored,) = second.engine.restored_ids
    assert restored is not None
    assert seen == [{1: None, 2: restored}]
