"""Aggregates that users write over arrays: the same results and state on rows and on columns, and clear errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Row, Types
from ekorn.datastream.columns import BatchAggregate, Count
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.table import DataTypes
from tests.columns.orders import ENGINES, ORDERS, as_set, collected, environment, orders
from tests.columns.sum_of_squares import SumOfSquares
from tests.examples_by_profile import examples


class Longest(BatchAggregate):
    """The longest name with its amount: texts in accumulators, two columns, and results that are arrays."""

    def create(self, count):
        return [np.full(count, "", dtype=np.object_), np.zeros(count, np.int64)]

    def add(self, accumulators, keys, columns):
        names, amounts = (column.to_pylist() for column in columns)
        for key, name, amount in zip(keys.tolist(), names, amounts, strict=True):
            if name is not None and len(name) > len(accumulators[0][key]):
                accumulators[0][key], accumulators[1][key] = name, amount or 0

    def merge(self, accumulators, keys, others):
        longer = np.array([len(o) > len(accumulators[0][k]) for k, o in zip(keys, others[0], strict=True)])
        for mine, theirs in zip(accumulators, others, strict=True):
            mine[keys[longer]] = theirs[longer]

    def results(self, accumulators):
        return [[f"{name}:{amount}"] for name, amount in zip(*accumulators, strict=True)]

    def result_type(self, columns):
        return DataTypes.ARRAY(DataTypes.STRING())


@settings(max_examples=examples(20), deadline=None)
@given(
    records=st.lists(
        st.tuples(st.sampled_from(["a", "bb", "", None]), st.none() | st.integers(-9, 9), st.integers(0, 2)),
        max_size=30,
    ),
    max_rows=st.integers(1, 10),
)
def test_any_batches_give_the_results_of_rows(records, max_rows):
    rows = [Row(customer=name, amount=amount, at=key) for name, amount, key in records]
    wanted = {"orders": Count(), "longest": Longest("customer", "amount"), "squares": SumOfSquares("amount")}
    on_rows = collected(orders(environment(1), rows).key_by("at").aggregate(**wanted))
    on_columns = collected(orders(environment(1), rows).to_columns(max_rows=max_rows).key_by("at").aggregate(**wanted))
    assert as_set(on_columns) == as_set(on_rows)
    assert [row.longest for row in on_columns if row.at == 0] == [row.longest for row in on_rows if row.at == 0]


@ENGINES
def test_the_last_result_of_each_key_is_that_of_all_rows(continuous):
    keyed = orders(environment()).to_columns(max_rows=7).key_by("customer")
    found = collected(keyed.aggregate(emits="last", squares=SumOfSquares("amount")), continuous=continuous)
    expected = {f"c{c}": sum(n * n for n in range(c, 100, 5)) for c in range(5)}
    assert {row.customer: max(r.squares for r in found if r.customer == row.customer) for row in found} == expected


def with_method(name, function):
    return type("Mine", (SumOfSquares,), {name: function})("amount")


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("create", lambda self, count: np.zeros(count), r"create\(1\) of Mine\('amount'\) must return a list of NumPy"),
        ("create", lambda self, count: [np.zeros(3)], r"must return a list of NumPy arrays with 1 elements each"),
        ("result_type", lambda self, columns: int, r"result_type\(\) of Mine\('amount'\) must return a type such as"),
    ],
)
def test_mistakes_are_refused_where_the_aggregate_is_used(name, function, message):
    keyed = orders(environment()).to_columns().key_by("customer")
    with pytest.raises(InvalidProgramError, match=message):
        keyed.aggregate(mine=with_method(name, function))


def test_a_column_that_is_missing_is_named():
    with pytest.raises(InvalidProgramError, match=r"aggregate\(\): there is no column 'amuont'"):
        orders(environment()).key_by("customer").aggregate(mine=SumOfSquares("amuont"))


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda self, accumulators: accumulators[1],
            "returned values that do not fit",
        ),
        (lambda self, accumulators: [1, 2, 3], r"returned 3 results for \d accumulators; it must return one for each"),
    ],
)
def test_results_that_do_not_fit_fail_the_job(form, function, message):
    stream = orders(environment(1), ORDERS[:1])
    keyed = (stream if form == "rows" else stream.to_columns()).key_by("customer")
    with pytest.raises(JobExecutionError, match=message):
        collected(keyed.aggregate(mine=with_method("results", function)))


def test_types_of_pyflink_declare_results_too():
    keyed = orders(environment()).to_columns().key_by("customer")
    result = keyed.aggregate(mine=with_method("result_type", lambda self, columns: Types.DOUBLE()))
    assert result.row_type["mine"].data_type == DataTypes.DOUBLE()
