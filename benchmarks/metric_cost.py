"""What metrics and reporters cost: python -m benchmarks.metric_cost

A keyed count with one state read and one write per record runs in this process, again and again in turns: as it is by
default, with two reporters at an interval of a second, and with all metrics that are taken on request. Printed are

- the share of the CPU time that a run spends in the code of metrics and reporters, which is timed call by call; and
- the CPU time per record against that of the default, the median of the pairs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.driver.statistics.job_metrics import JobMetrics
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.metrics.metricbase import MetricGroup
from ekorn.reporters.running import JobReporters
from ekorn.testing.local_run import on_local_engine

RECORDS = 1_500_000
KEYS = 1000
ROUNDS = 7
VARIANTS = ("default", "reporters", "on request")


class Run(NamedTuple):
    """One run: CPU seconds of the process, and those of them in the code of metrics."""

    cpu_s: float
    metrics_s: float


class Count(KeyedProcessFunction):
    """Counts the records of each key."""

    def open(self, runtime_context: Any) -> None:
        """Ask for the state."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """Count a record."""
        self.count.update((self.count.value() or 0) + 1)
        return ()


def settings_of(variant: str, folder: str) -> dict[str, str]:
    """Return the settings of a variant."""
    if variant == "default":
        return {}
    if variant == "on request":
        return {"metrics.latency.interval": "1 s", "state.latency-track.keyed-state-enabled": "true"}
    return {
        "metrics.reporter.json.factory.class": "ekorn.JsonLinesReporterFactory",
        "metrics.reporter.json.file": f"{folder}/metrics.jsonl",
        "metrics.reporter.json.interval": "1 s",
        "metrics.reporter.log.factory.class": "org.apache.flink.metrics.slf4j.Slf4jReporterFactory",
        "metrics.reporter.log.interval": "1 s",
    }


def run(variant: str, spent: Counter[str]) -> Run:
    """Run the job once."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Configuration.from_dict(settings_of(variant, folder))
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
        numbers = env.from_source(NumberSequenceSource(1, RECORDS), WatermarkStrategy.no_watermarks(), "numbers")
        numbers.key_by(lambda n: n % KEYS, Types.LONG()).process(Count()).print()
        spent.clear()
        started = time.process_time()
        with on_local_engine():
            env.execute("cost of metrics")
        return Run(time.process_time() - started, sum(spent.values()) / 1e9)


def time_calls(owner: type, name: str, spent: Counter[str]) -> None:
    """Let a method add up the CPU time of its calls, those that it makes itself left out."""
    original: Callable[..., Any] = getattr(owner, name)
    label = f"{owner.__name__}.{name}"
    depth = [0]

    def call(*arguments: Any, **named: Any) -> Any:
        depth[0] += 1
        started = time.thread_time_ns()
        try:
            return original(*arguments, **named)
        finally:
            depth[0] -= 1
            if not depth[0]:  # a group reports the groups below it
                spent[label] += time.thread_time_ns() - started

    setattr(owner, name, call)


def main() -> None:
    """Run the variants in turns, and print what they cost."""
    spent: Counter[str] = Counter()
    for owner, name in (
        (JobMetrics, "add"),
        (JobStatistics, "epoch"),
        (MetricGroup, "reports"),
        (JobReporters, "_report"),
    ):
        time_calls(owner, name, spent)
    run("default", spent)  # imports and caches
    rounds = [{variant: run(variant, spent) for variant in VARIANTS} for _ in range(ROUNDS)]
    for variant in VARIANTS:
        share = statistics.median(each[variant].metrics_s / each[variant].cpu_s for each in rounds)
        against = statistics.median(each[variant].cpu_s / each["default"].cpu_s for each in rounds)
        rate = RECORDS / statistics.median(each[variant].cpu_s for each in rounds)
        print(
            f"{variant:>10}: {rate:>9,.0f} records per CPU second, {share:.3%} of it in metrics, "
            f"{against - 1:+.2%} CPU time against the default"
        )


if __name__ == "__main__":
    main()
