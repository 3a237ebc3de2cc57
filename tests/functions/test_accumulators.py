import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common.accumulators import (
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    LongMaximum,
    LongMinimum,
)
from ekorn.errors import AccumulatorError
from ekorn.functions.results.accumulators import merge_accumulators

EXPECTED = {
    IntCounter: sum,
    LongCounter: sum,
    DoubleCounter: lambda values: float(sum(values)),
    IntMinimum: lambda values: min(values, default=2**31 - 1),
    IntMaximum: lambda values: max(values, default=-(2**31)),
    LongMinimum: lambda values: min(values, default=2**63 - 1),
    LongMaximum: lambda values: max(values, default=-(2**63)),
    DoubleMinimum: lambda values: min(values, default=float("inf")),
    DoubleMaximum: lambda values: max(values, default=float("-inf")),
    AverageAccumulator: lambda values: sum(values) / len(values) if values else 0.0,
    Histogram: lambda values: {value: values.count(value) for value in sorted(set(values))},
    ListAccumulator: list,
}


def local_value(merged):
    assert not isinstance(merged, AccumulatorError)
    return merged.get_local_value()


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
@given(parts=st.lists(st.lists(st.integers(-100, 100), max_size=5), min_size=1, max_size=4))
def test_merging_subtasks_equals_adding_everything_in_one(kind, parts):
    pieces = []
    for part in parts:
        accumulator = kind()
        for value in part:
            accumulator.add(value)
        pieces.append({"a": pickle.loads(pickle.dumps(accumulator))})
    before = [piece["a"].get_local_value() for piece in pieces]
    merged = local_value(merge_accumulators(pieces)["a"])
    assert merged == EXPECTED[kind]([value for part in parts for value in part])
    assert [piece["a"].get_local_value() for piece in pieces] == before, "the parts are left as they were"


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_a_clone_is_apart_and_a_reset_starts_again(kind):
    accumulator = kind()
    accumulator.add(3)
    clone = accumulator.clone()
    clone.add(9)
    assert accumulator.get_local_value() == EXPECTED[kind]([3])
    accumulator.reset_local()
    assert accumulator.get_local_value() == EXPECTED[kind]([])
    assert clone.get_local_value() == EXPECTED[kind]([3, 9])


def test_accumulators_print_their_value():
    counter = IntCounter()
    counter.add()
    counter.add(2)
    assert repr(counter) == "IntCounter(3)"
    assert counter.get_local_value_primitive() == 3


def test_a_histogram_is_sorted_by_number():
    histogram = Histogram()
    for value in (3, 1, 3):
        histogram.add(value)
    assert list(histogram.get_local_value().items()) == [(1, 1), (3, 2)]


def test_different_kinds_under_one_name_are_an_error_naming_both():
    merged = merge_accumulators([{"a": IntCounter(), "b": IntCounter(2)}, {"a": Histogram()}, {"a": IntCounter()}])
    assert isinstance(merged["a"], AccumulatorError)
    assert "IntCounter" in str(merged["a"])
    assert "Histogram" in str(merged["a"])
    assert local_value(merged["b"]) == 2


def test_an_accumulator_that_cannot_be_merged_leaves_the_others_readable():
    class Stubborn(IntCounter):
        def merge(self, other):
            raise RuntimeError("no")

    merged = merge_accumulators([{"a": Stubborn(), "b": IntCounter(1)}, {"a": Stubborn(), "b": IntCounter(1)}])
    assert "RuntimeError: no" in str(merged["a"])
    assert local_value(merged["b"]) == 2
    with pytest.raises(AccumulatorError, match="IntCounter into a AverageAccumulator"):
        AverageAccumulator().merge(IntCounter())  # type: ignore[arg-type]
