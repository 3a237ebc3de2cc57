"""`ekorn list`, `stop`, `cancel` and `savepoint trigger`, with a job in a process of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.cli.main import main

PROGRAM = """
import sys
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.testing.local_run import on_local_engine

configuration = Configuration()
configuration.set_string("ekorn.control.enabled", "true")
with on_local_engine():
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(1000))
    env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless").key_by(lambda n: n % 5).reduce(max)
    clients = [env.execute_async(sys.argv[1])]
    print("started", clients[0].get_job_id(), flush=True)
    clients[0].get_job_execution_result().result()
"""


@pytest.fixture(autouse=True)
def folder(runtime_dir):
    return runtime_dir


@pytest.fixture
def start():
    """Return a function that starts a program with a job of this name, and returns its process and the job's id."""
    processes = []

    def started(name):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, name], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().split()[1]

    yield started
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_jobs_are_listed(start, capsys):
    process, job_id = start("first")
    _, other_id = start("second")
    assert main(["list"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["job", "name", "status", "records", "checkpoints", "restarts", "process", "started"]
    found = {line.split()[0]: line.split() for line in lines}
    assert found.keys() == {job_id, other_id}
    assert found[job_id][1] == "first" and found[job_id][6] == str(process.pid)
    started = time.mktime(time.strptime(" ".join(found[job_id][-2:]), "%Y-%m-%d %H:%M:%S"))
    assert abs(time.time() - started) < 7300, "clocks may be set by an hour meanwhile"


def test_without_jobs_that_is_said(capsys):
    assert main(["list"]) == 1
    assert "you have no running jobs on this machine" in capsys.readouterr().err


def test_a_killed_job_is_not_listed(start, capsys, folder):
    process, _ = start("first")
    process.kill()
    process.wait()
    assert main(["list"]) == 1
    assert [each.name for each in folder.iterdir()] == ["logs"]


def test_a_savepoint_is_triggered_and_the_job_goes_on(start, capsys, tmp_path, monkeypatch):
    process, job_id = start("first")
    monkeypatch.chdir(tmp_path)
    for arguments in ([job_id[:6], "here"], [job_id[:6], "-p", "here"], ["-p", "here", "first"]):
        assert main(["savepoint", "trigger", *arguments]) == 0
        path = capsys.readouterr().out.strip()
        assert Path(path).parent == tmp_path / "here" and str(resolve(path)[1].job_id) == job_id
    assert main(["savepoint", job_id, "-p", "there"]) == 0
    assert Path(capsys.readouterr().out.strip()).parent == tmp_path / "there"
    assert process.poll() is None


def test_a_savepoint_goes_to_one_directory(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["savepoint", "trigger", "first", "here", "-p", "there"])
    assert ended.value.code == 2 and "one directory, please: 'here' or -p 'there'" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["-type", "canonical"], ["--drain"]])
def test_a_job_is_stopped_and_the_answer_comes_before_its_process_ends(start, capsys, tmp_path, more):
    process, _ = start("first")
    assert main(["stop", "-p", str(tmp_path), *more, "first"]) == 0
    assert resolve(capsys.readouterr().out.strip())[1].kind == "savepoint"
    assert process.wait(30) == 0


def test_a_job_is_cancelled(start, capsys):
    process, _ = start("first")
    assert main(["cancel", "first"]) == 0
    assert "job 'first' is CANCELED" in capsys.readouterr().out
    assert process.wait(30) != 0, "the program is told by an exception"


def test_a_job_is_cancelled_with_a_savepoint(start, capsys, tmp_path):
    process, job_id = start("first")
    assert main(["cancel", "-s", str(tmp_path), job_id]) == 0
    assert resolve(capsys.readouterr().out.strip())[1].kind == "savepoint"
    process.wait(30)


def test_no_directory_is_said_by_the_job(start, capsys):
    process, _ = start("first")
    assert main(["stop", "first"]) == 1
    assert "the savepoint has no directory: give one, or set a default" in capsys.readouterr().err
    for arguments in (["first", "-s"], ["-s", "first"]):  # what stands alone behind -s is the job
        assert main(["cancel", *arguments]) == 1
        assert "the savepoint has no directory: give one, or set a default" in capsys.readouterr().err
    assert process.poll() is None


@pytest.mark.parametrize("command", [["stop"], ["cancel"], ["savepoint", "trigger"], ["savepoint"]])
def test_a_name_that_no_job_has_lists_those_there_are(start, capsys, command):
    _, job_id = start("first")
    assert main([*command, "other"]) == 1
    assert f"no running job is called 'other'; running jobs: {job_id} (first)" in capsys.readouterr().err


def test_a_name_that_two_jobs_have_lists_them(start, capsys):
    ids = {start("same")[1] for _ in range(2)}
    assert main(["cancel", "same"]) == 1
    said = capsys.readouterr().err
    assert "2 running jobs are called 'same'" in said and all(job_id in said for job_id in ids)


def test_without_any_job_that_is_said_too(capsys):
    assert main(["stop", "-p", "x", "first"]) == 1
    assert "no running job is called 'first'; you have no running jobs on this machine" in capsys.readouterr().err


def test_as_a_command(start, tmp_path):
    _, job_id = start("first")
    command = [sys.executable, "-m", "ekorn", "stop", "-p", str(tmp_path), job_id]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=60)
    assert done.returncode == 0 and done.stdout.startswith(str(tmp_path)), done
