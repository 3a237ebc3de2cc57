"""The clock is set back or forward by an hour while a job runs: event time is unaffected, no timer fires twice, and
checkpoints, timeouts and restarts keep their pace."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from functools import partial

import pytest

from ekorn.clock import SystemClock
from ekorn.common import Configuration, RestartStrategies, Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.state import StateTtlConfig, ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.testing.local_engine import LocalEngine
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import Held, until

RECORDS = 600
HOUR_MS = 3_600_000


class Settable(SystemClock):
    """The system clock, which a test can set."""

    def __init__(self) -> None:
        self.offset_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset_ms


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Reminder(KeyedProcessFunction):
    """Sets a processing-time timer for each record, 20 ms later, so that some timers are always pending."""

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + 20)
        yield ("asked", ctx.get_current_key())

    def on_timer(self, timestamp, ctx):
        yield ("reminded", ctx.get_current_key())


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.enable_checkpointing(20)
    env.set_restart_strategy(RestartStrategies.no_restart())
    return env


def numbers(env: StreamExecutionEnvironment, held: Held):
    source = DataGeneratorSource(lambda n: n, RECORDS, held)
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())
    return env.from_source(source, in_order, "numbers", Types.LONG())


def run_with_jumps(stream, clock: Settable, jumps: list[int], held: Held):
    """Run a stream's job on a clock that jumps; return the records, the progress, and the checkpoints at each jump.

    The last records are let go after some more checkpoints, if there are any.
    """
    on_clock = partial(submit, engine_for=lambda settings: lambda graph: LocalEngine(graph, clock), clock=clock)
    with jobs_submitted_by(on_clock), noted_handles() as handles:
        records = stream.execute_and_collect()
    (handle,) = handles
    completed = []

    def administrate() -> None:
        for number, jump_ms in enumerate(jumps, 1):
            while not handle.status().is_terminal_state() and handle.progress().records_read < number * 150:
                clock.sleep(0.005)
            clock.offset_ms += jump_ms
            completed.append(handle.progress().checkpoints_completed)
        with suppress(AssertionError):
            until(lambda: handle.progress().checkpoints_completed > completed[-1] + 2)
        held.let_go()

    administrator = threading.Thread(target=administrate)
    administrator.start()
    found = list(records)
    administrator.join()
    return found, handle.progress(), completed


@pytest.mark.parametrize("jumps", [[-HOUR_MS], [HOUR_MS], [HOUR_MS, -2 * HOUR_MS, HOUR_MS]], ids=str)
def test_event_time_does_not_see_the_clock_jump_and_checkpoints_go_on(jumps, tmp_path) -> None:
    window, held = TumblingEventTimeWindows.of(Time.milliseconds(50)), Held(tmp_path, 500, per_second=600)
    stream = numbers(environment(), held).map(lambda n: (n // 50, n)).key_by(lambda r: 0).window(window)
    sums = stream.reduce(lambda a, b: (a[0], a[1] + b[1]))
    found, progress, completed = run_with_jumps(sums, Settable(), jumps, held)
    assert sorted(found) == [(w, sum(range(50 * w, 50 * w + 50))) for w in range(RECORDS // 50)]
    assert progress.checkpoints_completed > completed[-1] + 2, "checkpoints stopped when the clock was set"
    assert progress.checkpoints_failed == 0


@pytest.mark.parametrize("jumps", [[-HOUR_MS], [HOUR_MS], [HOUR_MS, -HOUR_MS]], ids=str)
def test_no_processing_time_timer_fires_twice(jumps, tmp_path) -> None:
    held = Held(tmp_path, 500, per_second=600)
    stream = numbers(environment(), held).key_by(lambda n: n).process(Reminder())
    found, _, _ = run_with_jumps(stream, Settable(), jumps, held)
    reminded = Counter(key for kind, key in found if kind == "reminded")
    assert len([1 for kind, _ in found if kind == "asked"]) == RECORDS
    assert all(count == 1 for count in reminded.values())
    assert len(reminded) > 50


class Expiring(KeyedProcessFunction):
    """Counts the records of each key in state that lives for a minute after it was written."""

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("count", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.minutes(1)).build())
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


@pytest.mark.parametrize(("jumps", "begins"), [([-HOUR_MS], 1), ([HOUR_MS], 2), ([-HOUR_MS, HOUR_MS], 2)], ids=str)
def test_state_with_a_time_to_live_expires_by_the_time_of_day_and_not_when_the_clock_is_set_back(
    jumps, begins, tmp_path
) -> None:
    """As in Flink: state is as old as the clock says. Whoever sets the clock forward makes it older."""
    held = Held(tmp_path, 500, per_second=600)
    stream = numbers(environment(), held).key_by(lambda n: n % 5).process(Expiring())
    found, _, _ = run_with_jumps(stream, Settable(), jumps, held)
    assert len(found) == RECORDS
    assert Counter(key for key, count in found if count == 1) == dict.fromkeys(range(5), begins)


class FailsAndSetsTheClock(MapFunction):
    """Raises once, and sets the clock at that moment."""

    def __init__(self, mark, jump_ms) -> None:
        self.mark, self.jump_ms = mark, jump_ms

    def map(self, value):
        if value == 100 and not self.mark.exists():
            self.mark.touch()
            CLOCK[0].offset_ms += self.jump_ms
            raise ValueError("once")
        return value


CLOCK = [Settable()]  # of the job that runs


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
@pytest.mark.parametrize(
    "strategy",
    [
        RestartStrategies.fixed_delay_restart(1, 100),
        RestartStrategies.failure_rate_restart(1, 60_000, 100),
        RestartStrategies.exponential_delay_restart(100, 1_000, 2.0, 60_000, 0.0),
    ],
)
def test_a_restart_that_waits_does_not_wait_for_a_clock_that_is_set(strategy, jump_ms, tmp_path) -> None:
    CLOCK[0] = clock = Settable()
    env = environment()
    env.set_restart_strategy(strategy)
    source = DataGeneratorSource(lambda n: n, 200)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    on_clock = partial(submit, engine_for=lambda settings: lambda graph: LocalEngine(graph, clock), clock=clock)
    with jobs_submitted_by(on_clock), noted_handles() as handles:
        records = numbers.map(FailsAndSetsTheClock(tmp_path / "mark", jump_ms)).execute_and_collect()
    until(lambda: handles[0].status().is_terminal_state())
    assert sorted(records) == list(range(200)) and handles[0].progress().restarts == 1
