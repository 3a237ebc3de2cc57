"""A program whose driver has a web server: opened by the first job, named in the start line, off by default."""

import http.client
import json
import logging

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import ConfigurationError
from ekorn.rest.driver_web import WEB
from ekorn.testing.local_run import on_local_engine


@pytest.fixture(autouse=True)
def closed(runtime_dir):
    yield
    WEB.close()


def run(**keys):
    configuration = Configuration.from_dict({key.replace("__", "."): value for key, value in keys.items()})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1, 2]).map(lambda n: n + 1).print()
    with on_local_engine():
        return env.execute("shown")


def test_the_start_line_names_the_address_and_the_job_is_shown_there(caplog):
    with caplog.at_level(logging.INFO, "ekorn"):
        result = run(**{"ekorn__web": "auto", "ekorn.web.authentication": "none"})
        first = WEB.address
        run(**{"ekorn__web": "auto", "ekorn.web.authentication": "none"})
    assert WEB.address == first is not None
    starts = [record.getMessage() for record in caplog.records if "starts on" in record.getMessage()]
    assert all(line.endswith(f"web {first}") for line in starts) and len(starts) == 2
    link = http.client.HTTPConnection(first.removeprefix("http://"), timeout=30)
    link.request("GET", "/jobs/overview")
    jobs = json.loads(link.getresponse().read())["jobs"]
    link.close()
    assert [(job["name"], job["state"]) for job in jobs[-2:]] == [("shown", "FINISHED")] * 2
    assert str(result.get_job_id()) in [job["jid"] for job in jobs]


def test_the_log_names_the_file_of_the_token_and_not_the_token(caplog, runtime_dir):
    with caplog.at_level(logging.INFO, "ekorn"):
        run(ekorn__web="auto")
    token = (runtime_dir / "web.token").read_text().strip()
    assert token not in caplog.text and "web.token" in caplog.text


def test_no_port_is_opened_unless_it_is_asked_for():
    run()
    assert WEB.address is None


def test_a_server_that_cannot_be_opened_fails_the_start():
    with pytest.raises(ConfigurationError, match="a port from 1 to 65535"):
        run(ekorn__web="somewhere")
