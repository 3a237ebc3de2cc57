"""The jobs of the campaign: what they compute, and how to tell that nothing was lost, doubled or wrong.

A job kind is a function that draws a job from a stream of numbers 0, 1, 2, ... (the time of a number is the number)
into files below a folder, and one that says what must be in them. To add one, write both and enter them in `KINDS`;
every fault of the campaign then applies to it. What is put out must depend on the numbers alone, neither on epochs nor
on parallelism: then the expected lines can be listed, and a line too many or too few is an error of the job.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tamias.common import Time, Types
from tamias.common.serialization import Encoder
from tamias.datastream import DataStream
from tamias.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy, StreamingFileSink
from tamias.datastream.window import TumblingEventTimeWindows
from tests.live_jobs import Tally, expected_tally
from tests.spark import every_kind

KEYS = 17
ROUND = 100  # numbers between two timers of a key
RECENT = 5


@dataclass(frozen=True)
class JobKind:
    """One kind of job.

    Attributes:
        draw: Given the numbers; the streams of text lines to be written, by folder.
        expected: Given how many numbers there are; every line that must be written, by folder.
        order: For a line of a folder: its key and its place among the lines of that key, where order matters.
    """

    draw: Callable[[DataStream], dict[str, DataStream]]
    expected: Callable[[int], dict[str, Iterable[str]]]
    order: dict[str, Callable[[str], tuple[str, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a job's output."""

    lost: int = 0
    doubled: int = 0
    wrong: int = 0  # lines that should not be there at all
    out_of_order: int = 0
    examples: tuple[str, ...] = ()
    most: int = 1  # how many times as often as it must the line is there that is there most too often

    @property
    def exact(self) -> bool:
        return not (self.lost or self.doubled or self.wrong or self.out_of_order)


# ------------------------------------------------------------------------------------------------------------ allround


class TallyWithTimers(Tally):
    """Every kind of state that a key can have, and a timer a round: each line depends on all of them."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value - value % ROUND + ROUND - 1)
        for result in super().process_element(value, ctx):
            yield tally_line(result)

    def on_timer(self, timestamp, ctx):
        yield f"timer,{ctx.get_current_key()},{timestamp}"


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
    """Branches of the job that has every kind of operator."""
    return JobKind(
        draw=lambda numbers: {name: BRANCHES[name](numbers) for name in names},
        expected=lambda records: {name: every_kind.EXPECTED[name](records) for name in names},
    )


KINDS = {
    "allround": JobKind(draw_allround, expect_allround, {"tally": order_of_tally}),
    "windows": kinds("tumbling", "sliding", "sessions"),
    "connected": kinds("connected", "timers"),
    "broadcast": kinds("broadcast"),
    "loop": kinds("loop"),
    "async": kinds("async"),
}


# --------------------------------------------------------------------------------------------------- files and verdict


class Spread(BucketAssigner):
    """Lines spread over a few folders, so that one commit makes several files visible."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets

    def get_bucket_id(self, element, context):
        return f"bucket-{zlib.crc32(element.encode()) % self._buckets}"


def write_files(streams: dict[str, DataStream], folder: Path, *, roll: bool, buckets: int) -> None:
    """Each stream into its folder, exactly once; with `roll`, a part file ends with every checkpoint."""
    for name, stream in streams.items():
        builder = FileSink.for_row_format(str(folder / name), Encoder.simple_string_encoder())
        builder = builder.with_bucket_assigner(Spread(buckets))
        if roll:
            builder = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        stream.sink_to(builder.build()).uid(f"files of {name}")


def write_in_two_phases(streams: dict[str, DataStream], folder: Path, *, buckets: int) -> None:
    """The same through a sink function whose transactions are prepared, recovered and committed by the base class."""
    for name, stream in streams.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it is the sink of its kind that writes files
            builder = StreamingFileSink.for_row_format(str(folder / name), Encoder.simple_string_encoder())
            sink = builder.with_bucket_assigner(Spread(buckets)).build()
        stream.add_sink(sink).uid(f"files of {name}")


def verify(kind: str, records: int, folder: Path) -> Verdict:
    """Compare the committed files with what must be there."""
    lost = doubled = wrong = out_of_order = most = 0
    examples: list[str] = []
    for name, lines in KINDS[kind].expected(records).items():
        expected, found = Counter(lines), Counter[str]()
        for part in sorted((folder / name).rglob("part-*")):
            in_part = part.read_text().splitlines()
            found.update(in_part)
            if name in KINDS[kind].order:
                out_of_order += _out_of_order(in_part, KINDS[kind].order[name])
        missing, extra = expected - found, found - expected
        lost += missing.total()
        most = max(most, *(math.ceil(found[line] / count) for line, count in expected.items()))
        doubled += sum(count for line, count in extra.items() if line in expected)
        wrong += sum(count for line, count in extra.items() if line not in expected)
        examples += [f"{name}: lost {line}" for line in list(missing)[:3]]
        examples += [f"{name}: too many {line}" for line in list(extra)[:3]]
    return Verdict(lost, doubled, wrong, out_of_order, tuple(examples[:12]), most)


def _out_of_order(lines: list[str], order: Callable[[str], tuple[str, int]]) -> int:
    """Lines of one key that stand before an earlier one in the same file."""
    last: dict[str, int] = {}
    wrong = 0
    for line in lines:
        key, place = order(line)
        wrong += place < last.get(key, place)
        last[key] = place
    return wrong
