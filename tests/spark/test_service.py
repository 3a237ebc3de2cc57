"""The service on Spark: a job is submitted, watched, saved and stopped by clients that come and go, and restored."""

from ekorn.common import JobStatus
from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.service.client.service_client import ServiceClient
from ekorn.service.jobs.job_process import end_process
from ekorn.service.service_process import StandingService
from tests.live_jobs import until
from tests.rest.shapes import READING, misfits

PROGRAM = """
from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

env = StreamExecutionEnvironment.get_execution_environment()
endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(500))
numbers = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
numbers.key_by(lambda n: n % 5).reduce(max).uid("most").name("most")
env.execute("endless")
"""


def test_a_job_of_the_service_is_watched_saved_stopped_and_restored(tmp_path, runtime_dir):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    service = StandingService(ServiceSettings(str(tmp_path / "service"), WebSettings(port=0), slots=1))

    def client():
        return ServiceClient(service.serving.address, service.serving.token_file)

    try:
        job = str(client().submit(script, settings={"spark.master": "local[1]"}).get_job_id())
        watched = client().job(job)
        until(lambda: watched.get_job_status().result() is JobStatus.RUNNING, 120)
        until(lambda: watched.get_progress().records_read > 0, 120)
        web = client().web
        (slot,) = web.get("/taskmanagers")["taskmanagers"]
        stacks = web.get(f"/taskmanagers/{slot['id']}/thread-dump")["threadInfos"]
        assert any("slot-connection" in each["threadName"] for each in stacks)
        details = web.get(f"/jobs/{job}")
        assert not misfits(READING["/jobs/{jobid}"], details)
        assert details["vertices"][0]["metrics"]["write-records"] > 0
        watched.trigger_savepoint(str(tmp_path / "first")).result(120)
        path = watched.stop_with_savepoint(False, str(tmp_path / "second")).result(120)
        until(lambda: watched.get_job_status().result() is JobStatus.FINISHED, 120)
        again = client().submit(script, settings={"spark.master": "local[1]"}, savepoint=path)
        until(lambda: again.get_job_status().result() is JobStatus.RUNNING, 120)
        restored = web.get(f"/jobs/{again.get_job_id()}/checkpoints")["latest"]["restored"]
        assert restored["external_path"] == path
        again.cancel().result(120)
    finally:
        service.close()
        for record in service.service.jobs():
            if record.phase == "STARTED":
                end_process(record.pid, record.pid_started, at_once=True)
