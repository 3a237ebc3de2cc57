"""The page of a service offers what stays to start jobs from: savepoints, and checkpoints that ended jobs retain."""

import shutil

from tests.live_jobs import until
from tests.rest.shapes import ANSWERS, misfits


def offered(client):
    answer = client.web.get("/service/savepoints")
    assert not misfits(ANSWERS["GET /service/savepoints"], answer)
    return answer["savepoints"]


def test_savepoints_stay_and_checkpoints_stay_once_their_job_is_over_and_retains_them(client, programs, tmp_path):
    def submit(retention):
        settings = {
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": str(tmp_path / "kept"),
            "execution.checkpointing.externalized-checkpoint-retention": retention,
        }
        return client.submit(programs / "endless.py", settings=settings)

    retaining, deleting = submit("RETAIN_ON_CANCELLATION"), submit("DELETE_ON_CANCELLATION")
    until(lambda: all(job.get_progress().checkpoints_completed > 1 for job in (retaining, deleting)))
    assert offered(client) == [], "the next checkpoint of a running job deletes the one before"
    path = retaining.trigger_savepoint(str(tmp_path / "saved")).result(60)
    (point,) = offered(client)
    assert (point["path"], point["kind"], point["jobName"]) == (path, "SAVEPOINT", "endless")
    assert point["jobId"] == str(retaining.get_job_id()) and point["size"] > 0

    checkpoints = retaining.get_progress().checkpoints_completed
    until(lambda: retaining.get_progress().checkpoints_completed > checkpoints)
    for job in (retaining, deleting):
        job.cancel().result(60)
    until(lambda: all(job["phase"] == "ENDED" for job in client.jobs()))
    newest, before = offered(client)
    assert (newest["kind"], newest["jobId"]) == ("CHECKPOINT", str(retaining.get_job_id()))
    assert before == point and newest["timestamp"] > point["timestamp"]
    shutil.rmtree(path)
    assert offered(client) == [newest]
