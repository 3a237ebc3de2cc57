"""Values along the rows of keys: those of a loop over the rows."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.key_rows import KeyRows, as_mask
from ekorn.errors import AggregateOverflowError
from tests.examples_by_profile import examples

rows = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(-9, 9)), min_size=1, max_size=200)


@settings(max_examples=examples(100), deadline=None)
@given(rows=rows, floats=st.booleans())
def test_helpers_give_what_a_loop_over_the_rows_gives(rows, floats):
    numbers = np.array([key * 7 for key, _ in rows])
    keys, distinct = KeyRows.numbered(numbers)
    values = pa.array([None if v is None else v / 10 if floats else v for _, v in rows])
    if values.null_count == len(values):
        values = values.cast(pa.float64() if floats else pa.int64())
    start = np.arange(len(distinct)) + (0.5 if floats else 0)
    state = {int(n): {"sum": start[i], "n": i, "max": start[i], "min": start[i], "last": None, "own": 0}
             for i, n in enumerate(distinct)}  # fmt: skip
    found = {"sum": [], "rank": [], "max": [], "min": [], "previous": []}
    for number, value in zip(numbers.tolist(), values.to_pylist(), strict=True):
        one = state[number]
        found["rank"].append(one["n"])
        found["previous"].append(one["last"])
        if value is not None:
            one["sum"], one["max"], one["min"] = one["sum"] + value, max(one["max"], value), min(one["min"], value)
            one["own"] += value
        found["sum"].append(one["sum"])
        found["max"].append(one["max"])
        found["min"].append(one["min"])
        one["n"], one["last"] = one["n"] + 1, value
    assert keys.running_sum(values, start).tolist() == found["sum"]
    assert keys.rank(np.arange(len(distinct))).tolist() == found["rank"]
    assert keys.running_extreme(np.maximum, values, start).tolist() == found["max"]
    assert keys.running_extreme(np.minimum, values, start).tolist() == found["min"]
    assert keys.previous(values).to_pylist() == found["previous"]
    assert keys.last(values).to_pylist() == [state[int(n)]["last"] for n in distinct]
    assert keys.sums(values).tolist() == [state[int(n)]["own"] for n in distinct]
    assert keys.to_rows(distinct).tolist() == numbers.tolist()


def test_previous_and_first_take_texts_of_arrow_and_arrays_of_numpy():
    keys, _ = KeyRows.numbered(np.array([4, 2, 4, 2, 4]))
    texts = pa.array(["a", "b", "c", "d", "e"])
    assert keys.previous(texts, pa.array(["two", "four"])).to_pylist() == ["four", "two", "a", "b", "c"]
    assert keys.previous(texts.to_numpy(zero_copy_only=False), np.array(["x", "y"], object)).tolist() == [
        "y", "x", "a", "b", "c",
    ]  # fmt: skip
    assert keys.first(texts).to_pylist() == ["b", "a"]
    assert keys.extremes(np.maximum, np.array([1, 5, 3, 2, 2])).tolist() == [5, 3]


def test_a_running_sum_that_leaves_64_bits_names_its_row_and_sums_of_different_keys_do_not_meet():
    big = (1 << 62) + 1
    keys, _ = KeyRows.numbered(np.array([0, 1, 2, 3]))
    assert keys.running_sum(np.array([big] * 4)).tolist() == [big] * 4
    keys, _ = KeyRows.numbered(np.array([0, 1, 0]))
    with pytest.raises(AggregateOverflowError) as raised:
        keys.running_sum(np.array([big, 1, big]))
    assert raised.value.row_in_batch == 2


def test_vectors_of_another_length_masks_of_numbers_and_texts_as_numbers_are_refused():
    keys, _ = KeyRows.numbered(np.array([0, 1, 0]))
    with pytest.raises(ValueError, match="a value for each row, which are 3, and got 2"):
        keys.running_sum([1, 2])
    with pytest.raises(ValueError, match="a value for each key, which are 2, and got 3"):
        keys.to_rows(np.zeros(3))
    with pytest.raises(ValueError, match="a mask has a bool for each key"):
        as_mask(np.array([1, 0]), 2, "key")
    with pytest.raises(TypeError, match="expected numbers"):
        keys.running_sum(pa.array(["a", "b", "c"]))
