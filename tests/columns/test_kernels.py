"""Kernels against the aggregates called row by row: any batches, any keys, nulls, and restored accumulators."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.kernel_choice import chosen_kernel
from ekorn.columns.kernels import ObjectKernel, SumOverflow
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.columns.segments import Segments
from ekorn.functions.column_aggregates import Count, First, Last, Max, Mean, Min, Sum
from ekorn.functions.sketch_aggregates import ApproxCountDistinct, CountDistinct, Quantile
from ekorn.types.data_types import RowField, RowType
from tests.columns.column_kinds import COLUMNS, alike
from tests.examples_by_profile import examples

AGGREGATES = [Sum("v"), Count("v"), Count(), Min("v"), Max("v"), Mean("v"), First("v"), Last("v")]
AGGREGATES += [CountDistinct("v"), ApproxCountDistinct("v"), Quantile("v", 0.5), Quantile("v", [0, 0.9, 1])]


def kernel_of(aggregate, arrow_type):
    column = row_type_of_arrow(pa.schema([("v", arrow_type)]))["v"].data_type
    result = RowColumns(RowType([RowField("r", aggregate.result_type(column))])).schema.field("r").type
    return chosen_kernel(aggregate, arrow_type if aggregate.column else None, result)


CASES = []
for name in COLUMNS:
    for each in AGGREGATES:
        if name in ("bool", "date", "timestamp", "text") and isinstance(each, Sum | Mean | Quantile):
            continue
        CASES.append(pytest.param(name, each, id=f"{each} of {name}"))


@pytest.mark.parametrize(("name", "aggregate"), CASES)
def test_a_kernel_gives_the_results_of_its_aggregate(name, aggregate):
    arrow_type, values = COLUMNS[name]
    rows = st.tuples(st.integers(0, 4), values)
    same = alike(aggregate)

    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(st.tuples(st.booleans(), st.lists(rows, max_size=30)), max_size=4))
    def check(batches):
        kernel, kept = kernel_of(aggregate, arrow_type), {}
        kernel.make_room(5)
        for runs, batch in batches:
            keys = np.array([key for key, _ in batch], dtype=np.int64)
            column = pa.array([value for _, value in batch], arrow_type)
            expected = []
            for key, value in zip(keys.tolist(), column.to_pylist(), strict=True):
                accumulator = kept.get(key, aggregate.create())
                if value is not None or not aggregate.column:
                    accumulator = aggregate.add(accumulator, value)
                kept[key] = accumulator
                expected.append(aggregate.result(accumulator))
            given_column = column if aggregate.column else None
            if runs:
                found = kernel.running(Segments(keys), given_column).to_pylist()
                assert all(map(same, found, expected)), (found, expected)
            else:
                kernel.update(keys, given_column)
            every = np.arange(5)
            whole = [aggregate.result(kept.get(key, aggregate.create())) for key in range(5)]
            assert all(map(same, kernel.results(every).to_pylist(), whole))
            entries = kernel.accumulators(every)
            for key in range(5):
                assert all(map(same, entries[key], kept.get(key, aggregate.create())))
            restored = kernel_of(aggregate, arrow_type)
            restored.make_room(5)
            restored.load(every, entries)
            kernel = restored

    check()


@pytest.mark.parametrize("runs", [True, False])
def test_long_runs_of_one_key_are_summed_in_their_order(runs):
    values = [10.0**exponent for exponent in range(-20, 20)] * 10
    kernel = kernel_of(Sum("v"), pa.float64())
    kernel.make_room(2)
    keys = np.array([number % 2 for number in range(len(values))])
    if runs:
        kernel.running(Segments(keys), pa.array(values))
    else:
        kernel.update(keys, pa.array(values))
    expected = [0.0, 0.0]
    for key, value in zip(keys.tolist(), values, strict=True):
        expected[key] += value
    assert kernel.results(np.arange(2)).to_pylist() == expected


@pytest.mark.parametrize("runs", [True, False])
def test_a_sum_beyond_64_bits_is_refused_and_one_that_returns_is_not(runs):
    def take(values):
        kernel = kernel_of(Sum("v"), pa.int64())
        kernel.make_room(1)
        keys = np.zeros(len(values), dtype=np.int64)
        if runs:
            kernel.running(Segments(keys), pa.array(values))
        else:
            kernel.update(keys, pa.array(values))
        return kernel.results(np.zeros(1, np.int64)).to_pylist()

    with pytest.raises(SumOverflow):
        take([2**63 - 1, 1])
    assert take([2**62, -(2**62), 2**62, 5 - 2**62]) == [5]


def test_frozen_accumulators_are_those_of_their_time():
    kernel = kernel_of(Sum("v"), pa.int64())
    kernel.make_room(1)
    kernel.update(np.zeros(1, np.int64), pa.array([5]))
    frozen = kernel.frozen()
    kernel.update(np.zeros(1, np.int64), pa.array([7]))
    assert frozen.results(np.zeros(1, np.int64)).to_pylist() == [5]


def test_texts_are_aggregated_row_by_row():
    assert isinstance(kernel_of(Min("v"), pa.string()), ObjectKernel)
