"""What several tests of this folder run: a small job whose every output is known, and waiting for somebody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tamias.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from tamias.datastream import (
    DataStream,
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from tamias.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tamias.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from tamias.driver.submit import jobs_submitted_by, submit
from tamias.graph.job_graph import JobGraph
from tamias.testing.process_engine import ProcessEngine

WAIT_S = 60.0


def environment(
    directory: Path | str | None = None,
    *,
    parallelism: int = 1,
    interval_ms: int = 10,
    restarts: int = 0,
    **keys: Any,
) -> StreamExecutionEnvironment:
    """An environment with retained checkpoints; `keys` are configuration keys, `__` for a dot and `_` for a dash."""
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), str(value))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    strategy = RestartStrategies.fixed_delay_restart(restarts, 0) if restarts else RestartStrategies.no_restart()
    env.set_restart_strategy(strategy)
    if directory is not None:
        env.enable_checkpointing(interval_ms)
        config = env.get_checkpoint_config()
        config.set_checkpoint_storage_dir(str(directory))
        config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    return env


def generated(env: StreamExecutionEnvironment, records: int | None, per_second: float = 1e9) -> DataStream:
    """0, 1, 2, ... at a rate, read by one subtask so that their order is one order."""
    source = DataGeneratorSource(lambda n: n, records, RateLimiterStrategy.per_second(per_second))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    return numbers.uid("numbers").set_parallelism(1)


class Tally(KeyedProcessFunction):
    """A count, a list and a map for each key: what is put out tells of all three."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.LONG()))
        self.parities = runtime_context.get_map_state(MapStateDescriptor("parities", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        recent = [*(self.recent.get() or ()), value][-3:]
        self.recent.update(recent)
        self.parities.put(value % 2, (self.parities.get(value % 2) or 0) + 1)
        yield ctx.get_current_key(), value, count, sum(recent), sum(self.parities.values())


def tallied(stream: DataStream, keys: int) -> DataStream:
    return stream.key_by(lambda n: n % keys).process(Tally()).uid("tally").name("tally")


def expected_tally(records: int, keys: int) -> list[tuple[int, int, int, int, int]]:
    """What `tallied` puts out of 0, 1, 2, ..."""
    found = []
    for n in range(records):
        so_far = range(n % keys, n + 1, keys)
        found.append((n % keys, n, len(so_far), sum(so_far[-3:]), len(so_far)))
    return found


@contextmanager
def engines(make: Callable[[JobGraph], ProcessEngine]) -> Iterator[list[ProcessEngine]]:
    """Jobs run on engines made like this; they are listed."""
    made: list[ProcessEngine] = []

    def engine_for(settings: Any) -> Callable[[JobGraph], ProcessEngine]:
        def one(graph: JobGraph) -> ProcessEngine:
            made.append(make(graph))
            return made[-1]

        return one

    with jobs_submitted_by(partial(submit, engine_for=engine_for)):
        yield made


def until(condition: Callable[[], object], within_s: float = WAIT_S) -> None:
    """Wait for what another thread or process does; it must come."""
    limit = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < limit, "what was waited for did not come"
        time.sleep(0.01)  # another's doing: there is nothing to wait on
