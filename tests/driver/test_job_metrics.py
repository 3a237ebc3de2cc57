"""Metrics of functions as the job client sees them: while the job runs, after its end, and after a failure."""

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.common.job_client import JobClient
from ekorn.common.job_status import JobStatus
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import KeyedProcessFunction, MapFunction, ProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.driver.statistics.job_metrics import JobMetrics, Rates, Totals
from ekorn.graph.addresses import SubtaskId
from ekorn.metrics.reports import Report, combined
from ekorn.operators.epoch import Ack
from ekorn.operators.mark import MarkAck
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, start_scripted
from tests.slot.small_job import SOURCE, SUM, graph, summing


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


class Counts(MapFunction):
    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        self.large = group.add_group("sizes", "large").counter("seen")
        self.sizes = group.distribution("size")
        self.events = group.meter("events")
        group.gauge("last", lambda: self.last)
        group.gauge("words", lambda: "no number")
        self.last = 0
        self.variables = group.get_all_variables()

    def map(self, value):
        self.seen.inc()
        self.large.inc(value > 5)
        self.sizes.update(value)
        self.events.mark_event()
        self.last = value
        return value


def metrics_after(env):
    with on_local_engine():
        client = env.execute_async()
        client.get_job_execution_result().result()
        return client.get_metrics()


def test_every_kind_of_metric_by_subtask_and_together():
    env = environment(2)
    env.from_collection([1, 2, 9, 8]).rebalance().map(Counts()).name("count").disable_chaining().print()
    metrics = metrics_after(env)
    assert (metrics["count.0.seen"], metrics["count.1.seen"], metrics["count.seen"]) == (2, 2, 4)
    assert (metrics["count.0.sizes.large.seen"], metrics["count.sizes.large.seen"]) == (1, 2)
    assert (metrics["count.events.count"], metrics["count.1.events.count"]) == (4, 2)
    assert metrics["count.events.rate"] == pytest.approx(4 / 60)
    of_size = {name: metrics[f"count.size.{name}"] for name in ("count", "sum", "min", "max", "mean")}
    assert of_size == {"count": 4, "sum": 20, "min": 1, "max": 9, "mean": 5.0}
    assert metrics["count.0.size.mean"] == 5.0
    assert (metrics["count.0.last"], metrics["count.1.last"], metrics["count.last"]) == (9, 8, 17)
    assert metrics["count.0.words"] == "no number"
    assert "count.words" not in metrics


def test_chains_and_the_job_are_measured_too():
    env = environment(2)
    env.from_collection(range(10)).map(lambda v: v).set_parallelism(1).rebalance().filter(lambda v: v > 6).name(
        "keep"
    ).print()
    metrics = metrics_after(env)
    source = "Source: Collection Source -> Map"
    assert (metrics[f"{source}.numRecordsIn"], metrics[f"{source}.numRecordsOut"]) == (10, 10)
    assert (metrics["keep -> Sink: Print to Std. Out.0.numRecordsIn"]) == 5
    assert metrics["keep -> Sink: Print to Std. Out.currentInputWatermark"] == 2**63 - 1
    assert metrics[f"{source}.busyTimeMs"] > 0
    assert metrics["job.numRestarts"] == metrics["job.numberOfCompletedCheckpoints"] == 0


def test_operators_of_one_name_are_told_apart():
    env = environment()
    env.from_collection([1, 2, 3]).map(Counts()).uid("first").filter(lambda v: v > 1).map(Counts()).print()
    metrics = metrics_after(env)
    seen = {name: value for name, value in metrics.items() if name.endswith(").seen")}
    assert seen.pop("Map (first).seen") == 3
    assert list(seen.values()) == [2]


class WithVariables(ProcessFunction):
    def open(self, runtime_context):
        self.variables = runtime_context.get_metrics_group().add_group("shop", "7").get_all_variables()

    def process_element(self, value, ctx):
        yield self.variables


def test_a_group_knows_where_it_is():
    stream = environment().from_collection([1]).process(WithVariables()).name("where")
    with on_local_engine(), stream.execute_and_collect() as records:
        (variables,) = records
    assert {name: variables[name] for name in ("operator_name", "subtask_index", "shop")} == {
        "operator_name": "where",
        "subtask_index": "0",
        "shop": "7",
    }


def test_metrics_are_seen_while_the_job_runs():
    env = environment()
    source = DataGeneratorSource(lambda n: n, 1 << 60)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "endless").map(Counts()).name("count").filter(
        lambda v: False
    ).print()
    with on_local_engine():
        client = env.execute_async()
        while not client.get_metrics().get("count.seen"):
            assert client.get_job_status().result() in (JobStatus.CREATED, JobStatus.RUNNING)
        before = client.get_metrics()["count.seen"]
        while client.get_metrics()["count.seen"] == before:
            pass
        client.cancel().result()
    assert client.get_metrics()["count.seen"] > before


def test_after_a_failure_metrics_begin_anew():
    configuration = Configuration().set_string("restart-strategy.type", "none")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    source = ScriptedSource([list(range(10))], [2])
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(Counts()).name("count").print()
    run = start_scripted(env, Script(crashes=[Crash("after-epoch", 4)]))
    run.handle.wait(0)
    metrics = run.handle.metrics()
    assert metrics["job.numRestarts"] == 1
    assert metrics["job.numberOfCompletedCheckpoints"] > 0
    assert metrics["count.seen"] == 4, "six records were behind the checkpoint that was restored"


def test_a_client_before_the_first_epoch_knows_of_the_job_alone():
    class Handle:
        def metrics(self):
            return {}

    assert JobClient(Handle()).get_metrics() == {}  # type: ignore[arg-type]


def test_values_of_subtasks_come_together_by_their_kind():
    assert combined([Report("lowest", {"": 5}), Report("lowest", {"": 3})]) == {"": 3}
    assert combined([Report("gauge", {"": True}), Report("gauge", {"": 3})]) == {}
    assert combined([Report("gauge", {"": 1.5}), Report("gauge", {"": 3})]) == {"": 4.5}
    assert combined([Report("gauge", {"": 1}), Report("counter", {"": 3})]) == {}
    empty = {"count": 0, "sum": 0, "min": None, "max": None, "mean": None}
    one = {"count": 2, "sum": 6, "min": 1, "max": 5, "mean": 3.0}
    assert combined([Report("distribution", empty), Report("distribution", one)]) == one
    assert combined([Report("distribution", empty)] * 2) == empty


def test_a_subtask_that_restarts_counts_from_zero_and_the_others_go_on():
    of = graph(summing)
    metrics = JobMetrics(of)
    source, summed = (vertex.name for vertex in of.vertices)

    def counts():
        values = metrics.values()
        names = [f"{chain}.0.{name}" for chain in (source, summed) for name in ("numRecordsIn", "busyTimeMs")]
        return [values.get(name) for name in names]

    def acks():
        return [Ack(subtask.vertex, 0, 0, records_in=3, busy_ms=1.5) for subtask in (SOURCE, SUM)]

    metrics.add(acks())
    metrics.add(acks())
    assert counts() == [6, 3.0, 6, 3.0]
    metrics.restart([SUM])
    assert counts() == [6, 3.0, None, None], "there is no report until the subtask runs again"
    metrics.add(acks())
    assert counts() == [9, 4.5, 3, 1.5]


# ------------------------------------------------------------------------------------------------ totals and rates


def work(**done):
    return MarkAck(SUM.vertex, 0, 0, **done)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def metrics(clock):
    return JobMetrics(graph(summing), clock)


def test_totals_add_up_what_a_subtask_has_reported(metrics):
    assert metrics.totals(SUM) == Totals()
    done = {
        "records_in": 3,
        "records_out": 2,
        "busy_ms": 1.5,
        "blocked_ms": 2.5,
        "aligned_ms": 3.5,
        "deferred_blobs": 4,
    }
    for watermark in (7, 9):
        metrics.add([work(**done, bytes_in=6, bytes_out=5, watermark=watermark)])
    assert metrics.totals(SUM) == Totals(6, 4, 3.0, 5.0, 7.0, 8, 10, 9, bytes_in=12)
    assert metrics.totals(SOURCE) == Totals()
    metrics.restart([SUM])
    assert metrics.totals(SUM) == Totals()


def test_rates_are_those_of_the_last_ten_seconds(metrics, clock):
    assert metrics.rates(SUM) == Rates()
    for _ in range(30):
        clock.advance(1_000)
        metrics.add([work(records_in=100, records_out=50, bytes_out=1_000, busy_ms=250.0, blocked_ms=500.0)])
    assert metrics.rates(SUM) == Rates(100.0, 50.0, 1_000.0, 250.0, 500.0, 250.0)
    assert metrics.rates(SOURCE) == Rates()
    for _ in range(5):
        clock.advance(1_000)
        metrics.add([])
    assert metrics.rates(SUM).records_in == 50.0
    clock.advance(60_000)
    assert metrics.rates(SUM) == Rates(), "the last sample is a minute old, and nothing came since"


def test_a_sample_is_taken_once_a_second(metrics, clock):
    for _ in range(19):
        clock.advance(500)
        metrics.add([work(records_in=10)])
    # Samples of the beginning, and after the reports of 1 s, 2 s, ... 9 s.
    assert metrics.rates(SUM).records_in == 20.0
    clock.advance(500)
    metrics.add([])
    assert metrics.rates(SUM).records_in == 19.0
    clock.advance(500)
    metrics.add([])
    assert metrics.rates(SUM).records_in == pytest.approx((190 - 20) / 9.5)


@pytest.mark.parametrize("apart_s", [1, 4, 15])
def test_the_time_since_the_last_report_is_not_idle_time(metrics, clock, apart_s):
    """Marks are rare behind a slow operator, and subtasks report with marks."""
    for _ in range(3):
        clock.advance(1_000 * apart_s)
        metrics.add([work(busy_ms=100.0 * apart_s, blocked_ms=900.0 * apart_s)])
        assert metrics.rates(SUM)[3:6] == pytest.approx((100.0, 900.0, 0.0))
    clock.advance(900 * apart_s)
    assert metrics.rates(SUM)[3:6] == pytest.approx((100.0, 900.0, 0.0))


def test_the_rates_of_a_job_that_has_just_begun_do_not_explode(metrics):
    metrics.add([work(records_in=5, busy_ms=0.5)])
    assert metrics.rates(SUM) == Rates(50.0, 0.0, 0.0, 5.0, 0.0, 995.0)


def test_the_times_of_a_second_add_up_to_a_second(metrics, clock):
    clock.advance(1_000)
    metrics.add([work(busy_ms=900.0, blocked_ms=400.0)])
    assert metrics.rates(SUM)[3:6] == (900.0, 100.0, 0.0)
    metrics.add([work(busy_ms=900.0)])
    assert metrics.rates(SUM)[3:6] == (1_000.0, 0.0, 0.0)


@pytest.mark.parametrize("after", [{"records_in": 30, "busy_ms": 200.0}, {"records_in": 200, "busy_ms": 30.0}])
def test_a_subtask_that_has_restarted_has_the_rates_since_then(metrics, clock, after):
    clock.advance(1_000)
    metrics.add([work(records_in=100, busy_ms=100.0)])
    clock.advance(1_000)
    metrics.add([])
    clock.advance(9_500)  # the first sample is too old now
    metrics.restart([SUM])
    clock.advance(2_000)
    metrics.add([work(**after)])
    assert metrics.rates(SUM).records_in == pytest.approx(after["records_in"] / 2)


def test_the_metrics_of_a_subtask_have_flinks_names(metrics, clock):
    clock.advance(1_000)
    operator = graph(summing).vertices[SUM.vertex].operators[0]
    done = {
        "records_in": 4,
        "records_out": 2,
        "bytes_in": 12,
        "bytes_out": 8,
        "busy_ms": 250.0,
        "blocked_ms": 125.0,
        "crossed_bytes": 16,
    }
    seen = {(operator.id, "seen"): Report("counter", {"": 3})}
    metrics.add([work(**done, metrics=seen, watermark=9, output_watermark=7)])
    assert metrics.of_subtask(SUM) == {
        f"{operator.name}.seen": 3,
        "numRecordsIn": 4,
        "numRecordsOut": 2,
        "busyTimeMs": 250.0,
        "backPressuredTimeMs": 125.0,
        "alignmentTimeMs": 0.0,
        "alignmentHeldBlobs": 0,
        "numBytesAcrossHosts": 16,
        "currentInputWatermark": 9,
        "currentOutputWatermark": 7,
        "numBytesIn": 12,
        "numBytesOut": 8,
        "numRecordsInPerSecond": 4.0,
        "numRecordsOutPerSecond": 2.0,
        "numBytesInPerSecond": 12.0,
        "numBytesOutPerSecond": 8.0,
        "busyTimeMsPerSecond": 250.0,
        "backPressuredTimeMsPerSecond": 125.0,
        "idleTimeMsPerSecond": 625.0,
        "accumulateBusyTimeMs": 250.0,
        "accumulateBackPressuredTimeMs": 125.0,
    }


def test_the_rates_of_a_subtask_that_restarts_leave_out_the_attempt_before(metrics, clock):
    for _ in range(8):
        clock.advance(1_000)
        metrics.add([work(records_in=100)])
    metrics.restart([SUM])
    for _ in range(9):  # in the end it has read more than the attempt before had
        clock.advance(1_000)
        metrics.add([work(records_in=300, busy_ms=500.0)])
        assert metrics.rates(SUM).records_in == pytest.approx(300.0)
        assert metrics.rates(SUM).busy_ms == pytest.approx(500.0)


def test_the_metrics_of_an_operator_that_is_a_chain_alone_follow_its_name_too():
    def drawn(env):
        env.from_sequence(1, 9).key_by(lambda v: v).reduce(max).name("highest").key_by(lambda v: v).reduce(max).print()

    (alone,) = [vertex for vertex in graph(drawn).vertices if vertex.name == "highest"]
    metrics = JobMetrics(graph(drawn))
    seen = {(alone.operators[0].id, "seen"): Report("counter", {"": 3})}
    metrics.add([Ack(alone.id, 0, 1, records_in=4, metrics=seen)])
    found = metrics.of_subtask(SubtaskId(alone.id, 0))
    assert found["highest.seen"] == 3 and "seen" not in found
    assert found["numRecordsIn"] == 4 and "highest.numRecordsIn" not in found
    assert "seen" not in metrics.of_chain(SubtaskId(alone.id, 0))


def test_the_accumulators_of_a_subtask_are_its_latest_ones(metrics):
    assert metrics.accumulators(SUM) == {}
    metrics.add([work(accumulators={"a": 1})])
    metrics.add([work()])
    assert metrics.accumulators(SUM) == {"a": 1}
    metrics.restart([SUM])
    assert metrics.accumulators(SUM) == {}


def test_times_and_rates_are_given_to_the_microsecond(metrics, clock):
    clock.advance(3_000)
    metrics.add(
        [work(records_in=1, records_out=2, bytes_out=4, busy_ms=1.23456, blocked_ms=2.34567, aligned_ms=3.45678)]
    )
    found = metrics.of_subtask(SUM)
    assert [found[name] for name in ("busyTimeMs", "backPressuredTimeMs", "alignmentTimeMs")] == [1.235, 2.346, 3.457]
    rates = ("numRecordsIn", "numRecordsOut", "numBytesOut", "busyTimeMs", "backPressuredTimeMs", "idleTimeMs")
    assert [found[f"{name}PerSecond"] for name in rates] == [0.333, 0.667, 1.333, 0.412, 0.782, 998.807]


class ValueIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Ringing(KeyedProcessFunction):
    """Registers a timer for each record."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value + 100)

    def on_timer(self, timestamp, ctx):
        yield timestamp


def test_timers_that_fire_and_the_watermark_that_leaves_a_chain_are_told():
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ValueIsTime())
    numbers = env.from_collection([1, 2, 3, 3]).assign_timestamps_and_watermarks(strategy)
    numbers.key_by(lambda n: n % 2).process(Ringing()).name("ring").print()
    metrics = metrics_after(env)
    assert metrics["ring.numFiredTimers"] == 3, "one for each key and time"
    (source,) = {name.rpartition(".")[0] for name in metrics if name.startswith("Source") and name.count(".") == 1}
    assert metrics[f"{source}.currentOutputWatermark"] == 2**63 - 1
