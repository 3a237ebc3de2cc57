"""Event time under stress: many late records, many timers at once, watermarks that stand still or go back."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import WatermarkGenerator
from ekorn.datastream import KeyedProcessFunction, OutputTag
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.testing.by_epoch import EpochSource, timed
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from tests.live_jobs import environment

WINDOW_MS = 100
LATE = OutputTag("late", Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))


# ----------------------------------------------------------------------------------------------------------- late flood


def flood(records: int) -> tuple[list[list[tuple]], list[tuple], Counter]:
    """Make records, half of them after the end of their window; return the epochs, the late records and the sums."""
    chance = random.Random(41)
    runs, late, sums, now = [], [], Counter(), 0
    for number in range(records):
        now = number * 2
        is_late = number > 1_000 and number % 2 == 1
        time = chance.randrange(max(1, now - 1_000)) if is_late else now
        record = (number % 13, number, time)
        closed = number > 0 and time - time % WINDOW_MS + WINDOW_MS - 1 <= (number - 1) * 2 - 1
        if closed:
            late.append(record)
        else:
            sums[record[0], time // WINDOW_MS] += number
        if number % 500 == 0:
            runs.append([])
        runs[-1].append((record, time, now - 1))
    return runs, late, sums


def windowed(runs, env):
    source = env.from_source(EpochSource(runs), WatermarkStrategy.no_watermarks(), "records").uid("records")
    window = timed(source).key_by(lambda r: r[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    return window.side_output_late_data(LATE).reduce(lambda a, b: (a[0], a[1] + b[1], b[2])).uid("sums")


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_in_a_flood_of_late_records_every_one_is_counted_whatever_crashes(backend: str, tmp_path: Path) -> None:
    runs, late, sums = flood(6_000)
    assert len(late) > 2_400
    env = environment(tmp_path, restarts=5, state__backend__type=backend)
    result = windowed(runs, env)
    told = result.map(lambda r: ("sum", r[0], r[2] // WINDOW_MS, r[1])).union(
        result.get_side_output(LATE).map(lambda r: ("late", *r))
    )
    run = run_scripted(told, Script(crashes=[Crash("after-epoch", 4), Crash("in-epoch", 20)]))
    found = Counter(run.records)
    assert found == Counter(("late", *record) for record in late) + Counter(
        ("sum", key, window, total) for (key, window), total in sums.items()
    )


def test_late_records_leave_nothing_in_the_state(tmp_path: Path) -> None:
    """Late records do not open their windows again, so checkpoints do not grow with them."""
    runs, _, _ = flood(6_000)
    env = environment(tmp_path, execution__checkpointing__incremental="false")
    run = run_scripted(windowed(runs, env))
    sizes = [size for _, size in sorted(run.engine.bytes_written.items())]
    assert len(sizes) >= 10
    assert max(sizes[5:]) < 1.5 * max(sizes[1:4])


# ---------------------------------------------------------------------------------------------------------- timer storm


class Storm(KeyedProcessFunction):
    """Registers a timer at the same time for every key."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(1_000_000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key()


def storm(timers: int, directory: Path, backend: str) -> None:
    """Make all timers due with one watermark. The epochs before, with and after that watermark carry checkpoints."""
    env = environment(directory, restarts=5, state__backend__type=backend)
    chunk = 20_000
    runs = [[(n, 0, None) for n in range(start, min(start + chunk, timers))] for start in range(0, timers, chunk)]
    runs += [[(-1, 0, 1_000_000)], [(-2, 0, None)]]  # type: ignore[list-item]
    source = env.from_source(EpochSource(runs), WatermarkStrategy.no_watermarks(), "records").uid("records")
    fired = timed(source).key_by(lambda n: n).process(Storm()).uid("storm")
    due = len(runs) - 1  # the epoch in which the timers are due
    run = run_scripted(fired, Script(crashes=[Crash("in-epoch", 2 * due), Crash("after-epoch", due + 2)]))
    assert run.handle.progress().restarts == 2
    assert run.handle.progress().checkpoints_completed >= due
    found = [n for n in run.records if n >= 0]
    assert len(found) == timers and len(set(found)) == timers, "lost, or twice"


@pytest.mark.parametrize(("backend", "timers"), [("hashmap", 100_000), ("rocksdb", 30_000)])
def test_a_hundred_thousand_timers_due_at_once_fire_once_each(backend: str, timers: int, tmp_path: Path) -> None:
    storm(timers, tmp_path, backend)


@pytest.mark.soak
@pytest.mark.parametrize(("backend", "timers"), [("hashmap", 10_000_000), ("rocksdb", 2_000_000)])
def test_ten_million_timers_due_at_once_fire_once_each(backend: str, timers: int, tmp_path: Path) -> None:
    storm(timers, tmp_path, backend)


# ------------------------------------------------------------------------------------------------- watermarks misbehave


class Wavering(WatermarkGenerator):
    """Emits every timestamp as a watermark, also when it goes back by an hour."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 1)

    def on_periodic_emit(self, output):
        pass


def test_a_watermark_that_goes_back_fires_nothing_early_and_nothing_twice() -> None:
    chance = random.Random(40)
    times = [n * 10 - (3_600_000 if chance.random() < 0.2 else 0) for n in range(2_000)]
    env = environment()
    strategy = WatermarkStrategy.for_generator(lambda _: Wavering()).with_timestamp_assigner(lambda t, _: t)
    source = env.from_source(ScriptedSource([times], [100]), WatermarkStrategy.no_watermarks(), "times")
    stream = source.assign_timestamps_and_watermarks(strategy).map(lambda t: (t // WINDOW_MS, 1))
    counts = stream.key_by(lambda r: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    run = run_scripted(counts.reduce(lambda a, b: (a[0], a[1] + b[1])))
    on_time = Counter(t // WINDOW_MS for t in times if t >= 0)
    before = times[: next(n for n, t in enumerate(times) if t >= 0)]
    assert Counter(dict(run.records)) == on_time + Counter(t // WINDOW_MS for t in before)
    assert len(run.records) == len({window for window, _ in run.records}), "a window fired twice"
