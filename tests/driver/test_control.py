"""Other processes control a running job: description, savepoints, stopping, cancelling; and who is not answered."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.common import Configuration, JobID, JobStatus, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.driver.control import ControlDesk, JobGone, ask, desks, peer_uid, runtime_folder
from ekorn.driver.job_handle import JobHandle
from ekorn.errors import ConfigurationError, EkornError, JobCancelledError
from ekorn.links.listener import MAX_NEWCOMERS
from ekorn.testing.local_run import on_local_engine
from tests.live_jobs import until


@pytest.fixture(autouse=True)
def folder(desk_folder):
    return desk_folder


@pytest.fixture
def client():
    """The client of a job that does not end by itself."""
    configuration = Configuration()
    configuration.set_string("ekorn.control.enabled", "true")
    with on_local_engine():
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(1000))
        env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless").key_by(lambda n: n % 5).reduce(max)
        client = env.execute_async("endless")
        yield client
        if not client.get_job_status().result().is_globally_terminal_state():
            client.cancel().result(30)


def savepoint(directory=None, then="go on", native=False):
    (desk,) = desks()
    directory = None if directory is None else str(directory)
    return ask(desk, {"ask": "savepoint", "directory": directory, "native": native, "then": then})


def test_a_job_says_who_it_is(client):
    (desk,) = desks()
    job = ask(desk, {"ask": "job"})
    assert (job["id"], job["name"], job["pid"]) == (str(client.get_job_id()), "endless", os.getpid())
    assert job["status"] in ("CREATED", "RUNNING") and job["records"] >= 0


@pytest.mark.parametrize("native", [False, True])
def test_a_savepoint_is_taken_and_the_job_goes_on(client, tmp_path, native):
    assert resolve(savepoint(tmp_path / "saved", native=native))[1].job_name == "endless"
    assert client.get_job_status().result() is JobStatus.RUNNING


@pytest.mark.parametrize(
    ("then", "end"), [("stop", JobStatus.FINISHED), ("drain", JobStatus.FINISHED), ("cancel", JobStatus.CANCELED)]
)
def test_a_job_ends_with_a_savepoint(client, tmp_path, then, end):
    assert resolve(savepoint(tmp_path / "saved", then))[1].kind == "savepoint"
    assert client.get_job_status().result() is end
    assert desks() == []


def test_a_job_is_cancelled(client):
    (desk,) = desks()
    assert ask(desk, {"ask": "cancel"}) == "CANCELED"
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(60)
    assert desks() == []


def test_what_cannot_be_done_is_answered_with_the_reason(client):
    with pytest.raises(EkornError, match="no directory for the savepoint"):
        savepoint()
    until(lambda: client.get_job_status().result() is JobStatus.RUNNING)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"nonsense\n",
        b"[]\n",
        b"\xff\xfe\n",
        b'{"ask": "savepoint"}\n',
        b'{"ask": "savepoint", "directory": 7, "native": false, "then": "go on"}\n',
        b'{"ask": "savepoint", "directory": "x", "native": false, "then": "explode"}\n',
        b'{"ask": "' + b"x" * 1000 + b'"}\n',
    ],
)
def test_nonsense_is_refused_and_does_no_harm(client, line):
    (desk,) = desks()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(desk))
        link.sendall(line)
        assert "error" in json.loads(link.makefile().readline())
    assert ask(desk, {"ask": "job"})["name"] == "endless"


def test_an_endless_line_is_not_read_to_its_end(client):
    (desk,) = desks()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(desk))
        with pytest.raises(OSError):  # the job hangs up
            for _ in range(10_000):
                link.sendall(b"x" * 4096)
    assert ask(desk, {"ask": "job"})["name"] == "endless"


def test_another_user_is_not_answered():
    desk = ControlDesk(JobHandle(JobID.generate(), "job"), uid_of=lambda link: os.getuid() + 1)
    with pytest.raises(JobGone):
        ask(desk.path, {"ask": "job"})
    desk.close()


STRANGER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as link:
    link.settimeout(30)
    link.connect(sys.argv[1])
    try:
        link.sendall(b'{"ask": "job"}\\n')
        print("heard", link.recv(4096))
    except OSError:
        print("heard", b"")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_not_answered_even_where_it_can_reach_the_socket(folder):
    desk = ControlDesk(JobHandle(JobID.generate(), "job"))
    with tempfile.TemporaryDirectory() as open_to_all:  # the folders of pytest are closed to other users
        os.chmod(open_to_all, 0o755)
        reachable = os.path.join(open_to_all, "sock")
        os.link(desk.path, reachable)
        os.chmod(reachable, 0o777)
        for user, heard in ((65534, False), (os.geteuid(), True)):
            command = [sys.executable, "-c", STRANGER, reachable, str(user)]
            run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert run.stdout.startswith("heard"), run.stderr
            assert ('"name"' in run.stdout) is heard
    desk.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused(folder):
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(ConfigurationError, match="user 65534 owns it"):
        runtime_folder()


def test_the_kernel_says_who_asks():
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert peer_uid(here) in (None, os.getuid())


def test_somebody_who_says_nothing_holds_nobody_up(client):
    (desk,) = desks()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(desk))
        assert ask(desk, {"ask": "job"})["name"] == "endless"


def test_a_crowd_that_says_nothing_holds_nobody_up():
    """Nobody's time runs out here: the job closes the oldest connections because there are too many."""
    desk = ControlDesk(JobHandle(JobID.generate(), "job"), request_s=3_600)
    before = len(_control_threads())
    silent = [socket.socket(socket.AF_UNIX) for _ in range(3 * MAX_NEWCOMERS)]
    try:
        for each in silent:
            each.connect(str(desk.path))
        assert ask(desk.path, {"ask": "job"})["name"] == "job"
        until(lambda: len(_control_threads()) <= before + MAX_NEWCOMERS)  # each connection has one
    finally:
        for each in silent:
            each.close()
    assert ask(desk.path, {"ask": "job"})["name"] == "job"
    desk.close()


def _control_threads():
    return {thread for thread in threading.enumerate() if thread.name == "ekorn-control"}


def test_a_desk_that_is_closed_listens_no_longer():
    before = _control_threads()  # of earlier tests, which may still end
    desk = ControlDesk(JobHandle(JobID.generate(), "job"))
    (listening,) = _control_threads() - before
    desk.close()
    until(lambda: not listening.is_alive())


def test_several_may_ask_at_once(client, tmp_path):
    (desk,) = desks()
    found = []
    question = {"ask": "savepoint", "directory": str(tmp_path / "saved"), "native": False, "then": "go on"}
    threads = [threading.Thread(target=lambda: found.append(ask(desk, question))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(found)) == 5


ENDING = """
import sys, threading, time
from ekorn.common import JobID, JobStatus
from ekorn.driver.control import ControlDesk
from ekorn.driver.job_handle import JobHandle

handle, asked = JobHandle(JobID.generate(), "job"), threading.Event()

def cancel():
    asked.set()
    time.sleep(0.5)  # the answer is sent after the end of the program

handle.requests.wake_with(on_cancel=cancel, on_request=lambda: None)
print(ControlDesk(handle).path, flush=True)
asked.wait()
handle.end(JobStatus.CANCELED, None, None)
"""


def test_a_request_that_arrived_before_the_driver_ended_is_answered():
    with subprocess.Popen([sys.executable, "-c", ENDING], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        desk = driver.stdout.readline().strip()
        with socket.socket(socket.AF_UNIX) as silent:  # does not hold up the end for ever
            silent.connect(desk)
            assert ask(Path(desk), {"ask": "cancel"}) == "CANCELED"
            assert driver.wait(60) == 0


def test_what_a_killed_driver_left_is_cleared_away(folder):
    folder.mkdir(mode=0o700)
    left = folder / "1-0.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert desks() == [left]
    with pytest.raises(JobGone, match="killed"):
        ask(left, {"ask": "job"})
    assert desks() == []


def test_a_folder_that_others_may_enter_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(ConfigurationError, match="nobody else may enter"):
        runtime_folder()


def test_a_link_in_its_place_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="must be a folder"):
        runtime_folder()


def test_a_job_runs_without_a_desk_where_there_is_no_safe_place_for_it(folder, caplog):
    folder.mkdir()
    folder.chmod(0o755)
    configuration = Configuration()
    configuration.set_string("ekorn.control.enabled", "true")
    with on_local_engine():
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.from_collection([1]).print()
        env.execute("alone")
    assert "cannot be reached" in caplog.text


def test_a_path_that_is_too_long_for_a_socket_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("EKORN_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    with pytest.raises(ConfigurationError, match="too long for a socket: name a short path in EKORN_RUNTIME_DIR"):
        ControlDesk(JobHandle(JobID.generate(), "job"))


def test_in_tests_there_is_no_desk_unless_asked_for(folder):
    with on_local_engine():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1]).print()
        env.execute("quiet")
    assert not folder.exists()


def test_without_a_session_folder_it_is_in_the_temporary_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("EKORN_RUNTIME_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runtime_folder() == tmp_path / f"ekorn-{os.getuid()}"
    (tmp_path / "session").mkdir()
    assert runtime_folder() == tmp_path / "session" / "ekorn"
