"""Requests that nobody would write: every answer is an answer or a refusal, never a defect of the server."""

import http.client
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.config.service_settings import ServiceSettings
from tamias.config.web_settings import WebSettings
from tamias.rest.answer_shapes import ANSWERS
from tamias.rest.driver_web import driver_routes
from tamias.rest.known_jobs import KnownJobs
from tamias.rest.operations import Operations
from tamias.rest.shapes import schema_of
from tamias.service.job_service import JobService
from tamias.service.service_api import service_routes
from tamias.web.gate import Gate
from tamias.web.http_server import WebServer, tcp_socket
from tests.driver.submitted_jobs import start_locally
from tests.live_jobs import environment, generated, tallied, until

NAMES = [
    "target-directory", "targetDirectory", "cancel-job", "drain", "formatType", "triggerId", "savepoint-path",
    "programArgsList", "flinkConfiguration", "parallelism", "savepointPath", "jobId", "slotMemory", "claimMode",
]  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    st.sampled_from(["NATIVE", "f" * 32, "", "\0", "/dev/null/none"]),
)  # fmt: skip
JUNK = st.one_of(
    st.sampled_from(["0", "1", "-1", "9" * 40, "%00", "..", "%2e%2e", "%ff", "\u0661", "metrics", "*", ":jobid"]),
    st.text(max_size=10),
)
QUERY = st.dictionaries(
    st.sampled_from(["get", "agg", "subtasks", "jobs", "mode", "maxExceptions", "offset", "digest", "name", "x"]), JUNK
)
BODY = st.one_of(
    st.none(),
    st.binary(max_size=30),
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4).map(lambda fields: json.dumps(fields).encode()),
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A driver's server with a running job and a service's, and the names that its paths are filled with."""
    folder = tmp_path_factory.mktemp("fuzzed")
    env = environment(folder / "checkpoints", parallelism=2)
    tallied(generated(env, None, 500), 5)
    handle, known = start_locally(env), KnownJobs()
    known.add(handle)
    until(lambda: handle.progress().checkpoints_completed > 0)
    service = JobService(ServiceSettings(str(folder / "service"), WebSettings(port=0), slots=1))
    found = []
    for routes in (driver_routes(known, Operations()), service_routes(service)):
        found.append((WebServer(tcp_socket("127.0.0.1", 0), routes, Gate()), routes))
        found[-1][0].start()
    yield [(server.port, list(routes)) for server, routes in found], str(handle.job_id)
    for server, _ in found:
        server.close()
    handle.cancel()
    handle.wait_for_end(30)


@given(data=st.data())
def test_no_request_meets_a_defect(servers, data):
    ports, job_id = servers
    for _ in range(10):
        port, routes = data.draw(st.sampled_from(ports))
        route = data.draw(st.sampled_from(routes))
        method = data.draw(
            st.one_of(st.just(route.method), st.sampled_from(["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "A"]))
        )
        filled = re.sub(":jobid", lambda _: data.draw(st.one_of(st.just(job_id), JUNK)), route.path)
        filled = re.sub(r":\w+|\*", lambda _: data.draw(JUNK), filled)
        query = "&".join(f"{name}={value}" for name, value in data.draw(QUERY).items())
        sent = (filled + ("?" + query if query else "")).encode("utf-8", "replace")
        target = re.sub(rb"[\x00-\x20\x7f-\xff#]", lambda m: b"%%%02x" % m[0][0], sent).decode()
        status, content = ask(port, method, target, data.draw(BODY))
        assert status < 500, (method, target, content)
        if status >= 400 and method != "HEAD":
            assert json.loads(content)["errors"][0]


def ask(port, method, target, body):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        link.request(method, target, body)
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def test_the_description_names_every_path(servers):
    for port, routes in servers[0]:
        status, content = ask(port, "GET", "/openapi.json", None)
        paths = json.loads(content)["paths"]
        assert status == 200
        for route in routes:
            name = re.sub(r":(\w+)", r"{\1}", route.path).replace("*", "{rest}")
            assert route.is_public or route.method.lower() in paths[name], route.path


def test_the_description_names_the_schema_of_every_answer(servers):
    for port, routes in servers[0]:
        found = json.loads(ask(port, "GET", "/openapi.json", None)[1])
        for route in routes:
            if route.is_public:
                continue
            name = re.sub(r":(\w+)", r"{\1}", route.path).replace("*", "{rest}")
            assert f"{route.method} {name}" in ANSWERS, "write the shape of the answer in rest/answer_shapes.py"
            (content,) = found["paths"][name][route.method.lower()]["responses"]["2XX"]["content"].values()
            schema = content["schema"]["$ref"].removeprefix("#/components/schemas/")
            assert found["components"]["schemas"][schema] == schema_of(ANSWERS[f"{route.method} {name}"])
