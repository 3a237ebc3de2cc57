"""Services that stand by for each other, with a job on Spark: the leader is killed, the job goes on exactly once."""

import signal

from ekorn.common import JobStatus
from tests.live_jobs import is_running, until
from tests.service.cluster import PROGRAM, cluster_in, committed, misses

RECORDS, PER_SECOND = 3000, 300


def test_a_job_on_spark_goes_on_under_a_standby_with_nothing_lost_or_twice(tmp_path, runtime_dir):
    script = tmp_path / "counted.py"
    script.write_text(PROGRAM.replace("with on_local_engine():", "if True:"))
    out = tmp_path / "out"
    settings = {
        "spark.master": "local[1]",
        "execution.checkpointing.interval": "500 ms",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
    }
    with cluster_in(tmp_path, lease_ms=4000) as cluster:
        leader = cluster.leader()
        arguments = [str(out), str(RECORDS), str(PER_SECOND)]
        job = str(cluster.client().submit(script, arguments=arguments, settings=settings).get_job_id())
        until(lambda: committed(out) > 200, 120)
        driver = cluster.client().jobs()[0]["pid"]
        leader.signal(signal.SIGKILL)
        assert cluster.leader() is not leader
        until(lambda: not is_running(driver))
        until(lambda: cluster.client().job(job).get_job_status().result() is JobStatus.FINISHED, 180)
        assert misses(out, RECORDS) == ""
        assert cluster.client().web.get(f"/jobs/{job}/checkpoints")["latest"]["restored"] is not None
