"""In BATCH mode `First` and `Last` go by timestamps on columns as on rows, in whatever order the rows arrive."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.timed_ends import TimedEndKernel
from ekorn.common import RuntimeExecutionMode
from ekorn.datastream.columns import ColumnStream, Count, First, Last
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.types.time_bounds import MIN_TIMESTAMP
from tests.columns.column_kinds import COLUMNS, alike
from tests.columns.marked_orders import as_set, collected, in_form, millis, order
from tests.examples_by_profile import examples

ENDS = {"first": First("amount"), "last": Last("amount"), "first_key": First("customer"), "last_at": Last("at")}
KEYS = 3
ASSIGNERS = [
    None,
    TumblingEventTimeWindows.of(*millis(10)),
    SlidingEventTimeWindows.of(*millis(20, 10)),
    EventTimeSessionWindows.with_gap(*millis(6)),
    TumblingProcessingTimeWindows.of(*millis(1 << 50)),
]


@pytest.mark.parametrize("end", [First("v"), Last("v")], ids=str)
@pytest.mark.parametrize("name", COLUMNS)
def test_ends_are_those_of_the_rows_in_the_order_of_their_timestamps(name, end):
    arrow_type, values = COLUMNS[name]
    rows = st.lists(st.tuples(st.integers(0, KEYS - 1), values, st.integers(-3, 3)), max_size=20)
    same = alike(end)

    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(st.tuples(st.booleans(), rows), max_size=4))
    def check(batches):
        kernel, taken = TimedEndKernel(end, arrow_type, arrow_type), []
        kernel.make_room(KEYS)
        for timed, batch in batches:
            column = pa.array([value for _, value, _ in batch], arrow_type)
            keys = np.array([key for key, _, _ in batch], dtype=np.int64)
            times = np.array([time for _, _, time in batch], dtype=np.int64) if timed else None
            data = pa.record_batch([column], names=["v"])
            kernel.update(keys, kernel.argument(data, times))
            of_rows = [MIN_TIMESTAMP] * len(batch) if times is None else times.tolist()
            taken += zip(of_rows, keys.tolist(), column.to_pylist(), strict=True)
            expected = [end.create()] * KEYS
            for _, key, value in sorted(taken, key=lambda row: row[0]):
                expected[key] = expected[key] if value is None else end.add(expected[key], value)
            every = np.arange(KEYS)
            assert all(map(same, kernel.results(every).to_pylist(), [value for (value,) in expected]))
            restored = TimedEndKernel(end, arrow_type, arrow_type)
            restored.make_room(KEYS)
            restored.load(every, kernel.accumulators(every))
            kernel = restored

    check()


def in_batch_mode(form, records, assigner, max_rows):
    stream = in_form(form, records, max_rows=max_rows, parallelism=1)
    stream.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    keyed = stream.key_by("customer")
    results = (keyed if assigner is None else keyed.window(assigner)).aggregate(orders=Count(), **ENDS)
    assert isinstance(results, ColumnStream) == (form == "columns")
    return collected(results)


@settings(max_examples=examples(40), deadline=None)
@given(
    records=st.lists(
        st.builds(order, st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 99), st.integers(-9, 20)),
        max_size=30,
    ),
    assigner=st.sampled_from(ASSIGNERS),
    max_rows=st.integers(1, 10),
)
def test_a_batch_program_gives_the_ends_of_rows_that_are_sorted_by_time(records, assigner, max_rows):
    on_rows, on_columns = (in_batch_mode(form, records, assigner, max_rows) for form in ("rows", "columns"))
    assert as_set(on_columns) == as_set(on_rows)


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("assigner", ASSIGNERS, ids=str)
@pytest.mark.parametrize(("times", "ends"), [([5, 1, 9, 3, 9, 1], (1, 4)), ([9, 0, 4], (1, 0))], ids=str)
def test_the_first_and_last_rows_of_a_batch_program_are_the_earliest_and_the_latest(form, assigner, times, ends):
    found = in_batch_mode(form, [order("a", n, at) for n, at in enumerate(times)], assigner, max_rows=2)
    assert {(row.orders, row.first, row.last) for row in found} == {(len(times), *ends)}
