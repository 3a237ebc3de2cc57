"""Programs on streams of columns: the results of the same programs on rows, on both in-process engines."""

import datetime
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.row_columns import RowColumns
from ekorn.common import Duration, Row, RuntimeExecutionMode, Types, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment, TimeCharacteristic
from ekorn.datastream.columns import BatchFunction, ColumnGeneratorSource, Count, Last, Max, Mean, ParquetColumns, Sum
from ekorn.datastream.connectors.file_system import FileSource
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.keygroups import key_group, key_group_range, subtask_of
from ekorn.subtask.column_key_share import ColumnKeyShare
from ekorn.subtask.wire.frames import RECORDS
from ekorn.table import DataTypes
from ekorn.testing.local_run import collect_locally
from tests.columns.orders import ENGINES, ORDER, ORDERS, as_set, collected, environment, orders
from tests.examples_by_profile import examples


@ENGINES
def test_expressions_filter_and_project_as_functions_of_rows_do(continuous):
    big = orders(environment()).to_columns().filter(pc.field("amount") > 50)
    result = big.project("customer", double=pc.field("amount") * 2)
    expected = [Row(customer=o.customer, double=o.amount * 2) for o in ORDERS if o.amount > 50]
    assert as_set(collected(result, continuous=continuous)) == as_set(expected)


def test_a_column_that_is_computed_keeps_the_precision_of_its_times():
    row_type = DataTypes.ROW([DataTypes.FIELD(f"t{n}", DataTypes.TIMESTAMP(n)) for n in (3, 6)])
    source = ColumnGeneratorSource(lambda first, count: None, 0, row_type)
    columns = environment().from_source(source, WatermarkStrategy.no_watermarks(), "times")
    again = columns.project("t3", "t6", u3=pc.field("t3"), u6=pc.field("t6")).row_type
    assert again["u3"].data_type == again["t3"].data_type == DataTypes.TIMESTAMP(3)
    assert again["u6"].data_type == DataTypes.TIMESTAMP(6)


@ENGINES
@pytest.mark.parametrize("max_rows", [1, 7, 1000])
def test_running_aggregates_are_those_of_rows_in_the_order_of_each_key(continuous, max_rows):
    wanted = {"total": Sum("amount"), "orders": Count(), "largest": Max("amount"), "mean": Mean("amount")}
    on_rows = collected(orders(environment()).key_by("customer").aggregate(**wanted), continuous=continuous)
    columns = orders(environment()).to_columns(max_rows=max_rows)
    on_columns = collected(columns.key_by("customer").aggregate(**wanted), continuous=continuous)
    assert as_set(on_columns) == as_set(on_rows)
    for customer in {order.customer for order in ORDERS}:
        counts = [row.orders for row in on_columns if row.customer == customer]
        assert counts == list(range(1, 21))


def test_the_last_result_of_a_key_is_the_same_however_many_results_there_are():
    keyed = orders(environment()).to_columns(max_rows=9).key_by("customer")
    found = collected(keyed.aggregate(emits="last", total=Sum("amount")))
    last = {row.customer: row.total for row in found}
    assert last == {f"c{c}": sum(range(c, 100, 5)) for c in range(5)}
    assert len(found) < len(ORDERS)


@settings(max_examples=examples(15), deadline=None)
@given(
    records=st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), st.none() | st.integers(-9, 9)), max_size=40),
    max_rows=st.integers(1, 10),
    parallelism=st.integers(1, 3),
)
def test_any_rows_cut_into_any_batches_give_the_aggregates_of_rows(records, max_rows, parallelism):
    rows = [Row(customer=customer, amount=amount, at=0) for customer, amount in records]
    wanted = {"total": Sum("amount"), "orders": Count("amount"), "largest": Max("amount")}
    on_rows = orders(environment(parallelism), rows).key_by("customer").aggregate(**wanted)
    columns = orders(environment(parallelism), rows).to_columns(max_rows=max_rows)
    on_columns = columns.rebalance().key_by("customer").aggregate(**wanted)
    last = [{row.customer: row for row in collected(each)} for each in (on_rows, on_columns)]
    if parallelism == 1:
        assert as_set(last[0].values()) == as_set(last[1].values())
    assert {customer: row.orders for customer, row in last[0].items()} == {
        customer: row.orders for customer, row in last[1].items()
    }


def test_a_batch_program_has_one_result_for_each_key():
    for stream in (orders(environment()), orders(environment()).to_columns()):
        stream.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
        found = collected(stream.key_by("customer").aggregate(total=Sum("amount")))
        assert as_set(found) == as_set(Row(customer=f"c{c}", total=sum(range(c, 100, 5))) for c in range(5))


@ENGINES
def test_operators_on_rows_work_behind_columns(continuous):
    class Running(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.get_current_key(), value.amount, ctx.timestamp()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    columns = orders(environment()).to_columns().assign_timestamps_and_watermarks(strategy)
    found = collected(columns.key_by("customer").process(Running()), continuous=continuous)
    assert as_set(found) == as_set(((order.customer,), order.amount, order.at) for order in ORDERS)


@pytest.mark.parametrize("library", ["arrow", "pandas", "polars", "numpy"])
def test_a_batch_function_takes_tables_of_its_library(library):
    def double(batch):
        if library == "arrow":
            return batch.set_column(1, "amount", pc.multiply(batch.column("amount"), 2))
        if library == "polars":
            return batch.with_columns(amount=batch["amount"] * 2)
        return {**batch, "amount": batch["amount"] * 2} if library == "numpy" else batch.assign(amount=batch.amount * 2)

    found = collected(orders(environment()).map_batches(double, ORDER, library))
    assert as_set(found) == as_set(Row(customer=o.customer, amount=o.amount * 2, at=o.at) for o in ORDERS)


def test_a_batch_function_is_opened_and_closed_and_may_return_no_rows_or_several_batches():
    class Twice(BatchFunction):
        def open(self, runtime_context):
            self.opened = True

        def map_batch(self, batch):
            assert self.opened
            if batch.column("amount")[0].as_py() % 2:
                return None
            return [batch, batch]

    columns = orders(environment(1)).to_columns(max_rows=1)
    found = collected(columns.map_batches(Twice(), ORDER))
    assert as_set(found) == as_set([o for o in ORDERS if o.amount % 2 == 0] * 2)


def test_timestamps_of_columns_reach_rows_and_come_back():
    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield value.amount, ctx.timestamp()

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_column("at")
    columns = orders(environment()).assign_timestamps_and_watermarks(strategy).to_columns(max_rows=7)
    found = collected(columns.filter(pc.field("amount") > 3).to_rows().to_columns().process(Times()))
    assert as_set(found) == as_set((order.amount, order.at) for order in ORDERS if order.amount > 3)


def test_points_in_time_are_timestamps():
    moment = datetime.datetime(2024, 1, 1, 12, 0, 0, 250_000)
    rows = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])

    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    stream = environment().from_collection([Row(at=moment)], rows)
    for form in (stream, stream.to_columns()):
        assert collected(form.assign_timestamps_and_watermarks(strategy).process(Times())) == [1704110400250]


def test_a_union_of_columns_has_columns_and_one_with_rows_has_rows():
    env = environment()
    columns = orders(env).to_columns()
    both = columns.union(columns.filter(pc.field("amount") >= 90))
    assert hasattr(both, "map_batches") and hasattr(both, "row_type")
    assert len(collected(both)) == 110
    env = environment()
    mixed = orders(env).to_columns().union(orders(env))
    assert len(collected(mixed)) == 200


def test_a_partitioner_chooses_a_subtask_for_each_row():
    env = environment()
    parted = (
        orders(env).to_columns().partition_custom(lambda amounts, n: pc.less(amounts, 20).cast(pa.int8()), "amount")
    )

    class Where(ProcessFunction):
        def open(self, runtime_context):
            self.index = runtime_context.get_index_of_this_subtask()

        def process_element(self, value, ctx):
            yield value.amount, self.index

    assert as_set(collected(parted.process(Where()))) == as_set((n, int(n < 20)) for n in range(100))


@pytest.mark.parametrize(
    ("partitioner", "message"),
    [
        (lambda amounts, n: [0], "it must return an array with an int for each row"),
        (lambda amounts, n: np.full(len(amounts), n), "it must return ints from 0 to 1"),
    ],
)
def test_a_partitioner_that_returns_something_else_is_refused(partitioner, message):
    with pytest.raises(JobExecutionError, match=message):
        collected(orders(environment()).to_columns().partition_custom(partitioner, "amount").to_rows())


@pytest.mark.parametrize("how", ["rebalance", "shuffle", "rescale", "broadcast", "global_", "forward"])
def test_every_partitioning_sends_every_row(how):
    columns = getattr(orders(environment()).to_columns().rebalance().filter(pc.field("amount") >= 0), how)()
    found = collected(columns.filter(pc.field("amount") < 50))
    assert len(found) == (100 if how == "broadcast" else 50)


def test_a_generator_makes_columns_for_its_range():
    def generate(first, count):
        return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})

    source = ColumnGeneratorSource(generate, 1000, Types.ROW_NAMED(["n"], [Types.LONG()]))
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    assert sorted(row.n for row in collected(stream)) == list(range(1000))


@contextmanager
def refused(message):
    with pytest.raises((InvalidProgramError, TypeError, ValueError), match=message):
        yield


def test_mistakes_are_refused_where_they_are_written():
    columns = orders(environment()).to_columns()
    with refused(r"key_by\(\): there is no column 'custmer'; the columns are \['customer', 'amount', 'at'\]"):
        columns.key_by("custmer")
    with refused(r"aggregate\(\): there is no column 'x'"):
        columns.key_by("customer").aggregate(total=Sum("x"))
    with refused(r"Sum\('customer'\) needs a column of numbers, and 'customer' is"):
        columns.key_by("customer").aggregate(total=Sum("customer"))
    with refused("needs at least one aggregate"):
        columns.key_by("customer").aggregate()
    with refused("'customer' is a key column"):
        columns.key_by("customer").aggregate(customer=Count())
    with refused("the expression .* does not fit the columns"):
        columns.filter(pc.field("missing") > 1)
    with refused("library 'arrow', 'pandas', 'polars' or 'numpy', got 'dask'"):
        columns.map_batches(len, ORDER, "dask")
    with refused(r"to_columns\(\) needs the columns"):
        environment().from_collection([1, 2]).to_columns()
    with refused("aggregate\\(\\) needs rows of a declared type with keys by name"):
        orders(environment()).key_by(lambda row: row.customer).aggregate(total=Sum("amount"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: batch.drop_columns(["at"]), r"returned the columns \(customer: string, amount: int64\)"),
        (lambda batch: 5, r"returned 5 \(int\), where a RecordBatch or Table of PyArrow is expected"),
        (
            lambda batch: batch.set_column(1, "amount", pa.array(["x"] * len(batch))),
            r"returned 'x' \(string\) in column 'amount', which is declared as int64",
        ),
        (lambda batch: batch.set_column(1, "amount", pa.array([[1]] * len(batch))), "column 'amount' as list"),
    ],
)
def test_a_batch_function_that_returns_something_else_is_refused_with_both_schemas(function, message):
    with pytest.raises(JobExecutionError, match=message) as caught:
        collected(orders(environment()).map_batches(function, ORDER).name("mine"))
    assert "'mine'" in str(caught.value)


def test_a_row_without_a_timestamp_is_named():
    rows = [Row(customer="a", amount=1, at=5), Row(customer="b", amount=2, at=None)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    columns = orders(environment(), rows).to_columns().assign_timestamps_and_watermarks(strategy)
    with pytest.raises(JobExecutionError, match=r"the timestamp column 'at' holds None for record .*'customer': 'b'"):
        collected(columns)


def test_the_plan_shows_the_form_and_where_it_changes():
    columns = orders(environment()).to_columns()
    result = columns.filter(pc.field("amount") > 1).map(lambda row: row.amount)
    result.print()
    plan = result.get_execution_environment().explain()
    assert "gives Columns(customer: string, amount: int64, at: int64)" in plan
    assert "To Columns" in plan and "To Rows" in plan


def test_rows_in_flight_go_to_the_subtasks_that_own_their_keys():
    batch = ColumnBatch(pa.record_batch({"k": [f"key {n}" for n in range(500)]}), np.arange(500))
    frame = (RECORDS, [batch], None)
    found = []
    for index in range(3):
        share = ColumnKeyShare(print, 128, key_group_range(128, 3, index), ["k"])
        for part in share.of(frame)[1]:
            own = {subtask_of(key_group((key,), 128), 128, 3) for key in part.data.column("k").to_pylist()}
            assert own == {index}
            found += part.times.tolist()
    assert sorted(found) == list(range(500))


@ENGINES
def test_parquet_files_are_read_as_columns_in_any_pieces(continuous, tmp_path):
    import pyarrow.parquet as pq

    for part in range(3):
        table = pa.table({"n": pa.array(range(part * 1000, part * 1000 + 1000), pa.int32()), "other": ["x"] * 1000})
        pq.write_table(table, tmp_path / f"part-{part}.parquet", row_group_size=300)
    columns = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("missing", DataTypes.STRING())])
    source = FileSource.for_bulk_file_format(ParquetColumns(columns, batch_size=128), str(tmp_path)).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "files")
    found = collected(stream, continuous=continuous)
    assert sorted(row.n for row in found) == list(range(3000))
    assert {row.missing for row in found} == {None}


def test_a_reader_of_columns_goes_on_at_its_row(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": pa.array(range(1000), pa.int64())}), path, row_group_size=300)
    numbers = ParquetColumns(DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())]), batch_size=100)
    found, position = [], None
    while True:
        reader = numbers.create_reader(str(path), 0, None, position)
        for _ in range(2):
            for batch in reader.read(70).values:
                found += batch.data.column("n").to_pylist()
        position = reader.position()
        finished = reader.finished
        reader.close()
        if finished:
            break
    assert found == list(range(1000))


def test_a_null_in_a_column_that_is_not_null_is_refused(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": pa.array([1, None], pa.int64())}), tmp_path / "numbers.parquet")
    columns = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT().not_null())])
    source = FileSource.for_bulk_file_format(ParquetColumns(columns), str(tmp_path)).build()
    with pytest.raises(
        JobExecutionError, match=r"row 1 of '.*numbers.parquet'.* None in column 'n', which is declared"
    ):
        collected(environment().from_source(source, WatermarkStrategy.no_watermarks(), "files"))


@pytest.mark.parametrize(("characteristic", "timed"), [("ProcessingTime", False), ("IngestionTime", True)])
def test_columns_of_a_source_follow_the_time_characteristic_of_the_job(characteristic, timed):
    class Timed(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp() is not None and ctx.timestamp() > 1000

    env = environment(1)
    env.set_stream_time_characteristic(TimeCharacteristic[characteristic])
    source = ColumnGeneratorSource(
        lambda first, count: pa.record_batch({"at": pa.array(range(first, first + count), pa.int64())}),
        5,
        Types.ROW_NAMED(["at"], [Types.LONG()]),
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    assert collected(env.from_source(source, strategy, "numbers").process(Timed())) == [timed] * 5


@ENGINES
def test_only_the_rows_of_a_batch_that_fail_are_skipped_and_become_dead_letters(continuous):
    def odd(batch):
        if any(n % 10 == 7 for n in batch.column("amount").to_pylist()):
            raise ValueError("a seven")
        return batch

    mapped = orders(environment(1)).to_columns(max_rows=40).map_batches(odd, ORDER).on_record_error("dead-letter")
    letters = mapped.get_dead_letters().map(lambda letter: ("letter", letter.record.amount, letter.error))
    found = collected(mapped.map(lambda row: ("row", row.amount, "")).union(letters), continuous=continuous)
    sevens = [n for n in range(100) if n % 10 == 7]
    assert as_set(found) == as_set(
        [("row", n, "") for n in range(100) if n not in sevens] + [("letter", n, "ValueError: a seven") for n in sevens]
    )


def test_rows_without_timestamps_are_skipped_alone():
    rows = [Row(customer="a", amount=n, at=None if n == 3 else n) for n in range(6)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    columns = orders(environment(1), rows).to_columns().assign_timestamps_and_watermarks(strategy)
    assert sorted(row.amount for row in collected(columns.on_record_error("skip"))) == [0, 1, 2, 4, 5]


def test_a_source_of_columns_keeps_milliseconds_and_columns_that_are_not_null():
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("n", DataTypes.BIGINT().not_null()),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
            DataTypes.FIELD("clocks", DataTypes.ARRAY(DataTypes.TIME(3))),
        ]
    )
    schema = RowColumns(row_type).schema

    def generate(first, count):
        rows = [{"n": n, "at": n, "clocks": [n]} for n in range(first, first + count)]
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    env = StreamExecutionEnvironment.get_execution_environment()
    source = ColumnGeneratorSource(generate, 5, row_type)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    assert stream.row_type == row_type
    kept = collect_locally(stream.filter(pc.field("n") > 3).key_by("n").aggregate(last=Last("at")))
    assert kept == [Row(n=4, last=datetime.datetime(1970, 1, 1, 0, 0, 0, 4000))]
