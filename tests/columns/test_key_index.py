"""`KeyIndex` against a dict, for every type of key, batches of any size, and keys that collide."""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.key_index import ABSENT, KeyIndex
from tests.columns.key_kinds import KINDS, TEXTS
from tests.examples_by_profile import examples


def one_key(value):
    """Return a key that is equal for the values that are one key: every NaN is one, and 0.0 and -0.0 are two."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return tuple(map(one_key, value.values()))
    return tuple(map(one_key, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KINDS)
def test_equal_keys_have_one_number_and_others_have_others(kind):
    arrow_type, values = KINDS[kind]

    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(st.lists(values, max_size=40), max_size=5))
    def check(batches):
        index, numbers = KeyIndex([arrow_type]), {}
        for batch in batches:
            column = pa.array(batch, arrow_type)
            found = index.rows([column]).tolist()
            for value, number in zip(column.to_pylist(), found, strict=True):
                assert numbers.setdefault(one_key(value), number) == number
            assert index.find([column]).tolist() == found
        assert sorted(numbers.values()) == list(range(len(index)))
        kept = index.columns()[0].to_pylist()
        assert {one_key(value): number for number, value in enumerate(kept)} == numbers

    check()


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(st.tuples(TEXTS, st.none() | st.integers(-2, 2)), max_size=30), max_size=4))
def test_keys_of_several_columns_are_told_apart_by_all_of_them(batches):
    index, numbers = KeyIndex([pa.string(), pa.int64()]), {}
    for batch in batches:
        columns = [pa.array([row[n] for row in batch], kind) for n, kind in enumerate(index.types)]
        for row, number in zip(batch, index.rows(columns).tolist(), strict=True):
            assert numbers.setdefault(row, number) == number
    assert sorted(numbers.values()) == list(range(len(index)))


def test_a_key_that_is_not_here_is_absent_and_is_not_added():
    index = KeyIndex([pa.string()])
    index.rows([pa.array(["a", "b"])])
    assert index.find([pa.array(["b", "c", None])]).tolist() == [1 - index.rows([pa.array(["a"])])[0], ABSENT, ABSENT]
    assert len(index) == 2


def test_keys_whose_hashes_are_equal_are_compared(monkeypatch):
    monkeypatch.setattr("ekorn.columns.key_words.mixed_words", lambda words: words & np.uint64(3))
    index = KeyIndex([pa.string()])
    names = [f"name {number}" for number in range(300)]
    rows = index.rows([pa.array(names * 2)]).tolist()
    assert rows[:300] == rows[300:]
    assert sorted(rows[:300]) == list(range(300))


def test_a_slice_of_a_column_has_the_keys_of_the_slice():
    column = pa.array(["long text of a key", "b", None, "c"]).slice(1, 3)
    index = KeyIndex([pa.string()])
    index.rows([column])
    assert set(index.columns()[0].to_pylist()) == {"b", None, "c"}


def test_frozen_keys_are_those_of_their_time():
    index = KeyIndex([pa.string(), pa.int64()])
    index.rows([pa.array(["a"]), pa.array([1])])
    (names, numbers) = index.frozen()
    index.rows([pa.array([f"n{i}" for i in range(1000)]), pa.array(range(1000))])
    assert (names.to_arrow().to_pylist(), numbers.to_arrow().to_pylist()) == (["a"], [1])


def test_a_million_keys_take_less_than_sixty_bytes_each():
    index = KeyIndex([pa.string()])
    for first in range(0, 1_000_000, 100_000):
        index.rows([pa.array([f"user_{number}" for number in range(first, first + 100_000)])])
    assert len(index) == 1_000_000
    assert index.size_bytes / len(index) + 8 + 2 < 60  # and one long value, with its two marks


def test_dates_are_days():
    index = KeyIndex([pa.date32()])
    assert index.rows([pa.array([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)])]).tolist() in ([0, 1], [1, 0])
