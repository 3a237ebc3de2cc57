"""Other processes control a running job by its socket: savepoints, stopping, cancelling; and who is not answered."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.clock import SystemClock
from ekorn.common import Configuration, JobStatus, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.errors import CheckpointError, ConfigurationError, JobCancelledError
from ekorn.links.listener import MAX_NEWCOMERS
from ekorn.rest.job_socket import JobGone, JobSocket, JobSocketClient, job_sockets
from ekorn.service.client.remote_job import RemoteJob
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_run import on_local_engine
from ekorn.web.http_client import RefusedRequest
from ekorn.web.http_server import ServerLimits
from ekorn.web.peers import peer_uid
from tests.live_jobs import until


@pytest.fixture(autouse=True)
def folder(runtime_dir):
    return runtime_dir


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


def known_handle() -> JobHandle:
    """Return the handle of a job whose loop is assembled and does not run."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    graph, settings = drawn_job(env)
    handle = JobHandle(settings.job_id, "job")
    handle.view.statistics = JobStatistics(graph, settings, SystemClock())
    return handle


def job_at(path: Path) -> dict:
    """Return what a socket tells about its job."""
    (job,) = JobSocketClient(path, 30).get("/jobs/overview")["jobs"]
    return job


def reached() -> RemoteJob:
    """Return the one job that has a socket."""
    (path,) = job_sockets()
    return RemoteJob(JobSocketClient(path), job_at(path)["jid"], one_answer=True)


def savepoint(directory=None, then="go on", native=False):
    directory = None if directory is None else str(directory)
    return reached().request_savepoint(directory, native=native, then=then).result(60)


def test_a_job_says_who_it_is(client):
    (path,) = job_sockets()
    job = job_at(path)
    assert (job["jid"], job["name"]) == (str(client.get_job_id()), "endless")
    assert path.name.startswith(f"{os.getpid()}-")
    assert job["state"] in ("CREATED", "RUNNING") and reached().progress().records_read >= 0


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
    assert job_sockets() == []


def test_a_job_is_cancelled(client):
    assert reached().cancel_and_wait() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(60)
    assert job_sockets() == []


def test_what_cannot_be_done_is_answered_with_the_reason(client):
    with pytest.raises(RefusedRequest, match="the savepoint has no directory"):
        savepoint()
    until(lambda: client.get_job_status().result() is JobStatus.RUNNING)
    (path := Path(runtime_folder(), "a file")).write_text("")
    with pytest.raises(CheckpointError, match="a file"):
        savepoint(path)
    path.unlink()


STOP = b"POST /jobs/%s/stop?wait=true HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s"


@pytest.mark.parametrize(
    "request_or_body",
    [
        b"nonsense\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b'{"ask": "job"}\r\n\r\n',
        b"[]",
        b"\xff\xfe",
        b'{"targetDirectory": 7}',
        b'{"targetDirectory": "x", "formatType": "explode"}',
        b"x" * 1000,
    ],
)
def test_nonsense_is_refused_and_does_no_harm(client, request_or_body):
    (path,) = job_sockets()
    is_request = request_or_body.endswith(b"\r\n\r\n")
    job = str(client.get_job_id()).encode()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(path))
        link.sendall(request_or_body if is_request else STOP % (job, len(request_or_body), request_or_body))
        assert link.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert job_at(path)["name"] == "endless"


def test_an_endless_line_is_not_read_to_its_end(client):
    (path,) = job_sockets()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(path))
        with pytest.raises(OSError):  # the job hangs up
            while True:
                link.sendall(b"x" * 4096)
    assert job_at(path)["name"] == "endless"


def test_another_user_is_not_answered():
    opened = JobSocket(known_handle(), uid_of=lambda link: os.getuid() + 1)
    with pytest.raises(JobGone):
        job_at(opened.path)
    opened.close()


STRANGER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as link:
    link.settimeout(30)
    link.connect(sys.argv[1])
    try:
        link.sendall(b"GET /jobs/overview HTTP/1.1\\r\\n\\r\\n")
        print("heard", link.recv(4096))
    except OSError:
        print("heard", b"")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_not_answered_even_where_it_can_reach_the_socket(folder):
    opened = JobSocket(known_handle())
    with tempfile.TemporaryDirectory() as open_to_all:  # the folders of pytest are closed to other users
        os.chmod(open_to_all, 0o755)
        reachable = os.path.join(open_to_all, "sock")
        os.link(opened.path, reachable)
        os.chmod(reachable, 0o777)
        for user, heard in ((65534, False), (os.geteuid(), True)):
            command = [sys.executable, "-c", STRANGER, reachable, str(user)]
            run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert run.stdout.startswith("heard"), run.stderr
            assert ("200 OK" in run.stdout) is heard
    opened.close()


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
    (path,) = job_sockets()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(path))
        assert job_at(path)["name"] == "endless"


def test_a_crowd_that_says_nothing_holds_nobody_up():
    """Nobody's time runs out here: the job closes the oldest connections because there are too many."""
    opened = JobSocket(known_handle(), ServerLimits(3_600, 3_600, most_newcomers=MAX_NEWCOMERS))
    before = len(_server_threads())
    silent = [socket.socket(socket.AF_UNIX) for _ in range(3 * MAX_NEWCOMERS)]
    try:
        for each in silent:
            each.connect(str(opened.path))
        assert job_at(opened.path)["name"] == "job"
        until(lambda: len(_server_threads()) <= before + MAX_NEWCOMERS)  # each connection has one
    finally:
        for each in silent:
            each.close()
    assert job_at(opened.path)["name"] == "job"
    opened.close()


def _server_threads():
    return {thread for thread in threading.enumerate() if thread.name == "ekorn-web"}


def test_a_socket_that_is_closed_listens_no_longer():
    before = _server_threads()  # of earlier tests, which may still end
    opened = JobSocket(known_handle())
    (listening,) = _server_threads() - before
    opened.close()
    until(lambda: not listening.is_alive())


def test_several_may_ask_at_once(client, tmp_path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(savepoint(tmp_path / "saved"))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(found)) == 5


ENDING = """
import threading, time
from ekorn.common import JobStatus
from ekorn.links.listener import MAX_NEWCOMERS
from ekorn.rest.job_socket import JobSocket
from tests.rest.test_job_socket import known_handle

handle, asked = known_handle(), threading.Event()

def cancel():
    asked.set()
    time.sleep(0.5)  # the answer is sent after the end of the program

handle.requests.wake_with(on_cancel=cancel, on_request=lambda: None)
print(JobSocket(handle).path, handle.job_id, flush=True)
asked.wait()
handle.end(JobStatus.CANCELED, None, None)
"""


def test_a_request_that_arrived_before_the_driver_ended_is_answered():
    with subprocess.Popen([sys.executable, "-c", ENDING], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        path, job_id = driver.stdout.readline().split()
        with socket.socket(socket.AF_UNIX) as silent:  # does not hold up the end for ever
            silent.connect(path)
            job = RemoteJob(JobSocketClient(Path(path)), job_id, one_answer=True)
            assert job.cancel_and_wait() is JobStatus.CANCELED
            assert driver.wait(60) == 0


def test_what_a_killed_driver_left_is_cleared_away(folder):
    folder.mkdir(mode=0o700)
    left = folder / "1-0.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert job_sockets() == [left]
    with pytest.raises(JobGone, match="killed"):
        job_at(left)
    assert job_sockets() == []


def test_a_folder_that_others_may_enter_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(ConfigurationError, match="no other user can enter"):
        runtime_folder()


def test_a_link_in_its_place_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="must be a folder"):
        runtime_folder()


def test_a_job_runs_without_a_socket_where_there_is_no_safe_place_for_it(folder, caplog):
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
        JobSocket(known_handle())


def test_in_tests_there_is_no_socket_unless_asked_for(folder):
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
