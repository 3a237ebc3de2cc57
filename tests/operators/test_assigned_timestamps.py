"""Timestamps that are no ints, that count seconds, or that nobody assigns: named where they are assigned."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import ProcessFunction, SourceFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.functions import ProcessJoinFunction
from ekorn.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.errors import JobExecutionError
from ekorn.functions.assigned_timestamps import unit_hint
from ekorn.legacy.timestamp_extractors import (
    AscendingTimestampExtractor,
    BoundedOutOfOrdernessTimestampExtractor,
)
from ekorn.operators.time.timestamp_check import TimestampCheck
from ekorn.slot_protocol.slot_events import OperatorHint
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.local_run import collect_locally, on_local_engine

HINTS = "ekorn.driver.display.operator_hints"


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


class Stamped(ProcessFunction):
    """Emits each record with its timestamp, and the class of the timestamp."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), type(ctx.timestamp()).__name__


def by(function):
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(function)


def in_the_stream(env, records, function):
    return env.from_collection(records).assign_timestamps_and_watermarks(by(function))


def at_the_source(env, records, function):
    source = DataGeneratorSource(lambda number: records[number], len(records))
    return env.from_source(source, by(function), "records")


PLACES = pytest.mark.parametrize("assigned", [in_the_stream, at_the_source])


def failure_of(stream):
    with pytest.raises(JobExecutionError) as failed:
        collect_locally(stream.process(Stamped()))
    return str(failed.value).splitlines()[0]


@PLACES
@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        (
            "2024-01-01",
            "'2024-01-01' (str) for record 'a'; a timestamp is an int, in milliseconds since 1970: use int(",
        ),
        (1.7e9, "1700000000.0 (float) for record 'a'; a timestamp is an int, in milliseconds since 1970: use int(sec"),
        (np.float64(1.5), "(float64) for record 'a'; a timestamp is an int, in milliseconds since 1970: use int(seco"),
        (Decimal(5), "Decimal('5') (Decimal) for record 'a'; a timestamp is an int, in milliseconds since 1970: use"),
        (datetime(2024, 1, 1, tzinfo=UTC), "(datetime) for record 'a'; a timestamp is an int, in milliseconds since"),
        (date(2024, 1, 1), "(date) for record 'a'; a timestamp is an int, in milliseconds since 1970: use the millis"),
        (True, "True (bool) for record 'a'; a timestamp is an int, in milliseconds since 1970: use an int"),
        ((1,), "(1,) (tuple) for record 'a'; a timestamp is an int, in milliseconds since 1970: use an int"),
        (None, "returned None for record 'a'; a timestamp is an int, in milliseconds since 1970: use the second arg"),
    ],
    ids=repr,
)
def test_a_timestamp_that_is_no_int_is_refused_where_it_is_assigned(env, assigned, timestamp, said):
    failure = failure_of(assigned(env, ["a"], lambda value, _: timestamp))
    assert re.search(
        r"InvalidTimestampError: the timestamp assigner <lambda> \(test_assigned_timestamps\.py:\d+\)", failure
    )
    assert said in failure


def test_the_error_names_the_operator(env):
    stream = in_the_stream(env, ["a"], lambda value, _: "1")
    assert "failed in operator 'Timestamps/Watermarks' (subtask 0) on record 'a': Invalid" in failure_of(stream)


@PLACES
def test_every_record_is_checked(env, assigned):
    failure = failure_of(assigned(env, list(range(500)), lambda value, _: 0.5 if value == 333 else value))
    assert "returned 0.5 (float) for record 333" in failure


@PLACES
def test_a_whole_number_of_numpy_becomes_an_int(env, assigned):
    stream = assigned(env, ["a", "b"], lambda value, _: np.int64(7))
    assert collect_locally(stream.process(Stamped())) == [("a", 7, "int"), ("b", 7, "int")]


def test_a_record_with_such_a_timestamp_can_be_skipped(env):
    stream = in_the_stream(env, [1, 2, 3], lambda value, _: None if value == 2 else value).on_record_error("skip")
    assert collect_locally(stream.process(Stamped())) == [(1, 1, "int"), (3, 3, "int")]


class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_event_timestamp(self, element):
        return element


@pytest.mark.parametrize(
    ("extractor", "method"),
    [
        (Ascending(), "Ascending.extract_ascending_timestamp"),
        (Bounded(Time.seconds(1)), "Bounded.extract_event_timestamp"),
    ],
)
def test_an_extractor_of_flink_1_is_named_by_its_method(env, extractor, method):
    failure = failure_of(env.from_collection(["5"]).assign_timestamps_and_watermarks(extractor))
    assert f"the timestamp assigner {method} (test_assigned_timestamps.py:" in failure
    assert "returned '5' (str) for record '5'" in failure


def test_a_source_function_is_told_of_a_timestamp_that_is_no_int(env):
    class Tells(SourceFunction):
        def run(self, ctx):
            ctx.collect_with_timestamp("a", 1.5)

        def cancel(self):
            pass

    assert "collect_with_timestamp() was given 1.5 (float) for record 'a'" in failure_of(env.add_source(Tells()))


# ------------------------------------------------------------------------------------------------------ seconds


@pytest.mark.parametrize("continuous", [False, True])
@PLACES
def test_timestamps_in_seconds_are_hinted_at_once(env, assigned, continuous, caplog):
    stream = assigned(env.set_parallelism(2), [1_700_000_000 + n for n in range(500)], lambda value, _: value)
    stream.process(Stamped())
    with caplog.at_level("WARNING", HINTS), on_local_engine(continuous=continuous):
        env.execute()
    (hint,) = [record.getMessage() for record in caplog.records if record.name == HINTS]
    assert re.fullmatch(
        r"operator '(Timestamps/Watermarks|Source: records)': the timestamp assigner <lambda> "
        r"\(test_assigned_timestamps\.py:\d+\) returned 1700000\d+ for record 1700000\d+. "
        r"As milliseconds this is 1970-01-20 16:1\d:\d\d UTC; as "
        r"seconds it would be 2023-11-1\d \d\d:\d\d:\d\d UTC. If it counts seconds, use int\(seconds \* 1000\)",
        hint,
    )


class Late(LocalEngine):
    """Tells of hints after its shutdown alone, as slots do whose events arrive after the last epoch."""

    def __init__(self, graph):
        super().__init__(graph)
        self.late, self.is_shut_down = [], False

    def events(self):
        for event in super().events():
            assert isinstance(event, OperatorHint)
            self.late.append(event)
        return self.late if self.is_shut_down else []

    def shutdown(self):
        super().shutdown()
        self.is_shut_down = True


def test_a_hint_that_arrives_with_the_end_of_the_job_is_shown(env, caplog):
    in_the_stream(env, [1_700_000_000], lambda value, _: value).print()
    with caplog.at_level("WARNING", HINTS), jobs_submitted_by(partial(submit, engine_for=lambda settings: Late)):
        env.execute()
    (hint,) = [record.getMessage() for record in caplog.records if record.name == HINTS]
    assert "If it counts seconds, use int(seconds * 1000)" in hint


@pytest.mark.parametrize(
    ("timestamp", "calls", "hints"), [(1_700_000_000, 1, 1), (7, 100, 0)], ids=["seconds", "others"]
)
def test_the_check_of_seconds_takes_itself_out_of_the_loop(timestamp, calls, hints):
    shown, loop = [], {}
    check = TimestampCheck(by(lambda value, _: timestamp).timestamp_assigner, lambda about, text: shown.append(about))
    loop["assign"] = check
    check.in_code(loop, "assign")
    called = 0
    while loop["assign"] is check:
        assert check("a", 0) == timestamp
        called += 1
        assert called <= 100
    assert (called, len(shown)) == (calls, hints)


def test_runs_in_seconds_are_hinted_at_once():
    shown = []
    check = TimestampCheck(by(lambda value, _: 0).timestamp_assigner, lambda about, text: shown.append(about))
    for _ in range(3):
        check.whole_run([1_700_000_000], ["a"])
    assert shown == ["unit"]


@PLACES
@pytest.mark.parametrize("timestamp", [0, 100_000, -5, 999_999_999, 1_700_000_000_000, 10**14, 4 * 10**15, 2**63 - 1])
def test_other_timestamps_are_not_hinted_at(env, assigned, timestamp, caplog):
    assigned(env, [timestamp] * 3, lambda value, _: value).process(Stamped())
    with caplog.at_level("WARNING", HINTS), on_local_engine():
        env.execute()
    assert [record for record in caplog.records if record.name == HINTS] == []


def test_seconds_are_numbers_that_are_dates_of_this_century():
    said = [bool(unit_hint(number, None, "")) for number in (999_999_999, 10**9, 3_999_999_999, 4 * 10**9)]
    assert said == [False, True, True, False]


@pytest.mark.parametrize(
    ("timestamp", "year", "unit", "remedy"),
    [
        (1_700_000_000_000_000, 55840, "microseconds", "microseconds // 1000"),
        (1_700_000_000_000_000_000, 53872825, "nanoseconds", "nanoseconds // 1_000_000"),
    ],
)
def test_timestamps_of_databases_and_pandas_are_hinted_at(timestamp, year, unit, remedy):
    assert unit_hint(timestamp, "r", "it returned") == (
        f"it returned {timestamp} for record 'r'. As milliseconds this is in the year {year}; as {unit} it would be "
        f"2023-11-14 22:13:20 UTC. If it counts {unit}, use {remedy}"
    )


# ----------------------------------------------------------------------------------------------- no timestamps


@pytest.mark.parametrize(
    "window",
    [
        TumblingEventTimeWindows.of(Time.seconds(5)),
        SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1)),
        EventTimeSessionWindows.with_gap(Time.seconds(5)),
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_a_strategy_without_an_assigner_is_named(env, window):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy).name("times")
    failure = failure_of(stream.key_by(lambda pair: pair[0]).window(window).sum(1))
    assert "the record ('a', 1) has no timestamp" in failure
    assert (
        "the watermark strategy of operator 'times' has no timestamp assigner: give it one with "
        "with_timestamp_assigner(lambda record, timestamp: ...), or use processing-time windows"
    ) in failure


def test_a_strategy_without_an_assigner_before_windows_with_a_trigger_is_named(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy).name("times")
    windows = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(5)))
    failure = failure_of(windows.trigger(CountTrigger.of(2)).sum(1))
    assert "the watermark strategy of operator 'times' has no timestamp assigner" in failure


def test_a_strategy_without_an_assigner_before_an_interval_join_is_named(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_collection([1]).assign_timestamps_and_watermarks(strategy).name("times").key_by(lambda v: v)
    joined = stream.interval_join(stream).between(Time.seconds(-1), Time.seconds(1)).process(Joined())
    assert "the watermark strategy of operator 'times' has no timestamp assigner" in failure_of(joined)


class Joined(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def test_a_strategy_without_watermarks_has_no_assigner_to_miss(env):
    source = DataGeneratorSource(lambda number: ("a", number), 1)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    failure = failure_of(stream.key_by(lambda p: p[0]).window(TumblingEventTimeWindows.of(Time.seconds(5))).sum(1))
    assert "call assign_timestamps_and_watermarks(...) before window(...)" in failure
