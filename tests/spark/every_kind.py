"""Every kind of operator in one job, each writing files of its own; `verify` checks what is in them.

The records are numbers, and a number is its own timestamp. Results depend neither on epochs nor on parallelism: windows
and timers fire by watermarks, and broadcast state is read when time has passed, not when a record arrives.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from ekorn.common import Duration, Time, Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import (
    AsyncDataStream,
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.datastream.functions import AsyncFunction, KeyedBroadcastProcessFunction, KeyedCoProcessFunction
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.spark.checkpointed import checkpointed_environment

WITHOUT_LOOP = (
    "tumbling",
    "sliding",
    "sessions",
    "timers",
    "connected",
    "broadcast",
    "async",
    "levels",
)  # a loop needs epochs
KEYS = 53
ROUND = 500  # numbers between two timers of a key
RULES = 400  # numbers between two rules


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


def key_of(number: int) -> str:
    return f"key-{number * 31 % KEYS}"


# ------------------------------------------------------------------------------------------------------------- windows


def in_windows(numbers: DataStream, size: int) -> DataStream:
    window = TumblingEventTimeWindows.of(Time.milliseconds(size))
    sums = numbers.map(lambda n: (key_of(n), n // size, n)).key_by(lambda r: r[0]).window(window)
    return sums.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).map(lambda r: f"{r[0]},{r[1]},{r[2]}", Types.STRING())


def expected_in_windows(records: int, size: int) -> Iterable[str]:
    sums: Counter[tuple[str, int]] = Counter()
    for n in range(records):
        sums[key_of(n), n // size] += n
    return [f"{key},{window},{total}" for (key, window), total in sums.items()]


def in_sliding_windows(numbers: DataStream) -> DataStream:
    window = SlidingEventTimeWindows.of(Time.milliseconds(600), Time.milliseconds(200))
    sums = numbers.map(lambda n: (key_of(n), 1)).key_by(lambda r: r[0]).window(window)
    return sums.sum(1).map(lambda r: f"{r[0]},{r[1]}", Types.STRING())


def expected_in_sliding_windows(records: int) -> Iterable[str]:
    counts: Counter[tuple[str, int]] = Counter()
    for n in range(records):
        for start in range(n - n % 200, n - 600, -200):
            counts[key_of(n), start] += 1
    return [f"{key},{count}" for (key, _), count in counts.items()]


def in_sessions(numbers: DataStream) -> DataStream:
    """Sum bursts of 30 numbers with gaps of 70 between them: one session per burst and key."""
    bursts = numbers.filter(lambda n: n % 100 < 30).map(lambda n: (n % 3, n, 1))
    sessions = bursts.key_by(lambda r: r[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(50)))
    return sessions.reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2] + b[2])).map(
        lambda r: f"{r[0]},{r[1]},{r[2]}", Types.STRING()
    )


def expected_in_sessions(records: int) -> Iterable[str]:
    found: dict[tuple[int, int], list[int]] = {}
    for n in range(records):
        if n % 100 < 30:
            found.setdefault((n % 3, n // 100), []).append(n)
    return [f"{key},{min(burst)},{len(burst)}" for (key, _), burst in found.items()]


# -------------------------------------------------------------------------------------------------------------- timers


class EveryRound(KeyedProcessFunction):
    """Emits, at the end of each round, how many records of the key came in it."""

    def open(self, runtime_context):
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        end = value - value % ROUND + ROUND - 1
        self.counts.put(end, (self.counts.get(end) or 0) + 1)
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()},{timestamp},{self.counts.get(timestamp)}"
        self.counts.remove(timestamp)


def expected_by_timers(records: int) -> Iterable[str]:
    counts = Counter((key_of(n), n - n % ROUND + ROUND - 1) for n in range(records))
    return [f"{key},{end},{count}" for (key, end), count in counts.items()]


# --------------------------------------------------------------------------------------------------- connected streams


class Both(KeyedCoProcessFunction):
    """Counts even and odd numbers in one state; every record gets the next count."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def _next(self, ctx):
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        return f"{ctx.get_current_key()},{seen}"

    def process_element1(self, value, ctx):
        yield self._next(ctx)

    def process_element2(self, value, ctx):
        yield self._next(ctx)


def expected_of_both(records: int) -> Iterable[str]:
    counts: Counter[str] = Counter()
    for n in range(records):
        counts[key_of(n)] += 1
    return [f"{key},{seen}" for key, count in counts.items() for seen in range(1, count + 1)]


# ------------------------------------------------------------------------------------------------------------ broadcast

RULES_STATE = MapStateDescriptor("rules", Types.LONG(), Types.STRING())


class RulesSoFar(KeyedBroadcastProcessFunction):
    """Emits, at the end of each round, how many rules of the broadcast state are from before."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value - value % ROUND + ROUND - 1)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES_STATE).put(value, f"rule {value}")

    def on_timer(self, timestamp, ctx):
        rules = [n for n, _ in ctx.get_broadcast_state(RULES_STATE).items() if n <= timestamp]
        yield f"{ctx.get_current_key()},{timestamp},{len(rules)},{sum(rules)}"


def expected_by_rules(records: int) -> Iterable[str]:
    rounds = {(key_of(n), n - n % ROUND + ROUND - 1) for n in range(records)}
    rules = [n for n in range(records) if n % RULES == 0]
    for key, end in rounds:
        so_far = [n for n in rules if n <= end]
        yield f"{key},{end},{len(so_far)},{sum(so_far)}"


# ------------------------------------------------------------------------------------------------------- loop and async


def step(record: tuple[int, int, int]) -> tuple[int, int, int]:
    start, now, steps = record
    return (start, now // 2 if now % 2 == 0 else 3 * now + 1, steps + 1) if now != 1 else record


def round_and_round(numbers: DataStream) -> DataStream:
    """Count the steps from a number to 1, one per way round a loop that contains an exchange."""
    loop = numbers.filter(lambda n: n % 97 == 1).map(lambda n: (n, n % 29 + 1, 0)).iterate(500)
    stepped = loop.key_by(lambda r: r[0]).map(step)
    loop.close_with(stepped.filter(lambda r: r[1] != 1))
    return stepped.filter(lambda r: r[1] == 1).map(lambda r: f"{r[0]},{r[2]}", Types.STRING())


def expected_round_and_round(records: int) -> Iterable[str]:
    for n in range(1, records, 97):
        record = (n, n % 29 + 1, 0)
        while record[1] != 1:
            record = step(record)
        yield f"{n},{record[2]}"


class Double(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(value % 7 / 100)
        return [f"{value},{value * 2}"]


def asked(numbers: DataStream) -> DataStream:
    some = numbers.filter(lambda n: n % 5 == 0)
    return AsyncDataStream.unordered_wait(some, Double(), Time.seconds(60), 50, Types.STRING())


def expected_asked(records: int) -> Iterable[str]:
    return [f"{n},{n * 2}" for n in range(0, records, 5)]


# -------------------------------------------------------------------------------------------------------- three levels


def by_levels(numbers: DataStream) -> DataStream:
    """Some records pass two exchanges one behind the other, the others go to the last operator at once."""
    tens = numbers.filter(lambda n: n % 2 == 0).key_by(key_of).map(lambda n: (n // 10, n)).name("tens")
    ones = numbers.filter(lambda n: n % 2 == 1).map(lambda n: (n // 10, n))
    return tens.union(ones).key_by(lambda r: r[0]).map(lambda r: f"{r[0]},{r[1]}", Types.STRING()).name("levels")


def expected_by_levels(records: int) -> Iterable[str]:
    return [f"{n // 10},{n}" for n in range(records)]


# -------------------------------------------------------------------------------------------------------------- the job

EXPECTED = {
    "tumbling": lambda records: expected_in_windows(records, 300),
    "sliding": expected_in_sliding_windows,
    "sessions": expected_in_sessions,
    "timers": expected_by_timers,
    "connected": expected_of_both,
    "broadcast": expected_by_rules,
    "loop": expected_round_and_round,
    "async": expected_asked,
    "levels": expected_by_levels,
}


def connected(numbers: DataStream) -> DataStream:
    even, odd = numbers.filter(lambda n: n % 2 == 0), numbers.filter(lambda n: n % 2 == 1)
    return even.connect(odd).key_by(key_of, key_of).process(Both(), Types.STRING())


def ruled(numbers: DataStream) -> DataStream:
    rules = numbers.filter(lambda n: n % RULES == 0).broadcast(RULES_STATE)
    return numbers.key_by(key_of).connect(rules).process(RulesSoFar(), Types.STRING())


BRANCHES: dict[str, Callable[[DataStream], DataStream]] = {
    "tumbling": lambda numbers: in_windows(numbers, 300),
    "sliding": in_sliding_windows,
    "sessions": in_sessions,
    "timers": lambda numbers: numbers.key_by(key_of).process(EveryRound(), Types.STRING()),
    "connected": connected,
    "broadcast": ruled,
    "loop": round_and_round,
    "async": asked,
    "levels": by_levels,
}


def build(
    records: int,
    per_second: float,
    folder: Path,
    *,
    parallelism: int = 2,
    interval_ms: int = 300,
    restore: str | None = None,
    backend: str = "hashmap",
    execution: str = "epochs",
    kinds: Iterable[str] = tuple(EXPECTED),
) -> StreamExecutionEnvironment:
    """Build the job, which writes one folder per kind below `folder`."""
    env = checkpointed_environment(
        folder,
        parallelism=parallelism,
        interval_ms=interval_ms,
        restore=restore,
        backend=backend,
        execution=execution,
    )
    env.set_max_parallelism(12)
    source = DataGeneratorSource(lambda n: n, records, RateLimiterStrategy.per_second(per_second))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0)).with_timestamp_assigner(
        NumberIsTime()
    )
    numbers = env.from_source(source, strategy, "numbers").uid("numbers")
    for kind in kinds:
        sink = FileSink.for_row_format(str(folder / "out" / kind), Encoder.simple_string_encoder()).build()
        BRANCHES[kind](numbers).sink_to(sink).uid(f"files of {kind}")
    return env


def verify(records: int, folder: Path, kinds: Iterable[str] = tuple(EXPECTED)) -> list[str]:
    """Return what is wrong with the committed files, kind by kind; an empty list if nothing is."""
    wrong = []
    for kind in kinds:
        found: Counter[str] = Counter()
        for part in (folder / "out" / kind).rglob("part-*"):
            found.update(part.read_text().splitlines())
        expected = Counter(EXPECTED[kind](records))
        if found != expected:
            missing, extra = expected - found, found - expected
            wrong.append(
                f"{kind}: {missing.total()} of {expected.total()} lost, as {list(missing)[:3]}; "
                f"{extra.total()} too many, as {list(extra)[:3]}"
            )
    return wrong
