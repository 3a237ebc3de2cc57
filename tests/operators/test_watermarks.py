"""Watermarks: assigners old and new, idleness, splits of a source, alignment, ingestion time."""

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, Duration, WatermarkStrategy
from ekorn.common.watermark_strategy import WatermarkGenerator
from ekorn.datastream import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
    ProcessFunction,
    TimeCharacteristic,
)
from ekorn.driver.loop.epoch_tracker import least_by_group
from ekorn.errors import UserFunctionError
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.graph.specs import WindowSpec
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tests.operators.windows.local_run import Run, collected, environment, graph_of
from tests.program.drawn_operators import operator_of


class Now(ProcessFunction):
    """Emits each record with its timestamp and the current watermark."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), word(ctx.timer_service().current_watermark())


def word(watermark):
    return {MIN_TIMESTAMP: "MIN", MAX_TIMESTAMP: "MAX"}.get(watermark, watermark)


def seen(strategy, values, *, epoch_records=1):
    stream = environment().from_collection(values).assign_timestamps_and_watermarks(strategy).process(Now())
    return collected(stream, max_records=epoch_records)


def marks(*args, **kwargs):
    return [watermark for _, _, watermark in seen(*args, **kwargs)]


by_value = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, _: v)


def test_periodic_watermarks_come_at_the_end_of_an_epoch():
    assert marks(by_value, [5, 7, 6, 9]) == ["MIN", 4, 6, 6]


def test_a_small_bounded_input_sees_none_before_its_end():
    assert marks(by_value, [5, 7, 6, 9], epoch_records=100) == ["MIN"] * 4


def test_bounded_disorder_stays_one_more_millisecond_behind():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
    assert marks(strategy.with_timestamp_assigner(lambda v, _: v), [5, 7, 6, 20, 0]) == ["MIN", 1, 3, 3, 16]


def test_an_interval_of_zero_means_no_periodic_watermarks():
    env = environment()
    env.get_config().set_auto_watermark_interval(0)
    stream = env.from_collection([1, 2]).assign_timestamps_and_watermarks(by_value).process(Now())
    assert [w for _, _, w in collected(stream, max_records=1)] == ["MIN", "MIN"]


class Ticking(Source):
    """Emits 1, 2, 3, ..., in runs of one record. Each run takes 100 ms of the test's clock."""

    boundedness = Boundedness.BOUNDED
    clock = ManualClock()  # of the running test

    def __init__(self, count):
        self.count = count

    def discover_splits(self, parallelism):
        return [Split("0", 0)]

    def create_reader(self, split, position):
        return _TickingReader(self.count)


class _TickingReader(SplitReader):
    def __init__(self, count):
        self.left = list(range(1, count + 1))

    @property
    def finished(self):
        return not self.left

    def read(self, max_records):
        return Batch([tick(self.left.pop(0))])

    def position(self):
        return 0


def tick(value):
    Ticking.clock.advance(100)
    return value


def marks_of(stream, *, epoch_records):
    Ticking.clock = ManualClock()
    run = Run(graph_of(stream.process(Now())), Ticking.clock)
    run.deploy()
    while not run.finished:
        run.step(epoch_records)
    run.close()
    return [watermark for _, _, watermark in run.records]


@pytest.mark.parametrize("where", ["source", "chain"])
@pytest.mark.parametrize(
    ("interval_ms", "epoch_records", "expected"),
    [
        (None, 100, ["MIN"] * 8),
        (None, 2, ["MIN", "MIN", 1, 1, 3, 3, 5, 5]),
        (190, 100, ["MIN", 0, 0, 2, 2, 4, 4, 6]),  # a long epoch emits several times
        (390, 100, ["MIN", "MIN", "MIN", 2, 2, 2, 2, 6]),
        (390, 2, ["MIN", "MIN", "MIN", 2, 2, 2, 2, 6]),  # of short epochs not each one emits
        (0, 2, ["MIN"] * 8),
    ],
)
def test_an_interval_that_the_program_sets_counts_within_epochs_and_across_them(
    where, interval_ms, epoch_records, expected
):
    env = environment()
    if interval_ms is not None:
        env.get_config().set_auto_watermark_interval(interval_ms)
    in_source = where == "source"
    stream = env.from_source(Ticking(8), by_value if in_source else WatermarkStrategy.no_watermarks(), "ticks")
    stream = stream if in_source else stream.assign_timestamps_and_watermarks(by_value)
    assert marks_of(stream, epoch_records=epoch_records) == expected


@pytest.mark.parametrize(("interval_ms", "expected"), [(None, ["MIN"] * 4), (190, ["MIN", 0, 0, 2])])
def test_an_interval_that_the_program_sets_counts_between_the_runs_that_arrive(interval_ms, expected):
    env = environment()
    env.configure(Configuration().set_string("ekorn.exchange.blob-size", "1 kb"))
    if interval_ms is not None:
        env.get_config().set_auto_watermark_interval(interval_ms)
    large = env.from_source(Ticking(4), WatermarkStrategy.no_watermarks(), "ticks").map(lambda n: (n, bytes(2000)))
    stream = large.rebalance().map(lambda pair: tick(pair[0]))  # each record has a blob of its own
    assert marks_of(stream.assign_timestamps_and_watermarks(by_value), epoch_records=100) == expected


def test_an_assigner_replaces_watermarks_from_before_but_the_last():
    stream = environment().from_collection([5, 7]).assign_timestamps_and_watermarks(by_value)
    stream = stream.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks()).process(Now())
    assert [w for _, _, w in collected(stream, max_records=1)] == ["MIN", "MIN"]


def test_batch_mode_assigns_timestamps_and_makes_no_watermarks():
    stream = environment(batch=True).from_collection([5, 7]).assign_timestamps_and_watermarks(by_value)
    assert collected(stream.process(Now()), max_records=1) == [(5, 5, "MIN"), (7, 7, "MIN")]


# ------------------------------------------------------------------------------------------- the older assigners


class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_event_timestamp(self, element):
        return element


class Polled(AssignerWithPeriodicWatermarks):
    highest = None

    def extract_timestamp(self, value, record_timestamp):
        self.highest = value
        return value

    def get_current_watermark(self):
        return None if self.highest == 7 else self.highest


class Punctuated(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value, record_timestamp):
        return value

    def check_and_get_next_watermark(self, last_element, extracted_timestamp):
        return extracted_timestamp if extracted_timestamp % 2 else None


def test_ascending_timestamps():
    assert marks(Ascending(), [5, 7, 6, 9, 0]) == ["MIN", 4, 6, 6, 8]


def test_ascending_timestamps_by_a_function():
    stream = environment().from_collection([5, 7]).assign_ascending_timestamps(lambda v: v).process(Now())
    assert collected(stream, max_records=1) == [(5, 5, "MIN"), (7, 7, 4)]


def test_timestamps_that_go_back_may_fail_the_job():
    with pytest.raises(UserFunctionError, match="ascend"):
        marks(Ascending().with_violation_handler(Ascending.FailingHandler()), [5, 4])


def test_the_older_bounded_assigner_is_a_millisecond_ahead_of_the_newer():
    assert marks(Bounded(Duration.of_millis(3)), [5, 7, 6, 20, 0]) == ["MIN", 2, 4, 4, 17]
    with pytest.raises(ValueError, match="negative"):
        Bounded(-1)


def test_polled_watermarks():
    assert marks(Polled(), [5, 7, 9, 0]) == ["MIN", 5, 5, 9]


def test_punctuated_watermarks_follow_their_record():
    assert marks(Punctuated(), [5, 6, 3, 7, 0], epoch_records=100) == ["MIN", 5, 5, 5, 7]


def test_ingestion_time_extractor():
    from ekorn.clock import ManualClock

    clock = ManualClock(100)
    extractor = IngestionTimeExtractor(clock)
    assert extractor.extract_timestamp("x", -1) == 100
    clock.set_ms(50)
    assert extractor.extract_timestamp("x", -1) == 100
    assert extractor.get_current_watermark().timestamp == 99


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="WatermarkStrategy"):
        environment().from_collection([1]).assign_timestamps_and_watermarks(Ascending)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- sources with splits


class Splits(Source):
    """Splits of records. Each `None` in a split ends what an epoch reads of it."""

    def __init__(self, *splits, bounded=True):
        self.splits = splits
        self.bounded = bounded

    @property
    def boundedness(self):
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def discover_splits(self, parallelism):
        return [Split(str(n), n) for n in range(len(self.splits))]

    def create_reader(self, split, position):
        return _Reader(self.splits[split.what], position or 0, self.bounded)


class _Reader(SplitReader):
    def __init__(self, records, position, bounded):
        self.records, self.at, self.bounded = records, position, bounded
        self.paused = False

    def read(self, max_records):
        values = []
        while self.at < len(self.records) and len(values) < max_records:
            value = self.records[self.at]
            if value is None:
                if values:
                    break
                if not self.paused:  # an empty batch ends the epoch
                    self.paused = True
                    break
                self.paused = False
                self.at += 1
                continue
            self.at += 1
            values.append(value)
        return Batch(values, None)

    def position(self):
        return self.at

    @property
    def finished(self):
        return self.bounded and self.at >= len(self.records)


def split_run(source, strategy, *, parallelism=1, check=Now):
    env = environment(parallelism)
    stream = (
        env.from_source(source, strategy, "splits").set_parallelism(parallelism).process(check()).set_parallelism(1)
    )
    run = Run(graph_of(stream))
    run.deploy()
    return run


def test_each_split_has_its_own_generator_and_the_least_counts():
    run = split_run(Splits([10, None, 20], [1, None, 2]), by_value)
    first = run.step()
    assert [v for v, _, _ in first] == [10, 1]
    second = run.step()
    assert [(v, w) for v, _, w in second] == [(20, 0), (2, 0)]
    run.close()


def test_a_split_that_has_ended_holds_nothing_back():
    run = split_run(Splits([10, None, 20, None, 30], [1]), by_value)
    run.step()
    assert [(v, w) for v, _, w in run.step()] == [(20, 9)]
    run.close()


class Marks(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        pass


def test_punctuated_watermarks_of_splits_stand_between_records():
    strategy = WatermarkStrategy.for_generator(lambda _: Marks()).with_timestamp_assigner(lambda v, _: v)
    run = split_run(Splits([1, 2, 5]), strategy)
    assert [(v, w) for v, _, w in run.step()] == [(1, "MIN"), (2, 1), (5, 2)]
    run.close()


def test_an_idle_split_is_left_out():
    strategy = by_value.with_idleness(Duration.of_millis(100))
    run = split_run(Splits([10, None, 20, None, 30, None, 40, None, 50], [1], bounded=False), strategy)
    run.step()
    marks = []
    for _ in range(4):
        run.clock.advance(80)
        marks += [(v, w) for v, _, w in run.step()]
    assert marks == [(20, 0), (30, 0), (40, 0), (50, 39)]
    run.close()


def test_an_idle_subtask_does_not_hold_back_the_others():
    strategy = by_value.with_idleness(Duration.of_millis(100))
    run = split_run(Splits([10, None, 20, None, 30, None, None, 40], [1], bounded=False), strategy, parallelism=2)
    found = []
    for _ in range(5):
        run.clock.advance(80)
        found += [(v, w) for v, _, w in run.step()]
    assert found[-1] == (40, 29)
    run.close()


def advance(run, *, epochs, seconds):
    for _ in range(epochs):
        run.clock.advance(seconds * 1000)
        run.step()


def held_back(caplog):
    """Return the warnings about watermarks, without what threads of earlier tests say."""
    return [message for message in caplog.messages if "with_idleness" in message]


def test_a_split_that_holds_the_watermark_back_is_named_in_a_warning(caplog):
    fast = [each for number in range(1, 40) for each in (number * 10, None)]
    run = split_run(Splits(fast, [1], bounded=False), by_value)
    advance(run, epochs=6, seconds=9)
    assert not held_back(caplog), "not yet a minute"
    advance(run, epochs=8, seconds=9)
    (message,) = held_back(caplog)
    assert (
        "split '1' of 'Source: splits' (subtask 0)" in message
        and "stands at 0 ms for 6" in message
        and "with_idleness" in message
    )
    advance(run, epochs=8, seconds=9)
    assert len(held_back(caplog)) == 2, "the next warning comes after twice the time"
    run.close()


def test_a_split_that_is_left_out_as_idle_is_not_warned_about(caplog):
    fast = [each for number in range(1, 40) for each in (number * 10, None)]
    run = split_run(Splits(fast, [1], bounded=False), by_value.with_idleness(Duration.of_seconds(20)))
    advance(run, epochs=20, seconds=9)
    assert not held_back(caplog)
    run.close()


def test_an_input_that_holds_the_watermark_back_is_named_in_a_warning(caplog):
    env = environment()
    fast = Splits([each for number in range(1, 40) for each in (number * 10, None)], bounded=False)
    quiet = env.from_source(Splits([1], bounded=False), WatermarkStrategy.no_watermarks(), "quiet")
    run = Run(graph_of(env.from_source(fast, by_value, "fast").union(quiet).process(Now()).disable_chaining()))
    run.deploy()
    advance(run, epochs=12, seconds=9)
    (message,) = held_back(caplog)
    assert "from 'Source: quiet' (subtask 0) has no watermark for 6" in message
    run.close()


def test_the_warning_about_a_held_watermark_can_be_turned_off(caplog):
    env = environment()
    env.configure(Configuration().set_string("ekorn.watermark.held-back-warning", "0 s"))
    fast = Splits([each for number in range(1, 40) for each in (number * 10, None)], [1], bounded=False)
    run = Run(graph_of(env.from_source(fast, by_value, "splits").process(Now())))
    run.deploy()
    advance(run, epochs=20, seconds=9)
    assert not held_back(caplog)
    run.close()


def test_sources_wait_for_the_slowest_of_their_group():
    strategy = by_value.with_watermark_alignment("group", Duration.of_millis(10))
    env = environment()
    fast = env.from_source(Splits([v for n in range(1, 9) for v in (n * 10, None)], bounded=False), strategy, "fast")
    slow = env.from_source(Splits([v for n in range(1, 9) for v in (n, None)], bounded=False), strategy, "slow")
    run = Run(graph_of(fast.union(slow)))
    run.deploy()
    from ekorn.operators.epoch import EpochOrder

    groups, fast_read = {}, []
    for epoch in range(6):
        result = run.engine.run_epoch(EpochOrder(epoch, group_watermarks=groups))
        assert result.failure is None
        groups = least_by_group(result.acks)
        fast_read += [v for a in result.acks for run in a.collected for v in run.records() if v >= 10]
    run.close()
    assert groups == {"group": 5}
    assert fast_read == [10, 20]  # the watermark of 20 is 19, more than 10 ahead


# ------------------------------------------------------------------------------------------- the job's notion of time


def test_ingestion_time_stamps_records_by_the_clock():
    env = environment()
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    run = Run(graph_of(env.from_collection(list(range(4))).process(Now())))
    run.clock.set_ms(1050)
    run.deploy()
    assert run.step(max_records=1) == [(0, 1050, "MIN")]
    run.clock.set_ms(1100)
    assert run.step(max_records=1) == [(1, 1100, 1000)]
    run.clock.set_ms(1201)
    assert run.step(max_records=1) == [(2, 1201, 1000)]
    run.clock.set_ms(1202)
    assert run.step(max_records=1) == [(3, 1202, 1200)]
    run.close()


def test_the_time_characteristic_decides_what_a_time_window_is():
    from ekorn.common import Time
    from ekorn.datastream.window import SlidingEventTimeWindows, TumblingProcessingTimeWindows

    env = environment()

    def assigner(windowed):
        spec = operator_of(env, windowed.reduce(max)).spec
        assert isinstance(spec, WindowSpec)
        return spec.assigner

    keyed = env.from_collection([1]).key_by(lambda v: v)
    assert isinstance(assigner(keyed.time_window(Time.seconds(2), Time.seconds(1))), SlidingEventTimeWindows)
    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_config().get_auto_watermark_interval() == 0
    assert isinstance(assigner(keyed.time_window(Time.seconds(2))), TumblingProcessingTimeWindows)
    assert env.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
