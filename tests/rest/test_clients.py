"""A client in another process watches and controls the job of a driver, by the address of the driver's web server."""

from ekorn.common import JobStatus
from ekorn.config.settings.web_settings import WebSettings
from ekorn.service.client.service_client import ServiceClient


def test_any_running_job_with_a_web_server_has_a_job_client(web, run, tmp_path):
    serving = web.open(WebSettings(port=0))
    handle = run(tmp_path / "checkpoints")
    job = ServiceClient(serving.address, serving.token_file).job(str(handle.job_id))
    assert job.get_job_status().result() is JobStatus.RUNNING
    assert job.get_progress().records_read > 0
    assert job.get_metrics()["job.numRestarts"] == "0"
    saved = job.trigger_savepoint(str(tmp_path / "saved")).result(60)
    assert saved.startswith(str(tmp_path / "saved"))
    job.cancel().result(60)
    assert handle.status() is JobStatus.CANCELED
