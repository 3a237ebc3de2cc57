"""Orders with watermarks where the tests want them, in both forms, and all aggregates of windows on them."""

import pytest

from ekorn.common import Duration, Row, Time, Types, Watermark, WatermarkStrategy
from ekorn.datastream import AssignerWithPunctuatedWatermarks, OutputTag, StreamExecutionEnvironment
from ekorn.datastream.columns import (
    ApproxCountDistinct,
    Count,
    CountDistinct,
    First,
    Last,
    Max,
    Mean,
    Quantile,
    Sum,
)
from ekorn.testing.local_run import on_local_engine
from tests.columns.sum_of_squares import SumOfSquares

ORDER = Types.ROW_NAMED(["customer", "amount", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
ENGINES = pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
AGGREGATES = {
    "total": Sum("amount"),
    "orders": Count(),
    "known": Count("amount"),
    "largest": Max("amount"),
    "mean": Mean("amount"),
    "distinct": CountDistinct("amount"),
    "times": ApproxCountDistinct("at"),
    "halves": Quantile("amount", [0.5, 1]),
    "squares": SumOfSquares("amount"),
}
IN_ORDER = AGGREGATES | {"first": First("amount"), "last": Last("at")}  # one order of arrival, at parallelism 1
LATE = OutputTag("late")


def millis(size, *more):
    return (Time.milliseconds(size), *map(Time.milliseconds, more))


def order(customer, amount, at):
    return Row(customer=customer, amount=amount, at=at)


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def watermarked(env, records, out_of_order=0):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(out_of_order))
    return env.from_collection(records, ORDER), strategy.with_timestamp_column("at")


def in_form(form, records, *, parallelism=1, out_of_order=0, max_rows=4):
    stream, strategy = watermarked(environment(parallelism), records, out_of_order)
    if form == "rows":
        return stream.assign_timestamps_and_watermarks(strategy)
    return stream.to_columns(max_rows=max_rows).assign_timestamps_and_watermarks(strategy)


def collected(stream, *, continuous=False):
    with on_local_engine(continuous=continuous), stream.execute_and_collect() as records:
        return list(records)


def as_set(records):
    return sorted(map(str, records))


class Marked(AssignerWithPunctuatedWatermarks):
    """Takes timestamps from `at`; a row with the customer "mark" is followed by a watermark of its time."""

    def extract_timestamp(self, value, record_timestamp):
        return value.at

    def check_and_get_next_watermark(self, last_element, extracted_timestamp):
        return Watermark(extracted_timestamp) if last_element.customer == "mark" else None


def marked(form, records, max_rows):
    """Return rows with watermarks at the same places in both forms: batches end before a watermark."""
    stream = environment().from_collection(records, ORDER).assign_timestamps_and_watermarks(Marked())
    return stream if form == "rows" else stream.to_columns(max_rows=max_rows)
