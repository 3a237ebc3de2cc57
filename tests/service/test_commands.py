"""The commands against a service in a process of its own; docs/operations.md shows the same ones."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ekorn.cli.log_command import logs
from ekorn.cli.main import main
from ekorn.common import JobStatus
from ekorn.service.client.service_client import own_service
from tests.live_jobs import is_running, until
from tests.manual.blocks import blocks_of
from tests.manual.page_run import commands_of
from tests.servers.kafka.certificates import write_certificates
from tests.service.conftest import configuration

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.fixture
def service(tmp_path, runtime_dir, programs, monkeypatch):
    """Starts and stops services in a folder of the test; kills what is left."""
    conf = tmp_path / "conf"
    conf.mkdir()
    lines = [f"{key}: {value}" for key, value in configuration(tmp_path / "service").to_dict().items()]
    (conf / "config.yaml").write_text("\n".join(lines))
    monkeypatch.setenv("EKORN_CONF_DIR", str(conf))
    monkeypatch.chdir(programs)
    yield tmp_path / "service"
    left = own_service()
    if left is not None:
        main(["service", "stop"])
    for record in (tmp_path / "service" / "jobs").glob("*/job.json"):
        pid = json.loads(record.read_text())["pid"]
        if pid and is_running(pid):
            os.killpg(pid, signal.SIGKILL)


def test_the_commands_of_the_page_do_what_it_says(service, capsys, tmp_path):
    block, *_ = [block for block in blocks_of(PAGE) if block.language == "console"]
    job = ""
    for line, _ in commands_of(block.text):
        words = shlex.split(line.replace("JOB", job).replace("/savepoints", str(tmp_path / "saved")))
        assert words.pop(0) == "ekorn"
        assert main(words) == 0, (line, capsys.readouterr())
        out = capsys.readouterr().out
        if words[0] == "run":
            job = out.strip()
            until(lambda: main(["list", "-r"]) == 0)
            capsys.readouterr()
        if words == ["list", "-a"]:
            head, *_, last = out.splitlines()
            process = last[head.index("process") : head.index("started")].strip()
            assert "FINISHED" in last and not process, "a job that has ended has no process"
    assert own_service() is None


def test_the_client_of_the_page_submits_a_job(service, capsys):
    (block,) = [block for block in blocks_of(PAGE) if block.language == "python"]
    names: dict[str, Any] = {"__name__": "page"}
    assert main(["service", "start"]) == 0
    exec(compile(block.text, str(PAGE), "exec"), names)
    job = names["job"]
    until(lambda: job.get_job_status().result() is JobStatus.RUNNING)
    assert main(["list", "-r"]) == 0
    assert str(job.get_job_id()) in capsys.readouterr().out
    job.cancel().result(60)
    until(lambda: main(["list", "-r"]) == 1)


def test_a_service_with_the_settings_of_the_page_leads(service, capsys, tmp_path):
    """The page's storage, name and certificate are those of other machines; the test has its own."""
    settings_of = [block for block in blocks_of(PAGE) if block.language == "yaml"]
    (block,) = [block for block in settings_of if "high-availability.storageDir" in block.text]
    write_certificates(tmp_path)
    (tmp_path / "server.pem").chmod(0o600)
    (tmp_path / "shared").mkdir(mode=0o700)
    replaced = {
        "s3://bucket/ekorn": str(tmp_path / "shared"),
        "machine-1.example.com": "127.0.0.1",
        "/etc/ekorn/server.pem": str(tmp_path / "server.pem"),
    }
    text = block.text
    for shown, real in replaced.items():
        assert shown in text
        text = text.replace(shown, real)
    with open(tmp_path / "conf" / "config.yaml", "a") as settings:
        settings.write(f"\n{text}")
    assert main(["service", "start"]) == 0, capsys.readouterr().err
    until(lambda: main(["service", "status"]) == 0)  # it has asked the storage who leads
    assert "leader: https://127.0.0.1:" in capsys.readouterr().out


def test_the_address_of_a_service_has_the_name_that_is_configured(service, capsys):
    name = ["-D", "rest.address=localhost"]
    assert main(["service", "start", *name]) == 0
    assert "http://localhost:" in capsys.readouterr().out
    assert main(["service", "status", *name]) == 0
    assert main(["service", "stop", *name]) == 0


def test_jobs_outlive_a_service_that_is_killed(service, capsys):
    assert main(["service", "start"]) == 0
    assert main(["run", "-d", "endless.py", "a"]) == 0
    job = capsys.readouterr().out.splitlines()[-1]
    until(lambda: main(["list", "-r"]) == 0)
    running = own_service()
    assert running is not None
    os.killpg(running["pid"], signal.SIGKILL)  # with all that belongs to it
    until(lambda: own_service() is None)
    pid = json.loads((service / "jobs" / job / "job.json").read_text())["pid"]
    assert is_running(pid)
    assert main(["service", "start"]) == 0
    until(lambda: main(["list", "-r"]) == 0)
    assert job in capsys.readouterr().out
    assert main(["cancel", job]) == 0
    until(lambda: not is_running(pid))
    until(lambda: main(["list", "-r"]) == 1)
    assert main(["list", "-a"]) == 0
    assert "CANCELED" in capsys.readouterr().out


def test_one_folder_has_one_service(service, capsys):
    assert main(["service", "status"]) == 1
    assert main(["service", "start"]) == 0
    assert main(["service", "start"]) == 1
    assert "a service is already running" in capsys.readouterr().err
    assert main(["service", "status"]) == 0
    assert "2 of 2 slots free" in capsys.readouterr().out
    assert main(["service", "stop"]) == 0


def test_a_service_in_the_foreground_logs_and_ends_with_its_process(service, capsys):
    command = [sys.executable, "-m", "ekorn", "service", "start", "--foreground"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: own_service() is not None)
    running = own_service()
    assert running is not None and running["pid"] == process.pid
    assert main(["service", "start", "--foreground"]) == 1
    assert "a service is already running" in capsys.readouterr().err
    process.terminate()
    _, logged = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"the service listens on {running['address']}" in logged
    assert own_service() is None


def test_a_service_that_cannot_start_says_why(service, capsys):
    assert main(["service", "start", "-D", "ekorn.web.certificate-file=/nowhere.pem"]) == 1
    assert "ekorn.web.certificate-file: '/nowhere.pem' cannot be used" in capsys.readouterr().err


def test_without_a_service_a_submission_says_what_to_do(service, capsys):
    assert main(["run", "-d", "endless.py"]) == 1
    assert "ekorn service start" in capsys.readouterr().err


def test_the_plan_of_a_program_is_printed_and_nothing_runs(service, capfd, programs):
    text = (programs / "endless.py").read_text().replace("with on_local_engine():", "if True:")
    prints = 'import os; print("mine"); os.write(1, b"mine too"); os.system("echo mine also")'
    (programs / "drawn.py").write_text(f"{prints}\n{text}")
    assert main(["info", "-p", "3", "-D", "pipeline.max-parallelism=12", "drawn.py"]) == 0
    printed = capfd.readouterr()
    nodes = json.loads(printed.out)["nodes"]
    assert [each for each in ("mine\n", "mine too", "mine also") if each not in printed.err] == []
    assert len(nodes) >= 2
    assert {node["parallelism"] for node in nodes} == {3}


@pytest.mark.parametrize("command", ["run", "info"])
def test_an_entry_class_is_refused_with_what_to_do(command, service, capsys):
    with pytest.raises(SystemExit):
        main([command, "-c", "org.Main", "endless.py"])
    assert "a Python program has none: name the script" in capsys.readouterr().err


def test_a_log_is_followed_whole_where_a_look_ends_in_the_middle_of_a_character(client, running, programs, capsys):
    (programs / "slow.py").write_text("import time; time.sleep(600)")
    job = client.submit(programs / "slow.py")
    until(lambda: client.jobs()[0]["phase"] == "STARTED")
    log = running.service.store.log(str(job.get_job_id()))
    first, second = "caf\u00e9\n".encode()[:4], "caf\u00e9\n".encode()[4:]
    log.write_bytes(first)

    def pause(seconds):
        if log.read_bytes() == first:
            log.write_bytes(first + second)
            job.cancel().result(60)

    assert logs(client, str(job.get_job_id()), follow=True, pause=pause) == 0
    assert capsys.readouterr().out == "caf\u00e9\n"
