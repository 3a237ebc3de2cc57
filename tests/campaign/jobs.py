"""The jobs of the campaign, and the check that no line of their output is lost, doubled or wrong.

A job kind is two functions. One draws a job from a stream of numbers 0, 1, 2, ... (the time of a number is the number);
the other returns the lines that must be written (`outputs.py`). To add a kind, write both and enter
them in `KINDS`: every fault of the campaign then applies to it. The output must depend on the numbers alone, neither on
epochs nor on parallelism. Then all lines are known, and a line too many or too few is an error of the job.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ekorn.common import Time, Types
from ekorn.datastream import DataStream, KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from tests.campaign.column_jobs import COLUMNS, draw_columns, expect_columns, order_of_totals
from tests.campaign.outputs import written_lines
from tests.live_jobs import Tally, expected_tally
from tests.spark import every_kind

KEYS = 17
ROUND = 100  # numbers between two timers of a key
RECENT = 5
PIPELINES = ("left", "right")


@dataclass(frozen=True)
class JobKind:
    """One kind of job.

    Attributes:
        draw: Takes the numbers; returns the streams of text lines to write, by folder.
        expected: Takes the count of numbers; returns every line that must be written, by folder.
        order: By folder where order matters: takes a line; returns its key, and its place among the lines of that key.
    """

    draw: Callable[[DataStream], dict[str, DataStream]]
    expected: Callable[[int], dict[str, Iterable[str]]]
    order: dict[str, Callable[[str], tuple[str, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """The errors in a job's output."""

    lost: int = 0
    doubled: int = 0
    wrong: int = 0  # lines that are not expected at all
    out_of_order: int = 0
    examples: tuple[str, ...] = ()
    most: int = 1  # the largest ratio of found to expected occurrences of a line

    @property
    def exact(self) -> bool:
        return not (self.lost or self.doubled or self.wrong or self.out_of_order)


# ------------------------------------------------------------------------------------------------------------ allround


class TallyWithTimers(Tally):
    """Keeps every kind of keyed state, and a timer in each round; the lines depend on all of them."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value - value % ROUND + ROUND - 1)
        for result in super().process_element(value, ctx):
            yield tally_line(result)

    def on_timer(self, timestamp, ctx):
        yield f"timer,{ctx.get_current_key()},{timestamp}"


def held_up(numbers: DataStream, kind: str) -> DataStream:
    """Return the numbers behind an operator that is slower than their source, so that some are always on their way.

    Jobs whose output depends on the order of numbers with different keys have one subtask of it.
    """

    def slowly(number: int) -> int:
        time.sleep(0.002)
        return number

    if kind in ("allround", "windows"):
        return numbers.key_by(lambda n: n % KEYS).map(slowly, Types.LONG()).uid("slowly")
    return numbers.global_().map(slowly, Types.LONG()).uid("slowly").set_parallelism(1)


def tally_line(result: tuple[int, ...]) -> str:
    return ",".join(["tally", *map(str, result)])


def draw_allround(numbers: DataStream) -> dict[str, DataStream]:
    window = TumblingEventTimeWindows.of(Time.milliseconds(ROUND))
    sums = numbers.map(lambda n: (n % KEYS, n // ROUND, n)).key_by(lambda r: r[0]).window(window)
    return {
        "tally": numbers.key_by(lambda n: n % KEYS).process(TallyWithTimers(RECENT), Types.STRING()).uid("tally"),
        "sums": sums.reduce(lambda a, b: (a[0], a[1], a[2] + b[2]))
        .uid("sums")
        .map(lambda r: f"{r[0]},{r[1]},{r[2]}", Types.STRING()),
    }


def expect_allround(records: int) -> dict[str, Iterable[str]]:
    tally = [tally_line(result) for result in expected_tally(records, KEYS, RECENT)]
    timers = {(n % KEYS, n - n % ROUND + ROUND - 1) for n in range(records)}
    sums = Counter[tuple[int, int]]()
    for n in range(records):
        sums[n % KEYS, n // ROUND] += n
    return {
        "tally": [*tally, *(f"timer,{key},{end}" for key, end in timers)],
        "sums": [f"{key},{window},{total}" for (key, window), total in sums.items()],
    }


def order_of_tally(line: str) -> tuple[str, int]:
    kind, key, number = line.split(",")[:3]
    return f"{kind} {key}", int(number)


# ---------------------------------------------------------------------------------------------- every kind of operator


def draw_connected(numbers: DataStream) -> DataStream:
    even, odd = numbers.filter(lambda n: n % 2 == 0), numbers.filter(lambda n: n % 2 == 1)
    key = every_kind.key_of
    return even.uid("even").connect(odd.uid("odd")).key_by(key, key).process(every_kind.Both(), Types.STRING())


def draw_broadcast(numbers: DataStream) -> DataStream:
    rules = numbers.filter(lambda n: n % every_kind.RULES == 0).uid("rules").broadcast(every_kind.RULES_STATE)
    return numbers.key_by(every_kind.key_of).connect(rules).process(every_kind.RulesSoFar(), Types.STRING())


BRANCHES: dict[str, Callable[[DataStream], DataStream]] = {
    "tumbling": lambda numbers: every_kind.in_windows(numbers, 300),
    "sliding": every_kind.in_sliding_windows,
    "sessions": every_kind.in_sessions,
    "timers": lambda numbers: numbers.key_by(every_kind.key_of).process(every_kind.EveryRound(), Types.STRING()),
    "connected": draw_connected,
    "broadcast": draw_broadcast,
    "loop": every_kind.round_and_round,
    "async": every_kind.asked,
}


def kinds(*names: str) -> JobKind:
    """Make a job kind from branches of the job with every kind of operator."""
    return JobKind(
        draw=lambda numbers: {name: BRANCHES[name](numbers) for name in names},
        expected=lambda records: {name: every_kind.EXPECTED[name](records) for name in names},
    )


# ------------------------------------------------------------------------------------------ numbers in any order


class Count(KeyedProcessFunction):
    """Counts the numbers of each key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{ctx.get_current_key()},{count}"


def draw_unordered(numbers: DataStream) -> dict[str, DataStream]:
    return {
        "numbers": numbers.map(str, Types.STRING()).uid("text"),
        "counts": numbers.key_by(lambda n: n % KEYS).process(Count(), Types.STRING()).uid("counts"),
    }


def expect_unordered(records: int) -> dict[str, Iterable[str]]:
    counts = [f"{key},{count + 1}" for key in range(KEYS) for count in range(len(range(key, records, KEYS)))]
    return {"numbers": map(str, range(records)), "counts": counts}


# ------------------------------------------------------------------------------------------------- several regions


def draw_pipeline(numbers: DataStream, name: str) -> dict[str, DataStream]:
    """Draw one of the pipelines that have no connection and no slot in common."""
    apart = numbers.slot_sharing_group(name)
    tally = apart.key_by(lambda n: n % KEYS).process(TallyWithTimers(RECENT), Types.STRING()).uid(f"tally-{name}")
    return {f"tally-{name}": tally}


def expect_regions(records: int) -> dict[str, Iterable[str]]:
    return {f"tally-{name}": [*expect_allround(records)["tally"]] for name in PIPELINES}


KINDS = {
    "allround": JobKind(draw_allround, expect_allround, {"tally": order_of_tally}),
    "windows": kinds("tumbling", "sliding", "sessions"),
    "connected": kinds("connected", "timers"),
    "broadcast": kinds("broadcast"),
    "loop": kinds("loop"),
    "async": kinds("async"),
}
# For inputs of several splits, and for those that have no end: neither the order nor the time of the numbers matters.
UNORDERED = "unordered"
# For jobs that run continuously. Each pipeline has numbers of its own (`driver.py`).
REGIONS = "regions"
ALL_KINDS = KINDS | {
    UNORDERED: JobKind(draw_unordered, expect_unordered),
    REGIONS: JobKind(
        lambda numbers: draw_pipeline(numbers, PIPELINES[0]),
        expect_regions,
        {f"tally-{name}": order_of_tally for name in PIPELINES},
    ),
    COLUMNS: JobKind(lambda numbers: draw_columns(numbers, COLUMNS), expect_columns, {"totals": order_of_totals}),
}


# --------------------------------------------------------------------------------------------------------- the verdict


def verify(kind: str, records: int, folder: Path) -> Verdict:
    """Compare the committed files, rows or messages with the expected lines."""
    lost = doubled = wrong = out_of_order = most = 0
    examples: list[str] = []
    for name, lines in ALL_KINDS[kind].expected(records).items():
        expected, found = Counter(lines), Counter[str]()
        for in_part in written_lines(name, folder):
            found.update(in_part)
            if name in ALL_KINDS[kind].order:
                out_of_order += _out_of_order(in_part, ALL_KINDS[kind].order[name])
        missing, extra = expected - found, found - expected
        lost += missing.total()
        most = max(most, *(math.ceil(found[line] / count) for line, count in expected.items()))
        doubled += sum(count for line, count in extra.items() if line in expected)
        wrong += sum(count for line, count in extra.items() if line not in expected)
        examples += [f"{name}: lost {line}" for line in list(missing)[:3]]
        examples += [f"{name}: too many {line}" for line in list(extra)[:3]]
    return Verdict(lost, doubled, wrong, out_of_order, tuple(examples[:12]), most)


def _out_of_order(lines: list[str], order: Callable[[str], tuple[str, int]]) -> int:
    """Count the lines that stand after a later line of the same key in the same file."""
    last: dict[str, int] = {}
    wrong = 0
    for line in lines:
        key, place = order(line)
        wrong += place < last.get(key, place)
        last[key] = place
    return wrong
