import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from ekorn.common.watermark_strategy import (
    AscendingTimestampsWatermarks,
    AssignerWithPeriodicWatermarksWrapper,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    WatermarkAlignment,
)


class Output(WatermarkOutput):
    def __init__(self):
        self.emitted = []

    def emit_watermark(self, watermark):
        self.emitted.append(watermark.timestamp)

    def mark_idle(self):
        self.emitted.append("idle")

    def mark_active(self):
        self.emitted.append("active")


def watermark_after(generator, *timestamps):
    output = Output()
    for timestamp in timestamps:
        generator.on_event(None, timestamp, output)
    generator.on_periodic_emit(output)
    return output.emitted


def test_the_watermark_stays_the_bound_and_one_millisecond_behind_the_highest_timestamp():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    assert watermark_after(strategy.create_generator(), 100, 50) == [89]
    assert watermark_after(WatermarkStrategy.for_monotonous_timestamps().create_generator(), 100) == [99]
    assert watermark_after(WatermarkStrategy.no_watermarks().create_generator(), 100) == []


def test_before_the_first_record_the_watermark_is_the_least_timestamp():
    assert watermark_after(BoundedOutOfOrdernessWatermarks(Duration.of_seconds(5))) == [MIN_TIMESTAMP]
    assert watermark_after(AscendingTimestampsWatermarks()) == [MIN_TIMESTAMP]
    assert watermark_after(NoWatermarksGenerator()) == []


@given(st.lists(st.integers(0, 10**6), min_size=1), st.integers(0, 1000))
def test_a_bounded_generator_never_goes_back(timestamps, bound):
    generator, output = BoundedOutOfOrdernessWatermarks(bound), Output()
    for timestamp in timestamps:
        generator.on_event(None, timestamp, output)
        generator.on_periodic_emit(output)
    assert output.emitted == sorted(output.emitted)
    assert output.emitted[-1] == max(timestamps) - bound - 1


def test_each_generator_is_fresh():
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    first = strategy.create_generator()
    watermark_after(first, 100)
    assert watermark_after(strategy.create_generator()) == [MIN_TIMESTAMP]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Duck:
    def extract_timestamp(self, value, record_timestamp):
        return record_timestamp + 1


def time_by(strategy, value, timestamp):
    assert strategy.timestamp_assigner is not None
    return strategy.timestamp_assigner.extract_timestamp(value, timestamp)


def test_an_assigner_may_be_an_object_or_a_function():
    base = WatermarkStrategy.for_monotonous_timestamps()
    assert base.timestamp_assigner is None
    assert time_by(base.with_timestamp_assigner(SecondField()), ("a", 5), -1) == 5
    assert time_by(base.with_timestamp_assigner(Duck()), "a", 4) == 5  # type: ignore[arg-type]
    assert time_by(base.with_timestamp_assigner(lambda value, timestamp: value + timestamp), 1, 2) == 3
    with pytest.raises(TypeError, match="TimestampAssigner or a function"):
        base.with_timestamp_assigner(5)  # type: ignore[arg-type]


def test_later_settings_keep_the_assigner():
    """PyFlink drops the assigner when a later setting follows. Here a strategy keeps it."""
    assigner = SecondField()
    strategy = (
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=1))
        .with_timestamp_assigner(assigner)
        .with_idleness(Duration.of_seconds(10))
        .with_watermark_alignment("group", Duration.of_seconds(2))
    )
    assert strategy.timestamp_assigner is assigner
    assert strategy.idle_timeout_ms == 10_000
    assert strategy.alignment == WatermarkAlignment("group", 2_000, 1_000)
    assert watermark_after(strategy.create_generator(), 5_000) == [3_999]


def test_a_strategy_is_a_value():
    make = WatermarkStrategy.for_bounded_out_of_orderness
    assert make(Duration.of_seconds(1)) == make(Duration.of_millis(1000))
    assert make(Duration.of_seconds(1)) != make(Duration.of_seconds(2))
    base = make(Duration.of_seconds(1))
    assert base.with_idleness(Duration.of_seconds(1)) is not base
    assert base.idle_timeout_ms is None
    assert pickle.loads(pickle.dumps(base)) == base


def test_lengths_without_meaning_are_refused():
    base = WatermarkStrategy.no_watermarks()
    with pytest.raises(ValueError, match="must not be negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))
    with pytest.raises(ValueError, match="idle_timeout must be positive"):
        base.with_idleness(Duration.of_millis(0))
    with pytest.raises(ValueError, match="drift must be positive"):
        base.with_watermark_alignment("g", Duration.of_millis(0))
    with pytest.raises(ValueError, match="update_interval must be positive"):
        base.with_watermark_alignment("g", Duration.of_millis(1), Duration.of_millis(0))
    with pytest.raises(ValueError, match="group name"):
        base.with_watermark_alignment("", Duration.of_millis(1))
    with pytest.raises(TypeError, match="length of time"):
        base.with_idleness("1 s")  # type: ignore[arg-type]


class Punctuated(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event == "mark":
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


def test_a_program_can_bring_its_own_generator():
    contexts = []
    strategy = WatermarkStrategy.for_generator(lambda context: contexts.append(context) or Punctuated())
    generator, output = strategy.create_generator("context"), Output()
    generator.on_event("x", 1, output)
    generator.on_event("mark", 2, output)
    assert output.emitted == [2]
    assert contexts == ["context"]
    with pytest.raises(TypeError, match="for_generator"):
        WatermarkStrategy.for_generator(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"with \(context\), and Punctuated takes \(\); .* `lambda context: "):
        WatermarkStrategy.for_generator(Punctuated)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_event"):
        WatermarkStrategy.for_generator(lambda context: 5).create_generator()  # type: ignore[arg-type, return-value]


def test_watermarks_compare_and_have_an_end():
    assert Watermark(1) < Watermark(2) < Watermark.MAX
    assert Watermark.MAX.get_timestamp() == MAX_TIMESTAMP
    assert pickle.loads(pickle.dumps(Watermark(3))) == Watermark(3)


def test_an_old_assigner_needs_both_of_its_methods():
    with pytest.raises(TypeError, match="get_current_watermark"):
        AssignerWithPeriodicWatermarksWrapper(SecondField())


def test_a_timestamp_assigner_that_takes_the_record_alone_is_refused_at_the_call():
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.raises(
        TypeError, match=r"calls its function with \(value, record_timestamp\), and <lambda> takes \(v\);"
    ):
        strategy.with_timestamp_assigner(lambda v: v[0])  # type: ignore[arg-type, misc]
    strategy.with_timestamp_assigner(max)  # a builtin without a signature
