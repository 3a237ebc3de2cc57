"""A job on columns for the campaign: aggregates, windows and a batch function, whose form may change from life to life.

`form` says whether the operators get columns or rows. Both draw operators with the same uids, and a checkpoint that one
form took restores in the other. The lines that must be written are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ekorn.common import Row, Time, Types
from ekorn.datastream import DataStream
from ekorn.datastream.columns import Count, Last, Max, Mean, Sum
from ekorn.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

__all__ = ["COLUMNS", "FORMS", "draw_columns", "expect_columns", "order_of_totals"]

COLUMNS = "columns"
FORMS = ("columns", "rows")
KEYS = 23
TUMBLING = 250
SLIDING, SLIDE = 300, 100

_NUMBER = Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()])
_DOUBLED = Types.ROW_NAMED(["key", "double"], [Types.STRING(), Types.LONG()])


def key_of(number: int) -> str:
    return f"key-{number * 7 % KEYS}"


def draw_columns(numbers: DataStream, form: str) -> dict[str, DataStream]:
    """Draw the job in a form; return the streams of text lines to write, by folder."""
    rows = numbers.key_by(key_of).map(lambda n: Row(key=key_of(n), number=n), _NUMBER)
    stream: Any = rows.to_columns(max_rows=64) if form == COLUMNS else rows
    keyed = stream.key_by("key")
    totals = keyed.aggregate(total=Sum("number"), count=Count(), mean=Mean("number"), last=Last("number"))
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(TUMBLING)))
    sliding = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(SLIDING), Time.milliseconds(SLIDE)))
    return {
        "totals": totals.uid("totals").map(total_line, Types.STRING()),
        "tumbling": tumbling.aggregate(total=Sum("number"), largest=Max("number"))
        .uid("tumbling")
        .map(lambda r: f"{r['key']},{r['window_start']},{r['total']},{r['largest']}", Types.STRING()),
        "sliding": sliding.aggregate(count=Count()).uid("sliding").map(sliding_line, Types.STRING()),
        "doubled": doubled(stream, form).map(lambda r: f"{r['key']},{r['double']}", Types.STRING()),
    }


def doubled(stream: Any, form: str) -> DataStream:
    """Return a stateless part: in the form of columns a batch function and an exchange of whole batches."""
    if form == COLUMNS:
        spread = stream.rebalance().map_batches(double_batch, _DOUBLED, library="numpy")
    else:
        spread = stream.rebalance().map(lambda r: Row(key=r["key"], double=2 * r["number"]), _DOUBLED)
    result: DataStream = spread
    return result


def double_batch(columns: dict[str, Any]) -> dict[str, Any]:
    return {"key": columns["key"], "double": 2 * columns["number"]}


def total_line(row: Row) -> str:
    return f"{row['key']},{row['last']},{row['count']},{row['total']},{row['mean']:.3f}"


def sliding_line(row: Row) -> str:
    return f"{row['key']},{row['window_start']},{row['count']}"


def order_of_totals(line: str) -> tuple[str, int]:
    key, number = line.split(",")[:2]
    return key, int(number)


def expect_columns(records: int) -> dict[str, Iterable[str]]:
    """Return every line that must be written, by folder."""
    totals, sums, counts = [], Counter[str](), Counter[str]()
    windows, largest, slides = Counter[tuple[str, int]](), dict[tuple[str, int], int](), Counter[tuple[str, int]]()
    for n in range(records):
        key = key_of(n)
        sums[key] += n
        counts[key] += 1
        totals.append(f"{key},{n},{counts[key]},{sums[key]},{sums[key] / counts[key]:.3f}")
        window = key, n - n % TUMBLING
        windows[window] += n
        largest[window] = n
        for start in range(n - n % SLIDE, n - SLIDING, -SLIDE):
            slides[key, start] += 1
    return {
        "totals": totals,
        "tumbling": [f"{key},{start},{total},{largest[key, start]}" for (key, start), total in windows.items()],
        "sliding": [f"{key},{start},{count}" for (key, start), count in slides.items()],
        "doubled": [f"{key_of(n)},{2 * n}" for n in range(records)],
    }
