"""DataSet programs in a service: each of their jobs is listed, watched, and cancelled, and kept after the end."""

import pytest

from ekorn.cli.job_commands import list_jobs
from ekorn.common import JobStatus
from ekorn.errors import JobCancelledError
from ekorn.service.client.remote_job import RemoteJob
from tests.live_jobs import until
from tests.rest.shapes import READING, misfits

PROGRAM = """
import sys
import time
from pathlib import Path
from ekorn.dataset import ExecutionEnvironment
from ekorn.testing import on_local_engine

folder = Path(sys.argv[1])

def held_back(value):
    (folder / "arrived").touch()
    limit = time.monotonic() + 60
    while not (folder / "go on").exists():
        assert time.monotonic() < limit, "nobody said to go on"
        time.sleep(0.01)
    return value

with on_local_engine():
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    numbers = env.generate_sequence(1, 4)
    print(numbers.count(), flush=True)
    numbers.map(held_back).name("held").write_as_text(str(folder / "out"))
    env.execute("held back")
"""


@pytest.fixture
def script(programs, tmp_path):
    path = programs / "data_sets.py"
    path.write_text(PROGRAM)
    return path


def test_the_jobs_of_a_program_are_listed_watched_and_kept(client, script, tmp_path):
    first = client.submit(script, arguments=[str(tmp_path)])
    until((tmp_path / "arrived").exists, 60)
    counted, held = client.web.get("/jobs/overview")["jobs"]
    assert counted["jid"] == str(first.get_job_id()) and counted["state"] == "FINISHED"
    assert (held["name"], held["state"], held["tasks"]["total"]) == ("held back", "RUNNING", 2)
    (shown,) = client.jobs()
    assert shown["further"] == [held["jid"]] and not shown["silent"]
    details = client.web.get(f"/jobs/{held['jid']}")
    assert details["state"] == "RUNNING" and not misfits(READING["/jobs/{jobid}"], details)
    (tmp_path / "go on").touch()
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    assert client.jobs()[0]["state"] == "FINISHED"
    details = client.web.get(f"/jobs/{held['jid']}")  # the driver has ended
    assert details["state"] == "FINISHED" and details["vertices"][0]["metrics"]["read-records"] == 4
    plan = client.web.get(f"/jobs/{held['jid']}/plan")["plan"]
    assert plan["nodes"] == details["plan"]["nodes"]


def test_a_job_is_found_and_cancelled_by_a_client(client, script, tmp_path, capsys):
    client.submit(script, arguments=[str(tmp_path)])
    until((tmp_path / "arrived").exists, 60)
    assert list_jobs(client) == 0
    _, line = capsys.readouterr().out.splitlines()
    held = line.split()[0]
    assert "held back" in line and "RUNNING" in line, "the job that has ended is not shown"
    assert list_jobs(client, "all") == 0
    _, ended, running = capsys.readouterr().out.splitlines()
    assert "FINISHED" in ended and running.startswith(held)
    job = RemoteJob(client.web, held)
    job.cancel()
    assert job.status() is JobStatus.CANCELLING
    (tmp_path / "go on").touch()
    with pytest.raises(JobCancelledError):
        job.wait(60)
    assert not (tmp_path / "out").exists()
