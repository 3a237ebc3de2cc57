"""The reporters of ekorn keep the promises of the kit of reporters."""

import json
import logging
import re

import pytest

from ekorn.reporters.local_reporters import JsonLinesReporter, LogReporter
from ekorn.reporters.open_telemetry import OpenTelemetryReporter
from ekorn.reporters.push_gateway import PushGatewayReporter
from ekorn.testing.kits import RecoversFromFailures, ReporterCase, ReporterKit
from tests.reporters.noting_server import noting_server


class FileCase(ReporterCase):
    def __init__(self, folder):
        self.path = folder / "metrics.jsonl"

    def reporter(self):
        return JsonLinesReporter(str(self.path))

    def received(self):
        *_, last = self.path.read_text().splitlines()
        return [each["value"] for each in json.loads(last)["metrics"]]

    def fail(self):
        self.path.unlink()
        self.path.mkdir()

    def recover(self):
        self.path.rmdir()


class TestJsonLines(RecoversFromFailures):
    @pytest.fixture
    def case(self, tmp_path):
        return FileCase(tmp_path)


class LogCase(ReporterCase):
    def __init__(self, caplog):
        self.caplog = caplog

    def reporter(self):
        return LogReporter()

    def received(self):
        text = self.caplog.records[-1].getMessage()
        return [float(value) for value in re.findall(r"\}: (\S+)$", text, re.MULTILINE)]


class TestLog(ReporterKit):
    comparable = staticmethod("{:g}".format)  # the log is for people

    @pytest.fixture
    def case(self, caplog):
        caplog.set_level(logging.INFO, "ekorn.metrics")
        return LogCase(caplog)


class ServerCase(ReporterCase):
    """A server that answers every request with 500 while it fails."""

    def __init__(self, server, make, values_of):
        self.server, self.make, self.values_of = server, make, values_of

    def reporter(self):
        return self.make(self.server.url)

    def received(self):
        bodies = [body for method, _, body in self.server.requests if method != "DELETE"]
        return self.values_of(bodies[-1].decode())

    def fail(self):
        self.server.statuses += [500] * 100

    def recover(self):
        self.server.statuses.clear()


def values_of_text(body):
    return [float(line.rsplit(" ", 1)[1]) for line in body.splitlines() if not line.startswith("#")]


def values_of_json(body):
    (resource,) = json.loads(body)["resourceMetrics"]
    metrics = resource["scopeMetrics"][0]["metrics"]
    return [point["asDouble"] for metric in metrics for point in metric["gauge"]["dataPoints"]]


@pytest.fixture
def server():
    with noting_server() as listening:
        yield listening


class TestPushGateway(RecoversFromFailures):
    @pytest.fixture
    def case(self, server):
        return ServerCase(server, PushGatewayReporter, values_of_text)


class TestOpenTelemetry(RecoversFromFailures):
    @pytest.fixture
    def case(self, server):
        return ServerCase(server, OpenTelemetryReporter, values_of_json)
