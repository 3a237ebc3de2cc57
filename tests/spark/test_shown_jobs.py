"""A job on Spark as the web server and the reporters show it: figures, checkpoints, stacks, logs and state."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.rest.driver_web import WEB
from tests import live_jobs
from tests.live_jobs import until
from tests.rest.conftest import Caller
from tests.rest.shapes import READING, misfits
from tests.servers.ports import free_ports

COUNT = ValueStateDescriptor("count", Types.LONG())
COUNT.set_queryable("count")


class SlowCount(KeyedProcessFunction):
    """Counts the records of each key, and says once that it has begun."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)
        self.seen = runtime_context.get_metrics_group().counter("seen")
        logging.getLogger("of.the.user").warning("counting begins")

    def process_element(self, value: Any, ctx: Any) -> Any:
        time.sleep(0.001)
        self.seen.inc()
        self.count.update((self.count.value() or 0) + 1)
        return ()


def highest(history: dict[str, Any]) -> float:
    return max((value for series in history["series"] for value in series["values"] if value is not None), default=0)


def names_in(node: dict[str, Any]) -> list[str]:
    return [node["name"], *(name for child in node["children"] for name in names_in(child))]


def test_the_web_server_and_the_reporters_show_a_job_and_its_slots(tmp_path, runtime_dir):
    (port,) = free_ports(1)
    env = live_jobs.environment(
        tmp_path / "checkpoints",
        interval_ms=300,
        ekorn__web="auto",
        queryable_state__enable="true",
        queryable_state__proxy__ports="0",
        metrics__latency__interval="1 ms",
        rest__flamegraph__num_samples="20",
        rest__flamegraph__delay_between_samples="10 ms",
        rest__flamegraph__refresh_interval="0 ms",
        metrics__reporter__prom__factory__class="org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        metrics__reporter__prom__port=port,
        metrics__reporter__lines__factory__class="ekorn.JsonLinesReporterFactory",
        metrics__reporter__lines__file=tmp_path / "metrics.jsonl",
        metrics__reporter__lines__interval="1 s",
    )
    endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(400))
    numbers = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()).uid("numbers")
    numbers.key_by(lambda n: n % 5, Types.LONG()).process(SlowCount()).uid("counted").name("counted")
    client = env.execute_async("shown")
    try:
        at = f"/jobs/{client.get_job_id()}"
        assert WEB.address is not None
        token = (Path(runtime_dir) / "web.token").read_text().strip()
        caller = Caller(int(WEB.address.rpartition(":")[2]), token)
        until(lambda: client.get_progress().checkpoints_completed > 1)

        details = caller.get(at)
        assert not misfits(READING["/jobs/{jobid}"], details) and details["state"] == "RUNNING"
        source, counted = (vertex["id"] for vertex in details["vertices"])
        until(lambda: caller.get(f"{at}/metric-history")["points"])
        assert caller.get(f"{at}/metric-history")["points"][-1]["slotMemory"] > 1 << 20
        until(lambda: highest(caller.get(f"{at}/vertices/{counted}/metric-history?get=counted.seen&agg=sum")) > 0)
        assert caller.get(f"{at}/checkpoints")["counts"]["completed"] > 1
        latency = f"latency.source_id.{source}.operator_id.{counted}.operator_subtask_index.0.latency_p99"
        (found,) = caller.get(f"{at}/metrics?get={latency}")
        assert float(found["value"]) > 0

        def is_sampled() -> bool:
            root = caller.get(f"{at}/vertices/{counted}/flamegraph").get("data")
            return root is not None and any("SlowCount.process_element" in name for name in names_in(root))

        until(is_sampled)
        (slot,) = [each["id"] for each in caller.get("/taskmanagers")["taskmanagers"]]
        (log,) = caller.get(f"/taskmanagers/{slot}/logs")["logs"]
        assert b"counting begins" in caller.get(f"/taskmanagers/{slot}/logs/{log['name']}")
        entries = caller.get(f"{at}/state/count?key=1&key=7")["entries"]
        assert [each["found"] for each in entries] == [True, False] and entries[0]["value"] > 0
        assert b"<title>Ekorn</title>" in caller.get("/")

        text = Caller(port, token).get("/metrics").decode()
        assert "flink_taskmanager_job_task_numRecordsIn{" in text and 'job_name="shown"' in text
        lines = tmp_path / "metrics.jsonl"
        until(lambda: lines.exists() and lines.read_text().count("\n") > 1)
        assert json.loads(lines.read_text().splitlines()[0])
    finally:
        client.cancel().result()
        client.get_job_execution_result().exception(60)
        WEB.close()
