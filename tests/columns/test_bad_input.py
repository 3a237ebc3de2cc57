"""Bad input on columns: what fails, what the error names, and which rows are skipped. Rows are the model."""

import datetime
import decimal
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.column_batch import MOST_BYTES, MOST_ROWS, ColumnBatch
from ekorn.columns.origin import Origin, joined_origins
from ekorn.common import Duration, Row, RuntimeExecutionMode, Time, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import (
    ApproxCountDistinct,
    BatchAggregate,
    ColumnGeneratorSource,
    Count,
    CountDistinct,
    First,
    Last,
    Max,
    Mean,
    Min,
    ParquetColumns,
    Sum,
)
from ekorn.datastream.connectors.file_system import FileSource
from ekorn.datastream.window import (
    CountSlidingWindowAssigner,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from ekorn.errors import JobExecutionError
from ekorn.functions.source_contract import Batch
from ekorn.table import DataTypes
from ekorn.testing.local_run import on_local_engine
from tests.examples_by_profile import examples

ORDER = Types.ROW_NAMED(["customer", "amount", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
ENGINES = pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
HUGE = 2**62


class Spread(BatchAggregate):
    """The largest less the smallest amount so far."""

    def create(self, count):
        return [np.full(count, np.inf), np.full(count, -np.inf)]

    def add(self, accumulators, keys, columns):
        amounts = columns[0].fill_null(7).to_numpy().astype(float)
        np.minimum.at(accumulators[0], keys, amounts)
        np.maximum.at(accumulators[1], keys, amounts)

    def merge(self, accumulators, keys, others):
        np.minimum.at(accumulators[0], keys, others[0])
        np.maximum.at(accumulators[1], keys, others[1])

    def results(self, accumulators):
        return accumulators[1] - accumulators[0]

    def result_type(self, columns):
        return DataTypes.DOUBLE()


AGGREGATES = {
    "orders": Count(),
    "known": Count("amount"),
    "largest": Max("amount"),
    "total": Sum("amount"),  # fails in the middle: others have taken the rows
    "smallest": Min("amount"),
    "mean": Mean("amount"),
    "first": First("amount"),
    "last": Last("amount"),
    "name": Max("customer"),  # kept as Python objects
    "distinct": ApproxCountDistinct("amount"),  # not put back
    "exact": CountDistinct("customer"),
    "spread": Spread("amount"),
}


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def order(customer, amount, at=0):
    return Row(customer=customer, amount=amount, at=at)


def orders(env, records):
    return env.from_collection(records, ORDER)


def collected(stream, *, continuous=False):
    with on_local_engine(continuous=continuous), stream.execute_and_collect() as records:
        return list(records)


def as_set(records):
    return sorted(map(str, records))


def with_letters(results):
    """Return the results and the records of dead letters in one stream."""
    letters = results.get_dead_letters().map(lambda letter: ("letter", str(letter.record), letter.timestamp))
    return results.map(lambda row: ("row", str(row))).union(letters)


def failure(stream, *, continuous=False):
    with pytest.raises(JobExecutionError) as caught:
        collected(stream, continuous=continuous)
    return str(caught.value)


amounts = st.none() | st.integers(-9, 9) | st.sampled_from([HUGE, -HUGE])
rows_of_orders = st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), amounts, st.integers(0, 40)), max_size=30)


# ----------------------------------------------------------------------- aggregates skip rows exactly


@settings(max_examples=examples(25), deadline=None)
@given(records=rows_of_orders, max_rows=st.integers(1, 12), batch=st.booleans())
def test_rows_that_overflow_a_sum_leave_aggregates_as_they_leave_those_of_rows(records, max_rows, batch):
    found = []
    for form in ("rows", "columns"):
        env = environment()
        if batch:
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        stream = orders(env, [order(*each) for each in records])
        stream = stream if form == "rows" else stream.to_columns(max_rows=max_rows)
        results = stream.key_by("customer").aggregate(**AGGREGATES).on_record_error("dead-letter")
        found.append(as_set(collected(with_letters(results))))
    assert found[0] == found[1]


@settings(max_examples=examples(40), deadline=None)
@given(
    records=rows_of_orders,
    max_rows=st.integers(1, 12),
    lateness=st.sampled_from([0, 15]),
    assigner=st.sampled_from(
        [
            TumblingEventTimeWindows.of(Time.milliseconds(10)),
            SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(20)),  # with gaps
            EventTimeSessionWindows.with_gap(Time.milliseconds(2)),
            CountSlidingWindowAssigner.of(3, 2),
        ]
    ),
)
def test_rows_that_overflow_a_window_leave_it_as_they_leave_that_of_rows(records, max_rows, lateness, assigner):
    found = []
    for form in ("rows", "columns"):
        env = environment()
        env.get_config().set_auto_watermark_interval(0)  # one watermark, at the end: batches do not decide what is late
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_column("at")
        stream = orders(env, [order(*each) for each in records])
        stream = stream if form == "rows" else stream.to_columns(max_rows=max_rows)
        windows = stream.assign_timestamps_and_watermarks(strategy).key_by("customer").window(assigner)
        results = windows.allowed_lateness(lateness).aggregate(**AGGREGATES).on_record_error("dead-letter")
        found.append(as_set(collected(with_letters(results))))
    assert found[0] == found[1]


@ENGINES
@pytest.mark.parametrize("emits", ["each", "last"])
def test_a_row_that_overflows_goes_to_the_dead_letters_once_and_the_others_count(continuous, emits):
    records = [order("a", HUGE, 0), order("b", 1, 1), order("a", HUGE, 2), order("c", HUGE, 3), order("a", 5, 4)]
    columns = orders(environment(), records).to_columns()
    results = columns.key_by("customer").aggregate(emits=emits, n=Count(), total=Sum("amount"))
    found = collected(with_letters(results.on_record_error("dead-letter")), continuous=continuous)
    assert [each for each in found if each[0] == "letter"] == [("letter", str(order("a", HUGE, 2)), None)]
    assert ("row", str(Row(customer="a", n=2, total=HUGE + 5))) in found


@ENGINES
def test_an_overflow_names_the_operator_the_column_and_the_row(continuous):
    records = [order("a", 1), order("a", HUGE), order("b", HUGE), order("a", HUGE)]
    for form in ("rows", "columns"):
        stream = orders(environment(), records)
        stream = stream if form == "rows" else stream.to_columns()
        text = failure(stream.key_by("customer").aggregate(total=Sum("amount")).name("totals"), continuous=continuous)
        assert "'totals'" in text and f"Sum('amount') of a key is {2 * HUGE + 1} with this row" in text
        assert ("position 3 of a batch of 4" in text) == (form == "columns")


def test_a_window_names_the_row_of_the_batch_and_not_that_of_its_panes():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    records = [order("a", 1, 1), order("b", HUGE, 2), order("a", 2, 3), order("b", HUGE, 4)]
    columns = orders(environment(), records).to_columns().assign_timestamps_and_watermarks(strategy)
    windows = columns.key_by("customer").window(SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(5)))
    assert "at=4) (at position 3 of a batch of 4)" in failure(windows.aggregate(total=Sum("amount")))


# ----------------------------------------------------------------------- functions by the batch


@ENGINES
def test_the_first_row_with_which_a_batch_function_fails_is_named(continuous):
    def refuse_sevens(batch):
        if 7 in batch.column("amount").to_pylist():
            raise ValueError("a seven")
        return batch

    records = [order("a", n) for n in range(10)] + [order("b", 7)]
    text = failure(orders(environment(), records).map_batches(refuse_sevens, ORDER).name("mine"), continuous=continuous)
    assert "'mine'" in text and "ValueError: a seven" in text and "refuse_sevens" in text
    assert "Row(customer='a', amount=7, at=0) (at position 7 of a batch of 11)" in text


def test_an_expression_that_fails_names_the_column_and_the_row():
    records = [order("a", n, 3 - n) for n in range(6)]
    columns = orders(environment(), records).to_columns()
    text = failure(columns.project("customer", same=pc.field("at") + 1, share=pc.divide(pc.scalar(1), pc.field("at"))))
    assert "column 'share': divide by zero" in text and "at=0) (at position 3 of a batch of 6)" in text
    text = failure(columns.filter(pc.divide(pc.scalar(1), pc.field("at")) > 0).name("kept"))
    assert "divide by zero" in text and "'kept'" in text and "position 3 of a batch of 6" in text


def test_rows_for_which_an_expression_fails_are_skipped():
    columns = orders(environment(), [order("a", n, 3 - n) for n in range(6)]).to_columns()
    shares = columns.project("amount", share=pc.divide(pc.scalar(6), pc.field("at"))).on_record_error("skip")
    kept = shares.filter(pc.divide(pc.scalar(4), pc.field("share")) >= -1).on_record_error("skip")
    assert as_set(collected(kept)) == as_set(Row(amount=n, share=int(6 / (3 - n))) for n in (0, 1, 2, 4, 5))


@pytest.mark.parametrize("result", [["1", "x", "3"], ["1", None, "3"]], ids=["text", "null"])
def test_a_value_that_does_not_fit_the_declared_type_is_named_and_skipped(result):
    declared = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT().not_null())])

    def texts(batch):
        return pa.record_batch({"n": pa.array([result[n] for n in batch.column("amount").to_pylist()], pa.string())})

    records = [order("a", n) for n in range(3)]
    text = failure(orders(environment(), records).map_batches(texts, declared))
    assert "in column 'n', which is declared as int32" in text and "position 1 of a batch of 3" in text
    skipped = orders(environment(), records).map_batches(texts, declared).on_record_error("skip")
    assert as_set(collected(skipped)) == as_set([Row(n=1), Row(n=3)])


def test_records_that_do_not_fit_the_columns_are_skipped_alone():
    records = [order("a", 1, 1), order("b", "many", 2), order("c", 3, 3), order("d", None, 4), order("e", 2**70, 5)]
    plain = environment().from_collection(records)
    not_null = DataTypes.ROW([
        DataTypes.FIELD("customer", DataTypes.STRING()),
        DataTypes.FIELD("amount", DataTypes.BIGINT().not_null()),
        DataTypes.FIELD("at", DataTypes.BIGINT()),
    ])  # fmt: skip
    assert "column 'amount'" in failure(plain.to_columns(not_null))
    plain = environment().from_collection(records)
    columns = plain.to_columns(not_null).on_record_error("dead-letter")
    found = collected(with_letters(columns))
    letters = [("letter", str(record), None) for record in (records[1], records[3], records[4])]
    assert as_set(found) == as_set([("row", str(records[0])), ("row", str(records[2])), *letters])


def test_a_batch_function_that_fails_for_an_outside_reason_is_called_once(tmp_path):
    def unreachable(batch):
        with open(tmp_path / "calls", "a") as calls:
            calls.write(f"{batch.num_rows}\n")
        raise ConnectionError("no answer")

    failure(orders(environment(), [order("a", n) for n in range(8)]).map_batches(unreachable, ORDER))
    assert (tmp_path / "calls").read_text() == "8\n"


# ----------------------------------------------------------------------- partitioners


def test_a_row_with_which_a_partitioner_fails_is_named_or_skipped():
    def by_share(amounts, count):
        return pc.divide(12, amounts).cast(pa.int64()).to_numpy() % count

    records = [order("a", n) for n in (3, 2, 0, 1)]
    parted = orders(environment(2), records).to_columns().partition_custom(by_share, "amount")
    assert "position 2 of a batch of 4" in failure(parted.filter(pc.field("at") == 0))
    columns = orders(environment(2), records).to_columns().filter(pc.field("at") == 0).on_record_error("dead-letter")
    letters = columns.get_dead_letters().map(lambda letter: ("letter", letter.record.amount))
    sent = columns.partition_custom(by_share, "amount").map(lambda row: ("row", row.amount))
    assert as_set(collected(sent.union(letters))) == as_set([("row", 3), ("row", 2), ("row", 1), ("letter", 0)])


# ----------------------------------------------------------------------- sources and their positions

NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])


def generated(generate, count=1000, parallelism=1):
    source = ColumnGeneratorSource(generate, count, NUMBER)
    return environment(parallelism).from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


def numbers(first, count):
    return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})


@pytest.mark.parametrize(
    ("generate", "message"),
    [
        (lambda first, count: numbers(first, count - 1), r"returned \d+ rows for \(0, \d+\); it must return"),
        (lambda first, count: None, r"returned None for \(0, \d+\)"),
        (lambda first, count: pa.record_batch({"m": pa.array(range(count))}), r"the columns \(m: int64\), and \(n: "),
        (lambda first, count: pa.record_batch({"n": ["x"] * count}), r"returned for \(0, \d+\) 'x' \(string\)"),
    ],
)  # fmt: skip
def test_a_generator_that_breaks_its_promise_is_refused(generate, message):
    with pytest.raises(JobExecutionError, match=message):
        collected(generated(generate))


def test_an_error_names_the_number_of_a_generated_row():
    def refuse(batch):
        if 700 in batch.column("n").to_pylist():
            raise ValueError("no")
        return batch

    assert "row 700 of the generator" in failure(generated(numbers).map_batches(refuse, NUMBER))
    odd = generated(numbers).filter(pc.bit_wise_and(pc.field("n"), 1) == 0)
    assert "one of the rows" in failure(odd.map_batches(refuse, NUMBER))


def test_an_error_names_the_file_and_the_row_behind_an_exchange(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": pa.array(range(1000), pa.int64())}), path, row_group_size=300)
    columns = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])
    source = FileSource.for_bulk_file_format(ParquetColumns(columns, batch_size=100), str(path)).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "files").rebalance()
    text = failure(stream.project(m=pc.divide(pc.scalar(1), pc.field("n") - 707)))
    assert f"row 707 of '{path}'" in text, text[-400:]


def test_a_source_that_gives_other_columns_than_it_declares_is_refused():
    class Odd(ColumnGeneratorSource):
        def create_reader(self, split, position):
            reader = super().create_reader(split, position)
            read = reader.read

            def other(most):
                batch = read(most)
                return Batch([ColumnBatch(pa.record_batch({"k": ["x"] * len(b)})) for b in batch.values])

            reader.read = other  # type: ignore[method-assign]
            return reader

    stream = environment().from_source(Odd(numbers, 5, NUMBER), WatermarkStrategy.no_watermarks(), "odd")
    assert "the columns (k: string), and (n: int64) are declared" in failure(stream)


def test_rows_of_a_source_that_do_not_fit_are_skipped(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": pa.array([1, None, 3], pa.int64())}), tmp_path / "numbers.parquet")
    columns = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT().not_null())])
    source = FileSource.for_bulk_file_format(ParquetColumns(columns), str(tmp_path)).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "files").on_record_error("skip")
    assert as_set(collected(stream)) == as_set([Row(n=1), Row(n=3)])


def test_the_origin_of_joined_batches_is_their_run_of_rows():
    one, next_one, other = Origin("'f'", 0, 10), Origin("'f'", 10, 5), Origin("'g'", 0, 5)
    assert joined_origins([one, next_one]) == Origin("'f'", 0, 15)
    assert joined_origins([next_one, one]) == Origin("'f'", 0, 15, exact=False)
    assert joined_origins([one, other]) is None and joined_origins([one, None]) is None and joined_origins([]) is None


# ----------------------------------------------------------------------- keys of every kind

DAY = datetime.date(2024, 1, 1)
PLACE = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.DOUBLE()), DataTypes.FIELD("y", DataTypes.INT())])
KEYS: dict[str, tuple[Any, list[Any]]] = {
    "double": (DataTypes.DOUBLE(), [0.0, -0.0, float("nan"), None, 1.5, float("inf"), float("nan")]),
    "decimal": (DataTypes.DECIMAL(20, 2), [decimal.Decimal(text) for text in ("1.10", "-3.00", "1.1")]),
    "zoned": (DataTypes.TIMESTAMP_LTZ(6), ["now", None, "later", "now"]),
    "date": (DataTypes.DATE(), [DAY, None, datetime.date(1969, 1, 1), DAY]),
    "nested": (PLACE, [*(Row(x=x, y=1) for x in (float("nan"), 0.0, -0.0, float("nan"))), None]),
    "boolean": (DataTypes.BOOLEAN(), [True, None, False, True]),
    "tiny": (DataTypes.TINYINT(), [1, -1, None, 1]),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_kind_are_the_keys_of_rows(kind):
    from ekorn.common.time import Instant

    data_type, keys = KEYS[kind]
    keys = [{"now": Instant(1, 5000), "later": Instant(2, 0)}.get(k, k) if isinstance(k, str) else k for k in keys]
    row_type = DataTypes.ROW([DataTypes.FIELD("k", data_type), DataTypes.FIELD("n", DataTypes.BIGINT())])
    records = [Row(k=key, n=n) for n, key in enumerate(keys * 2)]
    found = []
    for form in ("rows", "columns"):
        columns = environment(3).from_collection(records).to_columns(row_type, max_rows=3)
        stream = columns.rebalance() if form == "columns" else columns.to_rows().rebalance()
        results = stream.key_by("k").aggregate(rows=Count(), last=Last("k"), total=Sum("n"))
        found.append(collected(results))
    counts = [sorted(f"{row.k!r} {row.rows}" for row in each) for each in found]
    assert [text.replace("-0.0", "0.0") for text in counts[1]] == [text.replace("-0.0", "0.0") for text in counts[0]]


def test_nested_columns_pass_every_operator():
    inner = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    row_type = DataTypes.ROW([
        DataTypes.FIELD("id", DataTypes.BIGINT()),
        DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
        DataTypes.FIELD("counts", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
        DataTypes.FIELD("inner", inner),
    ])  # fmt: skip
    records = [
        Row(id=n, tags=None if n % 3 == 0 else [str(n), None], counts={"x": n} if n % 2 else {}, inner=Row(a=n, b=None))
        for n in range(20)
    ]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("id")
    columns = environment(2).from_collection(records).to_columns(row_type, max_rows=3)
    kept = columns.rebalance().filter(pc.field("id") < 15).assign_timestamps_and_watermarks(strategy)
    chosen = kept.project("id", "tags", "counts", "inner").map_batches(lambda batch: batch, row_type)
    assert as_set(collected(chosen.union(chosen.filter(pc.field("id") < 0)))) == as_set(records[:15])
    lasts = kept.key_by("id").aggregate(tags=Last("tags"), counts=First("counts"), inner=Last("inner"))
    assert as_set(collected(lasts)) == as_set(records[:15])


# ----------------------------------------------------------------------- memory and shapes


def test_dictionaries_that_differ_from_batch_to_batch_and_wide_texts_become_the_declared_type():
    declared = Types.ROW_NAMED(["customer"], [Types.STRING()])

    def encoded(batch):
        column = batch.column("customer")
        wide = column.cast(pa.large_string()) if batch.column("amount")[0].as_py() % 2 else column.dictionary_encode()
        return pa.record_batch({"customer": wide})

    records = [order(f"c{n % 7}", n) for n in range(60)]
    columns = orders(environment(2), records).to_columns(max_rows=5).map_batches(encoded, declared)
    found = collected(columns.key_by("customer").aggregate(orders=Count()))
    assert max(row.orders for row in found if row.customer == "c0") == 9


def test_batches_with_dictionaries_travel_with_them():
    column = pa.array(["a", "b", "a"]).dictionary_encode()
    batch = ColumnBatch(pa.record_batch({"k": column}), np.arange(3), origin=Origin("'f'", 5, 3))
    copy = pickle.loads(pickle.dumps(batch.slice(1, 2), 5))
    assert copy == batch.slice(1, 2) and copy.origin == Origin("'f'", 6, 2)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x" * 100] * 10_000),
        pa.array(["x" * 100] * 10_000, pa.large_string()),
        pa.array([b"x" * 100] * 10_000),
        pa.array([["x" * 50, "y" * 50]] * 10_000),
        pa.array([{"a": "x" * 100, "b": [1] * 10}] * 10_000),
        pa.array([[("k", "x" * 100)]] * 10_000, pa.map_(pa.string(), pa.string())),
        pa.array(range(10_000)),
    ],
    ids=lambda column: str(column.type),
)
def test_a_small_slice_takes_no_more_than_its_own_rows_on_the_wire(column):
    batch = ColumnBatch(pa.record_batch({"c": column}), np.arange(10_000))
    part = batch.slice(5_000, 2)
    pickled = pickle.dumps(part, 5)
    assert len(pickled) < 4_000 and part.size_bytes < 2_000
    assert pickle.loads(pickled) == part
    assert pickle.loads(pickled).data.get_total_buffer_size() < 4_000


def test_batches_are_cut_by_rows_and_by_bytes():
    many = ColumnBatch(pa.record_batch({"n": pa.array(np.arange(MOST_ROWS * 2 + 1))}))
    assert [len(part) for part in many.bounded()] == [MOST_ROWS, MOST_ROWS, 1]
    uneven = pa.array(["x" * (1 << 20)] * 80 + ["y"] * 1000)
    parts = list(ColumnBatch(pa.record_batch({"t": uneven})).bounded())
    assert max(part.size_bytes for part in parts) <= 2 * MOST_BYTES and sum(map(len, parts)) == 1080


@ENGINES
def test_no_batch_on_its_way_is_much_larger_than_the_bound(continuous):
    def checked(batch):
        assert batch.nbytes <= 3 * MOST_BYTES
        return batch.slice(0, 1)

    def many(batch):
        assert batch.nbytes <= 3 * MOST_BYTES
        return pa.Table.from_batches([batch] * 3).combine_chunks()

    large = (
        environment().from_collection(range(120)).map(lambda n: Row(customer="x" * (1 << 20), amount=n, at=n), ORDER)
    )
    columns = large.to_columns().map_batches(many, ORDER).map_batches(checked, ORDER)
    assert len(collected(columns.project("amount"), continuous=continuous)) >= 6


def test_no_rows_at_all_pass_every_operator():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    columns = orders(environment(2), [order("a", 1, 1)]).to_columns().assign_timestamps_and_watermarks(strategy)
    none = columns.map_batches(lambda batch: batch.slice(0, 0), ORDER)
    parts = none.rebalance().filter(pc.field("amount") > 0).project("customer", "amount", "at")
    keyed = parts.key_by("customer")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).aggregate(total=Sum("amount"))
    assert collected(keyed.aggregate(total=Sum("amount"))) == [] and collected(windows) == []


def test_records_with_and_without_timestamps_keep_them_in_columns():
    from ekorn.datastream import ProcessFunction

    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield value.amount, ctx.timestamp()

    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    timed = orders(env, [order("a", n, n) for n in range(5)]).assign_timestamps_and_watermarks(strategy)
    both = timed.union(orders(env, [order("a", n, n) for n in range(5, 9)]))
    expected = [(n, n if n < 5 else None) for n in range(9)]
    assert as_set(collected(both.to_columns().process(Times()))) == as_set(expected)
