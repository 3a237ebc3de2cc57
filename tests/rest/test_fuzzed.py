"""Requests that nobody would write: every answer is an answer or a refusal, never a defect of the server."""

import http.client
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.rest.driver_web import driver_routes
from ekorn.rest.known_jobs import KnownJobs, flink_id
from ekorn.rest.operations import Operations
from ekorn.service.api.service_api import service_routes
from ekorn.service.jobs.bundles import make_bundle
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_service import JobService
from ekorn.web.gate import Gate
from ekorn.web.http_server import WebServer, tcp_socket, unix_socket
from ekorn.web.routes import Route
from tests.driver.submitted_jobs import start_locally
from tests.live_jobs import environment, generated, tallied, until
from tests.rest.shapes import ANSWERS

NAMES = [
    "target-directory", "targetDirectory", "cancel-job", "drain", "formatType", "triggerId", "savepoint-path",
    "programArgsList", "flinkConfiguration", "parallelism", "savepointPath", "jobId", "slotMemory", "claimMode",
    "restoreMode", "entryClass", "allowNonRestoredState", "submissionId", "checkpointType", "program", "keys",
]  # fmt: skip
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=5),
    st.sampled_from(["NATIVE", "f" * 32, "", "\0", "/dev/null/none", "CLAIM", "FULL"]),
)  # fmt: skip
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
JUNK = st.one_of(
    st.sampled_from(["0", "1", "-1", "9" * 40, "%00", "..", "%2e%2e", "%ff", "\u0661", "metrics", "*", ":jobid"]),
    st.text(max_size=10),
)
QUERY = st.dictionaries(
    st.sampled_from(
        [
            "get", "agg", "subtasks", "jobs", "taskmanagers", "mode", "maxExceptions", "failureLabelFilter", "offset",
            "digest", "name", "type", "subtaskindex", "since", "points", "key", "parallelism", "slots",
            "targetDirectory", "programArg", "entry-class", "savepointPath", "allowNonRestoredState",
            "includeSerializedValue", "x",
        ]
    ),
    st.one_of(JUNK, st.sampled_from(["numRecordsIn", "sum,max", "0-1", "FULL", "true", "cancel"])),
    max_size=4,
)  # fmt: skip
BODY = st.one_of(
    st.none(),
    st.binary(max_size=30),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4).map(lambda fields: json.dumps(fields).encode()),
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "Authorization", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "Origin", "Referer",
            "Sec-Fetch-Site", "Expect", "Range", "If-None-Match", "Connection", "Cookie", "X-Junk",
        ]
    ),
    st.one_of(
        st.sampled_from(["", "Bearer", "Bearer x", "gzip", "*/*", "null", "close", "100-continue", "bytes=5-1", "="]),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=12),
    ),
    max_size=3,
)  # fmt: skip


CANARY = "the-canary-sings-only-to-its-owner"
TOKEN = b"a-token-that-is-long-enough"


class Fuzzed(NamedTuple):
    """A server, and what the variable parts of its paths may be filled with: the names of real things."""

    port: int
    routes: list[Route]
    real: dict[str, str]
    gated_port: int  # where the same routes ask for a token
    canary: Path  # a file of the server's user, which no answer may tell


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A driver's server with running jobs, and that of a service which passes requests on to this driver."""
    folder = tmp_path_factory.mktemp("fuzzed")
    known, handles = KnownJobs(), []
    for name in ("kept", "ended"):
        env = environment(folder / name, parallelism=2)
        tallied(generated(env, None, 500), 5)
        handles.append(start_locally(env))
        known.add(handles[-1])
    until(lambda: all(each.progress().checkpoints_completed > 0 for each in handles))
    kept, ended = (str(each.job_id) for each in handles)
    of_driver = driver_routes(known, Operations())
    at_socket = WebServer(unix_socket(str(folder / "rest")), driver_routes(known, Operations()), Gate())
    service = JobService(ServiceSettings(str(folder / "service"), WebSettings(port=0), slots=1))
    (folder / "program.py").write_text("raise SystemExit")
    bundle = make_bundle(str(folder / "program.py"))
    (folder / "bundle").write_bytes(bundle.data)
    program = service.add_program(folder / "bundle", bundle.digest, bundle.script)
    for job_id in (kept, ended):
        record = JobRecord(job_id, "job", program, "program.py", phase="STARTED", socket=str(folder / "rest"))
        service.store.save(record)
    service = JobService(service.settings)
    job = known.find(kept)
    real = {
        "jobid": kept,
        "applicationid": kept,
        "vertexid": flink_id(job.vertices[0]),
        "subtaskindex": "0",
        "attempt": "0",
        "checkpointid": str(job.statistics.checkpoints.records()[-1].checkpoint_id),
        "taskmanagerid": job.slot_id(0),
        "jarid": program,
        "ended": ended,
    }
    found = [at_socket]
    at_socket.start()
    (folder / "canary").write_text(CANARY)
    fuzzed = []
    for routes in (of_driver, service_routes(service)):
        found += [WebServer(tcp_socket("127.0.0.1", 0), routes, gate) for gate in (Gate(), Gate(TOKEN))]
        found[-1].start()
        found[-2].start()
        fuzzed.append(Fuzzed(found[-2].port, list(routes), real, found[-1].port, folder / "canary"))
    yield fuzzed
    for server in found:
        server.close()
    for handle in handles:
        handle.cancel()
        handle.results.wait_for_end(30)


ENDING = {"/jobs/:jobid", "/jobs/:jobid/stop", "/jobs/:jobid/savepoints", "/applications/:applicationid/cancel"}
STARTING = {"/jars/:jarid/plan", "/jobs/:jobid/upgrade"}  # a real program would run, in a process of its own


def filled(route, real, method, data):
    """Return the path of a route with real and with invented names."""

    def name(found):
        wanted = found[0].lstrip(":")
        if wanted in ("jobid", "applicationid") and method != "GET" and route.path in ENDING:
            return real["ended"]  # the other job goes on
        if wanted not in real or (wanted == "jarid" and (route.path in STARTING or method == "DELETE")):
            return data.draw(JUNK)
        return data.draw(st.one_of(st.just(real[wanted]), st.just(real[wanted]), JUNK))

    return re.sub(r":\w+|\*", name, route.path)


@given(data=st.data())
def test_no_request_meets_a_defect(servers, data):
    for _ in range(10):
        server = data.draw(st.sampled_from(servers))
        route = data.draw(st.sampled_from(server.routes))
        method = data.draw(
            st.one_of(st.just(route.method), st.sampled_from(["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "A"]))
        )
        query = "&".join(f"{name}={value}" for name, value in data.draw(QUERY).items())
        path = filled(route, server.real, method, data)
        sent = (path + ("?" + query if query else "")).encode("utf-8", "replace")
        target = re.sub(rb"[\x00-\x20\x7f-\xff#]", lambda m: b"%%%02x" % m[0][0], sent).decode()
        status, content = ask(server.port, method, target, data.draw(BODY), data.draw(HEADERS))
        assert status < 500, (method, target, content)
        if status >= 400 and method != "HEAD":
            assert json.loads(content)["errors"][0]


def with_real_names(path, real, left=""):
    """Return a path with real names in its variable parts, except for one that is left."""
    return re.sub(r":(\w+)|\*", lambda at: left if at[0] == left else real.get(at[1] or "", "x"), path)


def test_no_path_answers_without_the_token(servers):
    for server in servers:
        for route in server.routes:
            if route.is_public:
                continue
            path = with_real_names(route.path, server.real)
            for headers in ({}, {"Authorization": f"Bearer {TOKEN.decode()}x"}):
                status, content = ask(server.gated_port, route.method, path, b"{}", headers)
                assert status == 401 and list(json.loads(content)) == ["errors"], (route.method, path)


def test_no_part_of_a_path_reaches_a_file_outside(servers):
    for server in servers:
        way = os.path.relpath(server.canary, "/").replace("/", "%2f")
        tries = [f"{up * 12}{way}" for up in ("../", "..%2f", "..%252f")] + [f"%2f{way}"]
        for route in server.routes:
            for name in re.findall(r":\w+|\*", route.path):
                for tried in tries:
                    target = with_real_names(route.path, server.real, left=name).replace(name, tried, 1)
                    status, content = ask(server.port, route.method, target, None)
                    assert status < 500 and CANARY.encode() not in content, (route.method, target)


def ask(port, method, target, body, headers=None):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        link.request(method, target, body, {name: value.encode("latin-1") for name, value in (headers or {}).items()})
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def test_the_description_names_every_path(servers):
    for port, routes, *_ in servers:
        status, content = ask(port, "GET", "/openapi.json", None)
        paths = json.loads(content)["paths"]
        assert status == 200
        for route in routes:
            name = re.sub(r":(\w+)", r"{\1}", route.path).replace("*", "{rest}")
            assert route.is_public or route.method.lower() in paths[name], route.path


def test_the_description_names_the_schema_of_every_answer(servers):
    for port, routes, *_ in servers:
        found = json.loads(ask(port, "GET", "/openapi.json", None)[1])
        for route in routes:
            if route.is_public:
                continue
            name = re.sub(r":(\w+)", r"{\1}", route.path).replace("*", "{rest}")
            assert f"{route.method} {name}" in ANSWERS, "write the schema of the answer in rest/answers.json"
            (content,) = found["paths"][name][route.method.lower()]["responses"]["2XX"]["content"].values()
            schema = content["schema"]["$ref"].removeprefix("#/components/schemas/")
            assert found["components"]["schemas"][schema] == ANSWERS[f"{route.method} {name}"]
