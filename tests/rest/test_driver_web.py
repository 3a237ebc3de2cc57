"""The servers of a driver: at a port, at a Unix socket, opened for the first job that asks and closed with the last."""

import os
import re
import stat
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ekorn.config.settings.job_settings import JobSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest import job_socket
from ekorn.rest.driver_api import add_reading_routes
from ekorn.rest.driver_web import DriverWeb
from ekorn.rest.job_socket import JobSocket
from ekorn.rest.known_jobs import KnownJobs
from ekorn.web.http_client import ServerGone, WebClient
from ekorn.web.routes import Routes
from tests.rest.shapes import READING


@pytest.fixture
def web(runtime_dir):
    opened = DriverWeb()
    yield opened
    opened.close()


@pytest.fixture
def path(runtime_dir):
    return str(runtime_dir.parent / "own" / "web.sock")


def settings_with(**web):
    return replace(JobSettings("a job"), web=replace(WebSettings(), **web))


def answers(path):
    return WebClient(f"unix:{path}").ask("GET", "/jobs").status == 200


def test_a_job_that_asks_for_no_server_opens_none(web):
    settings = settings_with()
    assert web.opened_for(settings) is settings
    assert web.address is None


def test_a_driver_is_asked_at_its_socket_without_a_token(web, path):
    settings = settings_with(socket=path)
    assert web.opened_for(settings) is settings
    assert answers(path)
    assert web.address is None
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_the_second_job_of_a_driver_is_at_the_same_socket(web, path):
    web.opened_for(settings_with(socket=path))
    made = os.stat(path).st_ino
    web.opened_for(settings_with(socket=path))
    assert os.stat(path).st_ino == made and answers(path)


def test_a_socket_is_removed_when_the_driver_closes_it_and_can_be_opened_again(web, path):
    web.open_socket(path)
    web.close()
    assert not os.path.exists(path)
    with pytest.raises(ServerGone):
        answers(path)
    web.open_socket(path)
    assert answers(path)
    os.unlink(path)
    web.close()  # somebody else has removed the socket


def test_a_socket_that_cannot_be_made_is_named(web, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "s", tmp_path / ("x" * 200)):
        with pytest.raises(ConfigurationError, match=rf"ekorn.web.socket: '{place}' cannot be used: \S"):
            web.open_socket(str(place))
    web.open_socket(str(tmp_path / "s"))
    assert answers(tmp_path / "s"), "a failure leaves nothing behind"


def test_a_port_is_opened_once_and_named_in_the_settings(web):
    first = web.opened_for(settings_with(port=0))
    assert first.web.address == web.address is not None
    assert web.opened_for(settings_with(port=0)).web.address == first.web.address
    web.close()
    assert web.address is None


@pytest.mark.parametrize(
    ("given", "has_statistics", "is_shown"),
    [
        ({}, True, False),
        ({"address": "http://127.0.0.1:1"}, True, True),
        ({"socket": "/s"}, True, True),
        ({"socket": "/s"}, False, False),
    ],
)
def test_a_job_is_shown_if_it_asks_for_it_and_can_be_shown(web, given, has_statistics, is_shown):
    added = []
    web.jobs = SimpleNamespace(add=added.append)
    handle = SimpleNamespace(view=SimpleNamespace(statistics=object() if has_statistics else None))
    web.show(handle, settings_with(**given))
    assert added == ([handle] if is_shown else [])


@pytest.fixture
def socket_of_job(runtime_dir):
    statistics = SimpleNamespace(graph=SimpleNamespace(vertices=()))
    view = SimpleNamespace(job_id="1" * 32, status=lambda: JobStatus.RUNNING, statistics=statistics)
    requests = SimpleNamespace(cancel_requested=False)
    opened = JobSocket(SimpleNamespace(job_id="1" * 32, view=view, requests=requests, results=None))  # type: ignore[arg-type]
    yield opened
    opened.close()


def features(client):
    return client.get("/config")["features"]


def test_pages_may_change_jobs_unless_the_server_only_shows(web, path, socket_of_job):
    web.open_socket(path)
    assert features(WebClient(f"unix:{path}"))["web-cancel"] is True
    assert features(WebClient(f"unix:{socket_of_job.path}"))["web-cancel"] is True
    serving = web.open(WebSettings(port=0, read_only=True, needs_token=False))
    assert features(WebClient(serving.local_address))["web-cancel"] is False


def test_the_socket_of_a_job_goes_with_the_job_and_others_stay(socket_of_job, runtime_dir):
    assert stat.S_IMODE(os.stat(socket_of_job.path).st_mode) == 0o600
    other = runtime_dir / "other.sock"
    other.write_text("")
    socket_of_job.close()
    assert not socket_of_job.path.exists() and other.exists()
    socket_of_job.close()
    other.unlink()


def test_answers_that_are_under_way_when_a_driver_ends_are_finished_in_one_time_for_all(monkeypatch):
    class Server:
        def __init__(self):
            self.told = []

        def stop_accepting(self):
            self.told.append("stops")

        def wait_until_idle(self, timeout_s):
            self.told.append(timeout_s)
            clock[0] += 0.25

    clock, servers = [100.0], [Server(), Server()]
    monkeypatch.setattr(job_socket, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(job_socket, "_servers", servers)
    job_socket._finish_conversations()
    most = job_socket._LAST_ANSWERS_S
    assert [server.told for server in servers] == [["stops", most], ["stops", most - 0.25]]


def test_every_path_that_flink_describes_and_every_further_one_has_a_route():
    routes = Routes()
    add_reading_routes(routes, KnownJobs(), read_only=False)
    flinks = {shown.partition("?")[0] for shown in READING if not shown.startswith("/applications")}  # added apart
    of_job = ("metric-history", "rescales", "time-line")
    of_driver = ("log", "logs/{name}", "stdout")
    for path in {*flinks, *(f"/jobs/x/{each}" for each in of_job), *(f"/jobmanager/{each}" for each in of_driver)}:
        assert routes.find("GET", re.sub("{.*?}", "x", path).strip("/").split("/")), path
