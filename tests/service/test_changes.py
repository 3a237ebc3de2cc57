"""A running job continues with another parallelism or another program; on failure it goes on as before."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ekorn.cli.main import main
from ekorn.common import JobStatus
from ekorn.errors import ConfigurationError, RescaleError
from ekorn.service.jobs.job_changes import check_program, upgraded
from ekorn.web.http_client import RefusedRequest
from tests.live_jobs import until
from tests.servers.ports import free_ports


@pytest.fixture
def named(running, monkeypatch):
    """Lets commands find the service."""
    monkeypatch.setenv("EKORN_SERVICE_ADDRESS", running.serving.address)
    monkeypatch.setenv("EKORN_SERVICE_TOKEN_FILE", running.serving.token_file)


@pytest.fixture
def job(client, named, programs):
    found = client.submit(programs / "endless.py", parallelism=1)
    until(lambda: found.get_job_status().result() is JobStatus.RUNNING)
    return str(found.get_job_id())


def parallelisms(client, job):
    return [vertex["parallelism"] for vertex in client.web.get(f"/jobs/{job}")["vertices"]]


def test_a_job_continues_with_another_parallelism_under_its_id(client, job, capsys):
    assert parallelisms(client, job) == [1, 1]
    assert main(["rescale", "-p", "2", job]) == 0
    saved = capsys.readouterr().out.strip()
    assert parallelisms(client, job) == [2, 2]
    assert client.web.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]["external_path"] == saved
    assert [each["id"] for each in client.jobs()] == [job]


def test_a_rescaled_job_keeps_its_driver_and_claims_other_slots(client, job, programs):
    before = client.jobs()[0]
    assert main(["rescale", "-p", "2", job]) == 0
    after = client.jobs()[0]
    assert (after["pid"], after["started"], after["slots"]) == (before["pid"], before["started"], 2)
    waiting = client.submit(programs / "endless.py", parallelism=1)
    assert main(["rescale", "-p", "1", job]) == 0
    until(lambda: waiting.get_job_status().result() is JobStatus.RUNNING)
    assert client.jobs()[0]["pid"] == before["pid"]


def test_a_rescale_that_the_driver_refuses_leaves_the_claim_as_it_was(client, job, running, programs, capsys):
    assert main(["rescale", "-p", "1", job]) == 1
    assert "no operator would change its parallelism" in capsys.readouterr().err
    assert [each.slots for each in running.service.jobs()] == [1]


def test_the_job_client_of_a_service_rescales(client, job):
    client.job(job).rescale(2).result(60)
    assert parallelisms(client, job) == [2, 2]
    with pytest.raises(RescaleError, match="would not fit"):
        client.job(job).rescale(3).result(60)


def test_the_rescales_of_a_job_are_listed_through_the_service_also_when_it_has_ended(client, job):
    client.job(job).rescale(2).result(60)
    client.job(job).rescale(1).result(60)

    def seen():
        found = client.web.get(f"/jobs/{job}/rescales")["rescales"]
        assert [(each["parallelism"], each["wanted"], each["refusal"]) for each in found] == [
            (2, 1, None),
            (1, 2, None),
        ]

    seen()
    client.job(job).cancel().result(60)
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    seen()


def test_a_parallelism_that_does_not_fit_leaves_the_job_alone(client, job, capsys):
    assert main(["rescale", "-p", "3", job]) == 1
    assert "would not fit: it needs 3 slots, but the service has only 2" in capsys.readouterr().err
    assert client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"} and parallelisms(client, job) == [1, 1]


def test_a_job_continues_with_another_program(client, job, programs):
    (programs / "better.py").write_text((programs / "endless.py").read_text().replace('name("most")', 'name("best")'))
    assert main(["upgrade", job, str(programs / "better.py")]) == 0
    names = [vertex["name"] for vertex in client.web.get(f"/jobs/{job}")["vertices"]]
    assert any("best" in name for name in names)


def test_a_program_that_does_not_fit_the_state_is_refused_before_the_job_stops(client, job, programs, capsys):
    pid = client.jobs()[0]["pid"]
    (programs / "other.py").write_text((programs / "endless.py").read_text().replace('uid("most")', 'uid("least")'))
    assert main(["upgrade", job, str(programs / "other.py")]) == 1
    assert "the new program does not fit it" in capsys.readouterr().err
    assert client.jobs()[0]["pid"] == pid and client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"}
    assert main(["upgrade", "-n", job, str(programs / "other.py")]) == 0
    assert client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"}


def test_a_program_that_fits_and_does_not_start_gives_way_to_the_one_before(client, job, programs, capsys):
    check = "import os\nif 'check' not in os.getcwd():\n    raise SystemExit(4)\n"
    (programs / "broken.py").write_text(check + (programs / "endless.py").read_text())
    assert main(["upgrade", job, str(programs / "broken.py")]) == 1
    assert "continues as before" in capsys.readouterr().err
    until(lambda: client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"})
    assert client.jobs()[0]["program"].endswith("endless.py.zip")


FAILS = """
from ekorn.common import Configuration, WatermarkStrategy
restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "1000000",
            "restart-strategy.fixed-delay.delay": "1 ms", "execution.checkpointing.interval": "50 ms"}
"""


def failing(endless, settings="restarts"):
    """Return a program that fits the state of another one, and fails on every record."""
    made = f"get_execution_environment(Configuration.from_dict({settings}))"
    text = endless.replace("get_execution_environment()", made)
    return FAILS + text.replace("reduce(max)", "reduce(lambda a, b: 1 // 0)")


def test_a_program_that_fails_on_every_record_gives_way_to_the_one_before(client, job, programs, capsys):
    (programs / "bad.py").write_text(failing((programs / "endless.py").read_text()))
    assert main(["upgrade", job, str(programs / "bad.py")]) == 1
    said = capsys.readouterr().err
    assert "continues as before: it restarted" in said and "before its first checkpoint was complete" in said
    until(lambda: client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"})
    assert client.jobs()[0]["program"].endswith("endless.py.zip")
    restored = client.web.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]
    assert restored["is_savepoint"]


def test_a_program_that_fails_without_a_restart_gives_way_to_the_one_before(client, job, programs, capsys):
    (programs / "bad.py").write_text(failing((programs / "endless.py").read_text(), "{}"))
    assert main(["upgrade", job, str(programs / "bad.py")]) == 1
    assert "continues as before" in capsys.readouterr().err
    until(lambda: client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"})
    assert client.jobs()[0]["program"].endswith("endless.py.zip")


def test_an_upgraded_job_keeps_its_program_once_a_checkpoint_is_complete(client, running, job, programs):
    text = (programs / "endless.py").read_text()
    text = text.replace("numbers = env", "env.enable_checkpointing(3_600_000)\nnumbers = env")
    (programs / "saved.py").write_text(text)
    assert main(["upgrade", job, str(programs / "saved.py")]) == 0
    record = running.service.find(job)
    assert (record.fallback, record.trial_ms, record.going_back) == (None, 0, "")
    assert client.web.get(f"/jobs/{job}/checkpoints")["counts"]["completed"] >= 1


def test_a_job_that_is_cancelled_during_a_change_does_not_go_on_as_before(client, job, programs):
    wait = "import os, time\nif 'check' not in os.getcwd():\n    time.sleep(600)\n"
    (programs / "slow.py").write_text(wait + (programs / "endless.py").read_text())
    program = client.upload(programs / "slow.py")
    before = client.jobs()[0]["pid"]
    client.web.ask("POST", f"/jobs/{job}/upgrade", {"program": program}).json()
    until(lambda: client.jobs()[0]["phase"] == "STARTED" and client.jobs()[0]["pid"] != before)
    client.job(job).cancel().result(60)
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    assert client.jobs()[0]["state"] == "CANCELED"


def test_an_upgrade_needs_no_second_port_and_leaves_one_savepoint(client, named, programs, tmp_path, capsys):
    web, prometheus = free_ports(2)
    factory = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
    given = {
        "ekorn.web": str(web),
        "metrics.reporter.p.port": str(prometheus),
        "metrics.reporter.p.factory.class": factory,
    }
    given["execution.checkpointing.savepoint-dir"] = str(tmp_path / "saved")
    found = client.submit(programs / "endless.py", settings=given)
    until(lambda: found.get_job_status().result() is JobStatus.RUNNING)
    assert main(["upgrade", str(found.get_job_id()), str(programs / "my_job.py")]) == 0
    assert [str(each) for each in (tmp_path / "saved").iterdir()] == capsys.readouterr().out.split()


def test_two_checks_of_a_program_do_not_disturb_each_other(client, running, job, programs):
    record = running.service.find(job)
    plan = upgraded(record.plan, client.upload(programs / "my_job.py"), None, {})
    with ThreadPoolExecutor(2) as clients:
        for each in [clients.submit(check_program, running.service, record, plan) for _ in range(2)]:
            each.result(60)
    assert not list(running.service.store.job_folder(job).glob("check*"))


@pytest.mark.parametrize("key", ["parallelism.default", "ekorn.slots.max", "$internal.pipeline.job-id"])
def test_an_upgrade_changes_neither_the_slots_nor_the_id_of_a_job(client, job, programs, key):
    body = {"program": client.upload(programs / "my_job.py"), "flinkConfiguration": {key: "9"}}
    with pytest.raises(RefusedRequest, match="an upgrade cannot set"):
        client.web.ask("POST", f"/jobs/{job}/upgrade", body).json()


def test_a_job_whose_next_driver_cannot_be_started_goes_on_as_before(client, running, job, programs):
    better = client.upload(programs / "my_job.py")
    record = running.service.find(job)
    plan = upgraded(record.plan, better, None, {})
    running.service.store.program(better).write_bytes(b"damaged")
    with pytest.raises(ConfigurationError, match=r"was not changed: .*could not be started"):
        running.service.changes.switch(job, plan, None)
    until(lambda: client.web.get(f"/jobs/{job}/status") == {"status": "RUNNING"})
    assert client.jobs()[0]["program"].endswith("endless.py.zip")
