"""Metric reporters beside a job: what Prometheus reads, and what push gateway, collector, log and file get."""

import http.client
import json
import logging
import re
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.errors import ConfigurationError
from ekorn.testing.local_run import on_local_engine
from tests.live_jobs import until
from tests.reporters.noting_server import noting_server

FACTORY = {
    "prometheus": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
    "push": "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporterFactory",
    "otel": "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory",
    "log": "org.apache.flink.metrics.slf4j.Slf4jReporterFactory",
    "json": "ekorn.JsonLinesReporterFactory",
}


class Counting(MapFunction):
    def open(self, runtime_context):
        self._seen = runtime_context.get_metrics_group().add_group("shop").counter("orders")

    def map(self, value):
        self._seen.inc()
        return value


class Running:
    """A job with one reporter."""

    def __init__(self, kind, **keys):
        given = {f"metrics.reporter.r.{key}": value for key, value in keys.items()}
        given |= {"metrics.reporter.r.factory.class": FACTORY[kind], "metrics.reporter.r.interval": "100 ms"}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given)).set_parallelism(2)
        endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(1000))
        numbers = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers")
        numbers.map(Counting()).name('say "hi"').filter(lambda n: False).print()
        with on_local_engine():
            self.client = env.execute_async("counted")

    def wait_for_records(self):
        """Wait until both subtasks have counted records."""
        until(lambda: self.client.get_progress().records_read > 100)

    def end(self):
        self.client.cancel().result(30)
        until(lambda: self.client.get_job_status().result().is_globally_terminal_state())
        until(lambda: not any(thread.name.startswith("ekorn-reporter") for thread in threading.enumerate()))


@pytest.fixture
def run(runtime_dir):
    started = []

    def start(kind, **keys):
        started.append(Running(kind, **keys))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def server():
    with noting_server() as listening:
        yield listening


def address_in(log):
    (found,) = re.findall(r"Prometheus reads (http://\S+)", log)
    return found


def scrape(address, token=None):
    parts = urlsplit(address)
    link = http.client.HTTPConnection(parts.netloc, timeout=30)
    link.request("GET", parts.path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    answer = link.getresponse()
    content = answer.read().decode()
    link.close()
    return answer, content


def test_prometheus_reads_flinks_names_with_the_token_only(run, runtime_dir, caplog):
    with caplog.at_level(logging.INFO, "ekorn"):
        running = run("prometheus", port="0")
    address = address_in(caplog.text)
    assert scrape(address)[0].status == 401
    token = (runtime_dir / "web.token").read_text().strip()
    counted = re.compile(r"^flink_taskmanager_job_task_operator_shop_orders\{(.*)\} ([1-9]\d*)$", re.M)
    until(lambda: len(counted.findall(scrape(address, token)[1])) == 2)
    answer, text = scrape(address, token)
    assert answer.getheader("Content-Type").startswith("text/plain; version=0.0.4")
    job = f'job_id="{running.client.get_job_id()}",job_name="counted"'
    restarts = re.search(r"^flink_jobmanager_job_numRestarts\{(.*)\} 0$", text, re.M)
    assert restarts and job in restarts[1]
    assert re.search(r"^flink_jobmanager_Status_JVM_Memory_Heap_Used\{host=[^}]*\} [1-9]\d+$", text, re.M)
    orders = counted.findall(text)
    assert len(orders) == 2
    assert all('operator_name="say \\"hi\\""' in labels for labels, _ in orders)
    assert {index for labels, _ in orders for index in re.findall(r'subtask_index="(\d)"', labels)} == {"0", "1"}
    for name in ("numRecordsIn", "numRecordsInPerSecond", "accumulateBusyTimeMs", "currentInputWatermark"):
        assert len(re.findall(rf"^flink_taskmanager_job_task_{name}\{{", text, re.M)) == 2, name
    assert len(re.findall("^# TYPE flink_jobmanager_job_numRestarts gauge$", text, re.M)) == 1
    running.end()
    with pytest.raises(OSError, match="refused"):
        scrape(address, token)


def test_the_next_port_of_a_range_is_taken_and_a_taken_one_fails_the_start(run, runtime_dir, caplog, server):
    taken = server.server_address[1]
    with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{taken}"):
        Running("prometheus", port=str(taken))
    with caplog.at_level(logging.INFO, "ekorn"):
        run("prometheus", port=f"{taken},0")
    assert "Prometheus reads" in caplog.text


def test_a_push_gateway_gets_the_group_and_its_deletion(run, server):
    running = run("push", hostUrl=server.url, jobName="shop ", randomJobNameSuffix="false", groupingKey="zone=a/b")
    until(lambda: len(server.requests) > 1)
    running.end()
    method, path, body = server.requests[0]
    assert (method, path) == ("PUT", "/metrics/job/shop%20/zone/a%2Fb")
    assert b"flink_jobmanager_job_uptime{" in body
    assert server.requests[-1][:2] == ("DELETE", "/metrics/job/shop%20/zone/a%2Fb")


def test_a_collector_gets_gauges_with_attributes(run, server):
    running = run("otel", **{"exporter.endpoint": server.url, "service.name": "shop"})
    until(lambda: len(server.requests) > 1)
    running.wait_for_records()
    running.end()
    method, path, body = server.requests[-1]
    assert (method, path) == ("POST", "/v1/metrics")
    (found,) = json.loads(body)["resourceMetrics"]
    assert {"key": "service.name", "value": {"stringValue": "shop"}} in found["resource"]["attributes"]
    metrics = {metric["name"]: metric["gauge"]["dataPoints"] for metric in found["scopeMetrics"][0]["metrics"]}
    points = metrics["flink.taskmanager.job.task.numRecordsIn"]
    assert len(points) == 2 and all(point["asDouble"] > 0 for point in points)
    assert {"key": "job_name", "value": {"stringValue": "counted"}} in points[0]["attributes"]


def test_a_server_that_fails_is_logged_once_and_the_job_goes_on(run, server, caplog):
    server.statuses += [500, 500, 500]
    with caplog.at_level(logging.WARNING, "ekorn"):
        running = run("push", hostUrl=server.url)
        until(lambda: len(server.requests) > 5)
    assert caplog.text.count("metric reporter r failed: the server answered 500") == 1
    assert not running.client.get_job_status().result().is_globally_terminal_state()


def test_a_file_gets_a_line_per_report_and_the_last_one_at_the_end(run, tmp_path):
    running = run("json", file=str(tmp_path / "metrics.jsonl"))
    until((tmp_path / "metrics.jsonl").exists)
    running.wait_for_records()
    running.end()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)
    records = [each for each in lines[-1]["metrics"] if each["name"] == "numRecordsIn"]
    assert {each["variables"]["subtask_index"] for each in records} == {"0", "1"}
    assert sum(each["value"] for each in records) > 0


def test_the_log_gets_all_metrics(run, caplog):
    with caplog.at_level(logging.INFO, "ekorn.metrics"):
        run("log")
        until(lambda: "numRestarts{counted}: 0" in caplog.text)
        until(lambda: "taskmanager.job.task.numRecordsIn{counted, " in caplog.text)


def test_the_board_for_grafana_asks_for_metrics_that_exist(run, runtime_dir, caplog):
    with caplog.at_level(logging.INFO, "ekorn"):
        run("prometheus", port="0")
    address = address_in(caplog.text)
    token = (runtime_dir / "web.token").read_text().strip()
    board = (Path(__file__).parents[2] / "docs/monitoring/grafana.json").read_text()
    asked = set(re.findall(r"flink_[A-Za-z_]+", board))
    assert asked
    until(lambda: asked <= set(re.findall(r"^# TYPE (\S+) gauge$", scrape(address, token)[1], re.M)))
