"""Side outputs of batch functions, and batch functions that see a table which every subtask has."""

import json
import tempfile

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.common import Row, RowKind, RuntimeExecutionMode, Types
from ekorn.datastream import OutputTag
from ekorn.datastream.columns import ColumnStream, Count, TableBatchFunction
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.rest.job_answers import drawn_plan
from tests.columns.marked_orders import ENGINES, ORDER, as_set, collected, environment, order
from tests.operators.windows.local_run import Run, graph_of

NAME = Types.ROW_NAMED(["customer"], [Types.STRING()])
BIG, NAMES = OutputTag("big", ORDER), OutputTag("names", NAME)
RATE = Types.ROW_NAMED(["customer", "rate"], [Types.STRING(), Types.LONG()])
RATED = Types.ROW_NAMED(["customer", "amount", "rate"], [Types.STRING(), Types.LONG(), Types.LONG()])


def parted(batch):
    """Return rows with small amounts, and give the others and all customers to side outputs."""
    big = pc.greater(batch.column("amount"), 50)
    yield BIG, batch.filter(big)
    yield batch.filter(pc.invert(big))
    yield NAMES, batch.select(["customer"])
    yield OutputTag("nobody reads it", NAME), batch.select(["customer"])


def parted_frames(batch):
    return [batch[batch["amount"] <= 50], (BIG, batch[batch["amount"] > 50]), (NAMES, batch[["customer"]])]


def all_outputs(main):
    big, names = main.get_side_output(BIG), main.get_side_output(NAMES)
    assert all(isinstance(each, ColumnStream) for each in (main, big, names))
    tagged = [each.map(lambda row, name=name: (name, row)) for name, each in (("big", big), ("names", names))]
    return main.map(lambda row: ("main", row)).union(*tagged)


@ENGINES
@pytest.mark.parametrize(("function", "library"), [(parted, "arrow"), (parted_frames, "pandas")])
def test_a_batch_function_gives_rows_to_side_outputs_as_columns(continuous, function, library):
    records = [order(f"c{n % 3}", n, n) for n in range(100)]
    columns = environment(2).from_collection(records, ORDER).to_columns(max_rows=7).rebalance()
    found = collected(all_outputs(columns.map_batches(function, ORDER, library)), continuous=continuous)
    expected = [("main" if row.amount <= 50 else "big", row) for row in records]
    assert as_set(found) == as_set(expected + [("names", Row(customer=row.customer)) for row in records])


def test_rows_that_are_skipped_reach_no_side_output_and_others_reach_it_once():
    def failing(batch):
        yield BIG, batch
        if 7 in batch.column("amount").to_pylist():
            raise ValueError("a seven")
        yield batch

    records = [order("a", n, n) for n in range(20)]
    main = environment().from_collection(records, ORDER).to_columns().map_batches(failing, ORDER)
    main.on_record_error("skip")
    found = collected(main.map(lambda row: ("main", row)).union(main.get_side_output(BIG).map(lambda r: ("big", r))))
    kept = [row for row in records if row.amount != 7]
    assert as_set(found) == as_set([(name, row) for name in ("main", "big") for row in kept])


def test_side_outputs_need_declared_columns_and_get_no_others():
    columns = environment().from_collection([order("a", 1, 2)], ORDER).to_columns()
    main = columns.map_batches(parted, ORDER)
    with pytest.raises(InvalidProgramError, match="the side output 'plain' declares none"):
        main.get_side_output(OutputTag("plain"))
    wrong = columns.map_batches(lambda batch: (NAMES, batch), ORDER)
    with pytest.raises(JobExecutionError, match="customer"):
        collected(all_outputs(wrong))


def with_rates(batch, table):
    rates = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    found = [rates.get(customer) for customer in batch.column("customer").to_pylist()]
    return pa.RecordBatch.from_arrays(
        [batch.column("customer"), batch.column("amount"), pa.array(found, pa.int64())],
        names=["customer", "amount", "rate"],
    )


class WithRates(TableBatchFunction):
    def open(self, runtime_context):
        self.opened = True

    def map_batch(self, batch, table):
        assert self.opened
        return batch.drop(columns="at").merge(table, on="customer", how="left").astype({"rate": "Int64"})


def rates_of(env, rows):
    return env.from_collection(rows, RATE).to_columns(max_rows=2).broadcast_table("customer")


@ENGINES
@pytest.mark.parametrize(("function", "library"), [(with_rates, "arrow"), (WithRates(), "pandas")])
def test_every_subtask_sees_the_latest_rows_of_a_table(continuous, function, library):
    gone = Row("c2", 9)
    gone.set_row_kind(RowKind.DELETE)
    env = environment(2)
    table = rates_of(env, [Row("c0", 1), Row("c1", 2), Row("c2", 3), Row("c0", 4), gone])
    orders = env.from_collection([order(f"c{n % 4}", n, n) for n in range(40)], ORDER).to_columns(max_rows=3)
    rated = orders.rebalance().connect(table).map_batches(function, RATED, library)
    assert isinstance(rated, ColumnStream)
    rates = {"c0": 4, "c1": 2}
    expected = [Row(customer=f"c{n % 4}", amount=n, rate=rates.get(f"c{n % 4}")) for n in range(40)]
    assert as_set(collected(rated, continuous=continuous)) == as_set(expected)


def test_rows_that_fail_with_the_table_are_skipped_alone():
    def failing(batch, table):
        if 3 in batch.column("amount").to_pylist():
            raise ValueError("a three")
        return with_rates(batch, table)

    env = environment()
    orders = env.from_collection([order("c", n, n) for n in range(8)], ORDER).to_columns()
    rated = orders.connect(rates_of(env, [Row("c", 5)])).map_batches(failing, RATED).on_record_error("skip")
    assert sorted(row.amount for row in collected(rated)) == [0, 1, 2, 4, 5, 6, 7]


def test_a_batch_program_reads_the_table_first():
    env = environment(2).set_runtime_mode(RuntimeExecutionMode.BATCH)
    orders = env.from_collection([order("c", n, n) for n in range(5)], ORDER).to_columns()
    rated = orders.connect(rates_of(env, [Row("c", n) for n in range(9)])).map_batches(with_rates, RATED)
    assert [row.rate for row in collected(rated)] == [8] * 5


@pytest.mark.parametrize("after", [1, 3])
def test_a_table_is_restored_at_any_parallelism(after):
    def run_of(parallelism, directory):
        env = environment(parallelism)
        env.enable_checkpointing(1000)
        table = env.from_collection([Row("c0", 5), Row("c1", 6)], RATE).uid("rates").to_columns()
        orders = env.from_collection([order(f"c{n % 2}", n, n) for n in range(30)], ORDER).uid("orders").to_columns()
        connected = orders.rebalance().connect(table.broadcast_table("customer"))
        return Run(graph_of(connected.map_batches(with_rates, RATED).uid("rated")), directory=directory)

    with tempfile.TemporaryDirectory() as directory:
        old, new = run_of(2, directory), run_of(after, directory)
        old.deploy()
        old.checkpoint(1, max_records=10)
        new.attempt = 1
        new.deploy(plan_restore(new.graph, old.metadata, directory, allow_non_restored_state=False))
        while not new.finished:
            new.step()
        old.close()
        new.close()
        found = old.records + new.records
    assert as_set(found) == as_set([Row(customer=f"c{n % 2}", amount=n, rate=5 + n % 2) for n in range(30)])
    assert new.records


def test_columns_stay_columns_from_subtask_to_subtask():
    env = environment(2)
    columns = env.from_collection([order(f"c{n}", n, n) for n in range(10)], ORDER).to_columns(max_rows=2)
    parts = [
        columns.rebalance(),
        columns.rescale(),
        columns.shuffle(),
        columns.partition_custom(lambda amounts, count: pc.bit_wise_and(amounts, count - 1), "amount"),
        columns.global_(),
        columns.union(columns.filter(pc.field("amount") < 0)),
    ]
    copied = columns.broadcast().map_batches(lambda batch: batch, ORDER)
    mapped = [part.map_batches(lambda batch: batch, ORDER) for part in parts]
    everything = copied.union(*mapped)
    assert isinstance(everything, ColumnStream)
    assert len(collected(everything)) == 10 * (len(parts) + 2)
    everything.print()
    assert env.explain().count("To Rows,") == 1  # before the print
    assert "BROADCAST, as columns" in env.explain()


def test_plans_show_which_streams_are_columns_and_where_they_are_converted():
    env = environment(2)
    orders = env.from_collection([order("a", 1, 2)], ORDER).to_columns()
    orders.key_by("customer").aggregate(orders=Count()).print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    forms = {node["type"]: node.get("form") for node in nodes}
    assert forms == {
        "Source: Collection Source": None,
        "To Columns": "columns",
        "Aggregate": "columns",
        "To Rows": None,
        "Sink: Print to Std. Out": None,
    }
    vertices = drawn_plan(env.job_graph(), "0" * 32, "job")["nodes"]
    (between,) = [each for vertex in vertices for each in vertex.get("inputs", ())]
    assert (between["ship_strategy"], between["form"]) == ("HASH", "columns")
    assert "To Rows" in vertices[1]["description"]


def test_tables_that_cannot_be_are_refused_where_they_are_written():
    env = environment()
    orders = env.from_collection([], ORDER).to_columns()
    with pytest.raises(InvalidProgramError, match=r"broadcast_table\(\) needs the columns that identify a row"):
        orders.broadcast_table()
    with pytest.raises(InvalidProgramError, match="there is no column 'x'"):
        orders.broadcast_table("x")
    connected = orders.connect(orders.broadcast_table("customer"))
    with pytest.raises(TypeError, match="map_batches"):
        connected.map_batches(lambda batch: batch, ORDER)
    with pytest.raises(ValueError, match="takes library"):
        connected.map_batches(with_rates, RATED, "cudf")
    with pytest.raises(InvalidProgramError, match="the same environment"):
        environment().from_collection([], ORDER).to_columns().connect(orders.broadcast_table("customer"))
