"""Metrics that a job takes on request: latencies from source to operator, accesses to state, RocksDB's properties."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.config.options.rocksdb import COUNTERS
from ekorn.config.settings.fields import read_settings
from ekorn.config.settings.metric_settings import LatencySettings, state_latency_settings
from ekorn.config.settings.rocksdb_settings import RocksDBSettings, rocksdb_settings
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.driver.statistics.mark_latencies import MarkLatencies, MarkPath
from ekorn.errors import ConfigurationError
from ekorn.functions.record_functions import AggregateFunction
from ekorn.metrics.histogram import ValueHistogram
from ekorn.metrics.reports import Report, combined
from ekorn.operators.epoch import Ack
from ekorn.reporters.prometheus_text import prometheus_text
from ekorn.reporters.samples import samples_of
from ekorn.rest.known_jobs import KnownJob
from ekorn.rest.metric_answers import job_latencies
from ekorn.state.rocksdb.counter_metrics import counter_metrics
from ekorn.state.rocksdb.store import RocksStore
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_run import on_local_engine
from tests.driver.submitted_jobs import start_locally
from tests.live_jobs import until


def test_a_histogram_is_of_the_latest_values_and_counts_all():
    histogram = ValueHistogram(4)
    assert histogram.values() == {"count": 0}
    for value in (100, 1, 2, 3, 4):
        histogram.update(value)
    found = histogram.values()
    assert (found["count"], found["min"], found["max"], found["mean"], found["p999"]) == (5, 1, 4, 2.5, 4)


def test_histograms_of_subtasks_are_combined_by_their_bounds():
    one, other, empty = ValueHistogram(), ValueHistogram(), ValueHistogram()
    one.update(1)
    for value in (5, 9):
        other.update(value)
    found = combined([Report("histogram", each.values()) for each in (one, other, empty)])
    assert (found["count"], found["min"], found["max"], found["mean"], found["p99"]) == (3, 1, 9, 5.0, 9)
    assert combined([Report("histogram", empty.values())]) == {"count": 0}


# --------------------------------------------------------------------------------------- from source to operator


def two_sources() -> Any:
    """Draw a job of two sources, the second of parallelism 2, whose union is keyed."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    one = env.from_sequence(1, 9).set_parallelism(1).uid("one")
    other = env.from_sequence(1, 9).uid("other")
    one.union(other).key_by(lambda v: v).map(lambda v: v).uid("counted").print()
    return drawn_job(env)


def paths(granularity: Any) -> set[tuple[bool, int | None, int]]:
    graph, _ = two_sources()
    latencies = MarkLatencies(graph, LatencySettings(1000, granularity))
    acks = [Ack(vertex.id, index, 1, ended_ms=150) for vertex in graph.vertices for index in range(vertex.parallelism)]
    latencies.add(acks, 100.0, 0.0)
    keyed = graph.vertices[-1].operators[0].id
    assert {each.values()["max"] for each in latencies.by_path.values()} == {50.0}
    return {
        (path.source_id is not None, path.source_subtask, path.subtask)
        for path in latencies.by_path
        if path.operator_id == keyed
    }


def test_latencies_tell_sources_and_their_subtasks_apart_as_asked():
    assert paths("single") == {(False, None, 0), (False, None, 1)}
    assert paths("operator") == {(True, None, 0), (True, None, 1)}
    assert paths("subtask") == {(True, source, index) for source in (0, 1) for index in (0, 1)}


def test_latencies_are_taken_at_their_interval_and_never_unless_asked_for():
    graph, settings = two_sources()
    ack = Ack(graph.vertices[-1].id, 0, 1, ended_ms=1000)
    latencies = MarkLatencies(graph, LatencySettings(500))
    for now_s in (0.0, 0.4, 0.5, 0.9):
        latencies.add([ack], 990.0, now_s)
    assert {each.values()["count"] for each in latencies.by_path.values()} == {2}
    clock = ManualClock(1000)
    statistics = JobStatistics(graph, settings, clock)
    statistics.epoch([ack], 10.0)
    assert statistics.latencies.by_path == {}


def test_the_variables_of_a_path_are_flinks():
    assert MarkPath("s", 1, "o", 2).variables() == {
        "source_id": "s",
        "source_subtask_index": "1",
        "operator_id": "o",
        "operator_subtask_index": "2",
    }
    assert MarkPath(None, None, "o", 2).variables() == {"operator_id": "o", "operator_subtask_index": "2"}


# ---------------------------------------------------------------------------------------------- accesses to state


class Summed(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, one, other):
        return one + other


class UsesEveryKind(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("v", Types.LONG()))
        self.list = runtime_context.get_list_state(ListStateDescriptor("l", Types.LONG()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("m", Types.LONG(), Types.LONG()))
        self.reduced = runtime_context.get_reducing_state(ReducingStateDescriptor("r", max, Types.LONG()))
        self.sum = runtime_context.get_aggregating_state(AggregatingStateDescriptor("a", Summed(), Types.LONG()))

    def process_element(self, value, ctx):
        self.value.update(value=(self.value.value() or 0) + 1)  # by name, as users may
        self.list.add(value)
        self.list.add_all([value])
        self.list.update(list(self.list)[-2:])
        self.map.put(value, value)
        self.map.put_all({value: value})
        self.map[value] = self.map[value]
        found = value in self.map and not self.map.is_empty()
        listed = sorted(self.map.items()), sorted(self.map.keys()), sorted(self.map.values())
        self.map.remove(value)
        self.reduced.add(value)
        self.sum.add(value)
        self.list.clear()
        yield self.value.value(), found, listed, self.reduced.get(), self.sum.get(), list(self.list.get())


class AsksWithEveryRecord(KeyedProcessFunction):
    def open(self, runtime_context):
        self.context = runtime_context

    def process_element(self, value, ctx):
        state = self.context.get_state(ValueStateDescriptor("v", Types.LONG()))
        state.update((state.value() or 0) + 1)
        yield state.value()


def run(backend: str, keys: dict[str, str], function: Any = None) -> tuple[list[Any], dict[str, Any]]:
    """Run a job to its end; return its results and its metrics."""
    configuration = Configuration.from_dict({"state.backend.type": backend} | keys)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    stream = env.from_collection(list(range(40)), Types.LONG()).key_by(lambda n: n % 4, Types.LONG())
    results = stream.process(function or UsesEveryKind()).name("uses").uid("uses")
    with on_local_engine(), results.execute_and_collect() as records:
        found = list(records)
        return found, records.job_client.get_metrics()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_accesses_to_state_of_every_kind_are_timed_and_change_nothing(backend):
    plain, untimed = run(backend, {})
    timed, metrics = run(
        backend, {"state.latency-track.keyed-state-enabled": "true", "state.latency-track.sample-interval": "10"}
    )
    assert timed == plain and len(plain) == 40
    assert not any("Latency" in name for name in untimed)
    accesses = {
        "v": ("value", ["Get", "Update"]),
        "l": ("list", ["Add", "AddAll", "Update", "Clear", "Get"]),
        "m": (
            "map",
            ["Get", "Put", "PutAll", "Remove", "Contains", "EntriesInit", "KeysInit", "ValuesInit", "IsEmpty"],
        ),
        "r": ("reducing", ["Get", "Add"]),
        "a": ("aggregating", ["Get", "Add"]),
    }
    for name, (kind, kinds) in accesses.items():
        for access in kinds:
            at = f"uses.0.state_name.{name}.{kind}State{access}Latency"
            assert metrics[f"{at}.count"] >= 4, at
            assert metrics[f"{at}.p99"] > 0


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_function_that_asks_for_its_state_with_every_record_is_timed_as_often_as_others(backend, caplog):
    keys = {"state.latency-track.keyed-state-enabled": "true", "state.latency-track.sample-interval": "10"}
    found, metrics = run(backend, keys, AsksWithEveryRecord())
    assert found == [n // 4 + 1 for n in range(40)]
    assert metrics["uses.0.state_name.v.valueStateUpdateLatency.count"] == 4
    assert "registered already" not in caplog.text


def test_the_name_of_a_state_may_be_a_part_of_the_metrics_name():
    keys = {
        "state.backend.latency-track.keyed-state-enabled": "true",
        "state.backend.latency-track.state-name-as-variable": "false",
    }
    assert "uses.0.v.valueStateGetLatency.count" in run("hashmap", keys)[1]


def test_the_settings_are_read_by_flinks_keys_and_off_unless_set():
    assert state_latency_settings(Configuration()) is None
    assert read_settings(LatencySettings, Configuration()) == LatencySettings(0, "operator", 128)
    given = {"metrics.latency.interval": "2 s", "metrics.latency.granularity": "subtask"}
    assert read_settings(LatencySettings, Configuration.from_dict(given)) == LatencySettings(2000, "subtask", 128)
    with pytest.raises(ConfigurationError, match="sample-interval"):
        keys = {"state.latency-track.keyed-state-enabled": "true", "state.latency-track.sample-interval": "0"}
        state_latency_settings(Configuration.from_dict(keys))


# -------------------------------------------------------------------------------------------- RocksDB's properties


def test_properties_of_rocksdb_are_metrics_of_the_operator_by_flinks_keys():
    keys = {
        f"state.backend.rocksdb.metrics.{name}": "true"
        for name in ("estimate-num-keys", "num-entries-active-mem-table", "num-files-at-level", "block-cache-capacity")
    }
    _, metrics = run("rocksdb", keys)
    assert metrics["uses.0.default.rocksdb.block-cache-capacity"] > 0
    levels = [name for name in metrics if name.startswith("uses.0.default.rocksdb.num-files-at-level")]
    assert len(levels) == 7
    assert "uses.0.default.rocksdb.estimate-num-keys" in metrics
    assert "uses.0.default.rocksdb.background-errors" not in metrics, "only what was asked for"


def test_counters_of_rocksdb_are_metrics_of_the_operator_by_flinks_keys():
    wanted = ("bytes-written", "compaction-read-bytes", "bytes-read")
    keys = {f"state.backend.rocksdb.metrics.{name}": "true" for name in wanted}
    _, metrics = run("rocksdb", keys)
    names = {name for name in metrics if name.startswith("uses.0.rocksdb.")}
    assert names == {f"uses.0.rocksdb.{name}" for name in ("bytes_written", "compact_read_bytes", "bytes_read")}


def test_the_counters_of_a_store_count_what_is_read_and_written(tmp_path):
    store = RocksStore(str(tmp_path / "counted"), RocksDBSettings(counters=("bytes-written", "bytes-read")))
    batch = store.batch()
    batch.put(b"12345678", b"value")
    batch.done()
    store.get(b"12345678")
    metrics = counter_metrics(("bytes-written", "bytes-read", "stall-micros"), store.counters)
    written, read, stalled = (each() for each in metrics.values())
    assert written > len(b"12345678value")
    assert (read, stalled) == (len(b"value"), 0)
    store.close()
    silent = RocksStore(str(tmp_path / "silent"), RocksDBSettings())
    assert silent.counters() == {}, "statistics are off unless a counter is asked for"
    silent.close()


@pytest.mark.parametrize("key", COUNTERS)
def test_rocksdb_has_a_counter_for_each_of_flinks_keys(key, tmp_path):
    store = RocksStore(str(tmp_path / "counted"), RocksDBSettings(counters=(key,)))
    assert COUNTERS[key] in store.counters()
    store.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("column-family-as-variable", "share one column family"),
        ("estimate-num-key", "did you mean"),
    ],
)
def test_what_rocksdb_cannot_tell_here_is_refused(name, reason):
    with pytest.raises(ConfigurationError, match=reason):
        rocksdb_settings(Configuration.from_dict({f"state.backend.rocksdb.metrics.{name}": "true"}))


# ----------------------------------------------------------------------------------------------------- as reported


def test_latencies_and_timed_accesses_are_reported_with_flinks_names_and_variables():
    keys = {"metrics.latency.interval": "1 ms", "state.latency-track.keyed-state-enabled": "true"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys)).set_parallelism(1)
    numbers = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(500))
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    stream.key_by(lambda n: n % 4, Types.LONG()).process(UsesEveryKind()).name("uses").uid("uses")
    handle = start_locally(env, "kinds")
    try:
        until(lambda: handle.progress().epochs > 2 and handle.progress().records_read > 20)
        assert handle.view.statistics is not None
        job = KnownJob.of(handle)
        source, operator = (vertex.operators[0].id for vertex in job.vertices)
        latencies = job_latencies(job)
        at = f"latency.source_id.{source}.operator_id.{operator}.operator_subtask_index.0.latency"
        assert latencies[f"{at}_count"] > 0 and latencies[f"{at}_p99"] >= latencies[f"{at}_min"] >= 0
        text = prometheus_text(samples_of([job]))
        name = "flink_taskmanager_job_latency_source_id_operator_id_operator_subtask_index_latency"
        assert f"{name}_count{{" in text and f'operator_id="{operator}"' in text and 'quantile="0.99"' in text
        assert "flink_taskmanager_job_task_operator_state_name_v_valueStateGetLatency_count{" in text
    finally:
        handle.cancel()
        handle.results.wait_for_end(30)
