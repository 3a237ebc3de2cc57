"""Candles of one minute from trades, on columns: a function of polars, then five aggregates in one pass.

    python examples/trade_candles.py

Trades travel as columns of Arrow. `clean` gets a DataFrame of polars with some thousand trades at a time, splits the
venue from the symbol, and drops trades that were cancelled. The windows take the opening, highest, lowest and last
price and the volume of each minute in vectors, so no Python function runs for a single trade.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ekorn.common import Row, Time, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ColumnGeneratorSource, ColumnStream, First, Last, Max, Min, Sum
from ekorn.datastream.window import TumblingEventTimeWindows

if TYPE_CHECKING:
    import polars
    import pyarrow

TRADES = 12_000
SYMBOLS = ("OAK@OSL", "ELM@OSL", "ASH@LON")
GAP_MS = 25  # between two trades

AS_SENT = Types.ROW_NAMED(
    ["symbol", "cents", "size", "cancelled", "at"],
    [Types.STRING(), Types.LONG(), Types.LONG(), Types.BOOLEAN(), Types.LONG()],
)
CLEAN = Types.ROW_NAMED(
    ["symbol", "venue", "cents", "size", "at"],
    [Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()],
)


def trade(number: int) -> tuple[str, int, int, bool, int]:
    """Return a trade: symbol and venue, price in cents, size, whether it was cancelled, and its time."""
    symbol = SYMBOLS[number % len(SYMBOLS)]
    cents = 5_000 + round(300 * math.sin(number / 1_300 + 2 * (number % len(SYMBOLS)))) + number * 13 % 61
    return symbol, cents, 1 + number * 7 % 50, number % 97 == 0, number * GAP_MS


def trades(first: int, count: int) -> pyarrow.RecordBatch:
    """Return the trades with some numbers as columns."""
    import pyarrow as pa

    columns = zip(*map(trade, range(first, first + count)), strict=True)
    return pa.record_batch(dict(zip(AS_SENT.get_field_names(), map(list, columns), strict=True)))


def clean(sent: polars.DataFrame) -> polars.DataFrame:
    """Split the venue from the symbol, and drop cancelled trades."""
    import polars as pl

    parts = pl.col("symbol").str.split("@")
    kept = sent.filter(~pl.col("cancelled"))
    return kept.select(parts.list.get(0).alias("symbol"), parts.list.get(1).alias("venue"), "cents", "size", "at")


def candles(parallelism: int = 2) -> list[Row]:
    """Run the job; return the candle of each symbol and minute, in order."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    source = ColumnGeneratorSource(trades, TRADES, AS_SENT)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "trades").set_parallelism(1)
    assert isinstance(stream, ColumnStream)
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    minutes = (
        stream.map_batches(clean, CLEAN, library="polars")
        .assign_timestamps_and_watermarks(in_time)
        .key_by(["symbol", "venue"])
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .aggregate(
            opening=First("cents"), highest=Max("cents"), lowest=Min("cents"), last=Last("cents"), volume=Sum("size")
        )
    )
    with minutes.execute_and_collect("candles") as found:
        return sorted(found, key=lambda candle: (candle["symbol"], candle["window_start"]))


def main() -> None:
    """Print the candles."""
    for candle in candles():
        minute = candle["window_start"] // 60_000
        prices = "  ".join(f"{candle[name] / 100:>6.2f}" for name in ("opening", "highest", "lowest", "last"))
        print(f"{candle['symbol']} minute {minute}  {prices}  volume {candle['volume']:>6}")


if __name__ == "__main__":
    main()
