"""The kinds of rows, such as deleted ones, stay with their rows on columns."""

import pyarrow.compute as pc
import pytest

from ekorn.common import Row, RowKind, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import Sum
from ekorn.errors import JobExecutionError
from ekorn.testing.local_run import on_local_engine

ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])


def collected(stream):
    with on_local_engine(), stream.execute_and_collect() as records:
        return list(records)


KINDS = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]


def changes(*, parallelism=1):
    rows = [Row.of_kind(KINDS[n % 4], customer=f"c{n % 3}", amount=n) for n in range(40)]
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    return env.from_collection(rows, ORDER).to_columns(max_rows=7)


def kinds_by_amount(stream):
    return {row["amount"]: row.get_row_kind() for row in collected(stream)}


@pytest.mark.parametrize(
    "through",
    [
        lambda s: s.filter(pc.field("amount") > 4),
        lambda s: s.project("customer", amount=pc.field("amount") + 0),
        lambda s: s.map_batches(lambda batch: batch, ORDER),
        lambda s: s.rebalance().map_batches(lambda batch: batch, ORDER),
        lambda s: s.partition_custom(lambda column, count: column.to_numpy() % count, "amount"),
        lambda s: s.union(s),
        lambda s: s.to_rows().to_columns(),
    ],
    ids=["filter", "project", "map_batches", "rebalance", "partition_custom", "union", "rows and back"],
)
def test_rows_keep_their_kinds_as_columns(through):
    found = kinds_by_amount(through(changes(parallelism=2)))
    assert found
    assert found == {amount: KINDS[amount % 4] for amount in found}


def test_a_batch_function_that_returns_other_rows_of_several_kinds_is_refused():
    with pytest.raises(JobExecutionError, match=r"returned 1 rows for 7 rows of the kinds \+I, -U, \+U, -D"):
        collected(changes().map_batches(lambda batch: batch.slice(0, 1), ORDER))


def test_a_batch_function_may_return_other_rows_if_all_have_one_kind():
    deleted = [Row.of_kind(RowKind.DELETE, customer="a", amount=n) for n in range(4)]
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.from_collection(deleted, ORDER).to_columns()
    assert kinds_by_amount(stream.map_batches(lambda batch: batch.slice(1, 2), ORDER)) == {
        1: RowKind.DELETE,
        2: RowKind.DELETE,
    }


def test_results_of_aggregates_are_inserted_whatever_the_kinds_of_their_rows():
    results = collected(changes().key_by("customer").aggregate(total=Sum("amount")))
    assert len(results) == 40
    assert {row.get_row_kind() for row in results} == {RowKind.INSERT}
