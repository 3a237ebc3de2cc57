"""The service on Spark: a job is submitted, watched, saved and stopped by clients that come and go, and restored."""

import pytest

from ekorn.cli.main import main
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


@pytest.fixture
def service(tmp_path, runtime_dir):
    """Return a service whose jobs run on Spark, and end their drivers."""
    service = StandingService(ServiceSettings(str(tmp_path / "service"), WebSettings(port=0), slots=1))
    try:
        yield service
    finally:
        service.close()
        for record in service.service.jobs():
            if record.phase == "STARTED":
                end_process(record.pid, record.pid_started, at_once=True)


def test_a_job_of_the_service_is_watched_saved_stopped_and_restored(tmp_path, service):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def client():
        return ServiceClient(service.serving.address, service.serving.token_file)

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


def test_a_job_that_is_upgraded_to_a_program_that_fails_on_every_record_returns_to_the_one_before(
    tmp_path, service, monkeypatch, capsys
):
    monkeypatch.setenv("EKORN_SERVICE_ADDRESS", service.serving.address)
    monkeypatch.setenv("EKORN_SERVICE_TOKEN_FILE", service.serving.token_file)
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(PROGRAM)
    fails = PROGRAM.replace("reduce(max)", "reduce(lambda a, b: 1 // 0)")
    restarts = """env.enable_checkpointing(50)
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000_000, 1))
"""
    fails = fails.replace("endless = ", restarts + "endless = ")
    bad.write_text("from ekorn.common import RestartStrategies\n" + fails)
    client = ServiceClient(service.serving.address, service.serving.token_file)
    job = client.submit(good, settings={"spark.master": "local[1]"})
    until(lambda: job.get_job_status().result() is JobStatus.RUNNING, 120)
    until(lambda: job.get_progress().records_read > 0, 120)
    assert main(["upgrade", str(job.get_job_id()), str(bad)]) == 1
    said = capsys.readouterr().err
    assert "continues as before: it restarted" in said and "before its first checkpoint was complete" in said
    until(lambda: client.jobs()[0]["program"].endswith("good.py.zip"), 120)
    until(lambda: job.get_job_status().result() is JobStatus.RUNNING, 120)
    until(lambda: job.get_progress().records_read > 0, 120)
    restored = client.web.get(f"/jobs/{job.get_job_id()}/checkpoints")["latest"]["restored"]
    assert restored["is_savepoint"]
