"""Quantiles and distinct counts: their error bounds, and states that depend on the values alone."""

import datetime
import math
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.kernel_choice import chosen_kernel
from ekorn.columns.key_elements import KeyElements
from ekorn.columns.segments import Segments
from ekorn.columns.value_hashes import ValuesOfRows, hashes_of
from ekorn.datastream.columns import ApproxCountDistinct, CountDistinct, Quantile
from ekorn.functions import sketches
from ekorn.types.time import Instant
from tests.examples_by_profile import examples

AGGREGATES = [CountDistinct("v"), ApproxCountDistinct("v"), Quantile("v", 0.5), Quantile("v", (0.01, 0.99))]
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000).map(float)


def kernel_of(aggregate, kind=None):
    several = isinstance(aggregate, Quantile) and aggregate.is_several
    result = pa.list_(pa.float64()) if several else pa.float64() if isinstance(aggregate, Quantile) else pa.int64()
    return chosen_kernel(aggregate, kind or pa.int64(), result)


def accumulated(aggregate, values):
    return reduce(aggregate.add, values, aggregate.create())


@settings(max_examples=examples(100), deadline=None)
@given(values=st.lists(numbers, min_size=1, max_size=80), q=st.floats(0, 1))
def test_a_quantile_is_the_exact_one_rounded_towards_zero_to_eight_bits(values, q):
    aggregate = Quantile("v", q)
    found = aggregate.result(accumulated(aggregate, values))
    exact = sorted(values)[math.floor(q * (len(values) - 1))]
    assert abs(found) <= abs(exact)
    if abs(exact) >= 2.0**-1022:  # smaller numbers have no eight bits
        assert abs(exact - found) <= abs(exact) / 128
        assert found == math.copysign(1, exact) * math.ldexp(*floored(abs(exact)))


def floored(number):
    mantissa, exponent = math.frexp(number)
    return math.floor(mantissa * 256), exponent - 8


def test_quantiles_of_small_whole_numbers_are_exact_and_nan_is_the_largest():
    values = [*range(-256, 257), float("nan"), float("inf"), float("-inf")]
    count = len(values)
    aggregate = Quantile("v", [rank / (count - 1) for rank in range(count)])
    found = aggregate.result(accumulated(aggregate, values[::-1]))
    assert found[0] == -math.inf and found[-2] == math.inf and math.isnan(found[-1])
    ranks = [math.floor(rank / (count - 1) * (count - 1)) for rank in range(count)]
    assert found[:-2] == [sorted([*values[:-3], -math.inf, math.inf])[rank] for rank in ranks[:-2]]


@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("count", [1, 2, 100, 1_000, 6_000, 10_000, 30_000, 300_000])
def test_an_approximate_distinct_count_is_within_its_bounds(kind, count):
    """Each of eight keys counts other values, all of them twice."""
    errors = []
    for key in range(8):
        values = range(key * 1_000_000, key * 1_000_000 + count)
        column = pa.array(values, pa.int64()) if kind == "numbers" else pa.array([f"user {n}" for n in values])
        kernel = kernel_of(ApproxCountDistinct("v"), column.type)
        for _ in range(2):
            kernel.update(np.zeros(count, dtype=np.int64), column)
        (found,) = kernel.results(np.zeros(1, np.int64)).to_pylist()
        errors.append((found - count) / count)
    assert max(map(abs, errors)) <= 0.05
    assert math.sqrt(sum(error * error for error in errors) / len(errors)) <= 0.03
    assert abs(sum(errors) / len(errors)) <= 0.017  # no bias, also between the two estimators


values_of_all = st.lists(st.integers(-(2**40), 2**40) | st.integers(0, 50), max_size=60)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), values=values_of_all)
def test_the_state_of_a_sketch_depends_on_the_values_alone(aggregate, data, values):
    whole = accumulated(aggregate, values)
    shuffled = data.draw(st.permutations(values))
    assert accumulated(aggregate, shuffled) == whole
    cut = data.draw(st.integers(0, len(values)))
    parts = [accumulated(aggregate, shuffled[:cut]), accumulated(aggregate, shuffled[cut:])]
    assert aggregate.merge(*parts) == aggregate.merge(*parts[::-1]) == whole


def test_registers_that_are_many_are_kept_in_a_byte_each():
    aggregate = ApproxCountDistinct("v")
    few, many = accumulated(aggregate, range(500)), accumulated(aggregate, range(450, 3_000))
    assert len(few[2]) <= 3 * sketches.MOST_SPARSE < len(many[2]) == sketches.REGISTERS
    assert aggregate.merge(few, many) == aggregate.merge(many, few) == accumulated(aggregate, range(3_000))
    kernel = kernel_of(aggregate)
    kernel.load(np.arange(2), [few, many])
    assert kernel.accumulators(np.arange(3)) == [few, many, aggregate.create()]
    kernel.update(np.zeros(3_000, np.int64), pa.array(range(3_000)))
    assert kernel.accumulators(np.arange(1)) == [accumulated(aggregate, range(3_000))]


steps = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 9)), max_size=30),
        st.tuples(st.just("reset"), st.sets(st.integers(0, 5))),
        st.tuples(st.just("keep"), st.permutations(range(6)), st.integers(0, 6)),
    ),
    max_size=8,
)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
@settings(max_examples=examples(30), deadline=None)
@given(steps=steps)
def test_keys_that_are_reset_or_numbered_anew_keep_nothing_of_others(aggregate, steps):
    kernel, model = kernel_of(aggregate), [aggregate.create()] * 6
    kernel.make_room(6)
    frozen = []
    for step in steps:
        if isinstance(step, list):
            for key, value in step:
                model[key] = model[key] if value is None else aggregate.add(model[key], value)
            keys = np.array([key for key, _ in step], dtype=np.int64)
            column = pa.array([value for _, value in step], pa.int64())
            if len(step) % 2:
                kernel.update(keys, column)
            else:
                kernel.running(Segments(keys), column)
        elif step[0] == "reset":
            kernel.reset(np.array(sorted(step[1]), dtype=np.int64))
            for key in step[1]:
                model[key] = aggregate.create()
        else:
            kept = list(step[1])[: step[2]]
            kernel.keep(np.array(kept, dtype=np.int64))
            model = [model[key] for key in kept] + [aggregate.create()] * (6 - len(kept))
        assert kernel.accumulators(np.arange(6)) == model
        assert kernel.results(np.arange(6)).to_pylist() == list(map(aggregate.result, model))
        frozen.append((kernel.frozen(), list(model)))
    for copy, then in frozen:
        assert copy.accumulators(np.arange(6)) == then


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
def test_the_memory_of_keys_that_are_reset_is_used_again(aggregate):
    kernel, sizes = kernel_of(aggregate), []
    kernel.make_room(50)
    for turn in range(60):
        kernel.update(np.arange(50).repeat(100), pa.array(np.arange(5_000) + turn * 5_000))
        kernel.reset(np.arange(50))
        sizes.append(kernel.size_bytes)
    assert max(sizes[30:]) <= 1.5 * max(sizes[:30])


def test_keys_with_many_elements_are_found_beside_keys_with_few():
    elements, places = KeyElements(pa.int64()), np.zeros(64, dtype=np.int64)
    keys = np.array([0] * 500 + [1] * 3 + [2] * 65 + [3] * 64)
    values = np.concatenate([np.arange(500), np.arange(3), np.arange(65), np.arange(64)])
    elements.rows(elements.placed(places, keys), pa.array(values))
    owners, found = elements.of(places[np.array([3, 1, 9, 2, 0])])
    assert np.bincount(owners, minlength=5).tolist() == [64, 3, 0, 65, 500]
    assert sorted(elements.values(found[owners == 3]).to_pylist()) == list(range(65))


DAY = datetime.date(1969, 5, 3)
MOMENT = datetime.datetime(1931, 1, 2, 3, 4, 5, 678_901)
VALUES = [
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)]),
    (pa.int8(), [0, -128, 127]),
    (pa.float64(), [0.0, -0.0, 1.5, -1e300, 3.0, 2.0**70, float("nan"), float("inf"), -(2.0**63), 2.0**63, 5e-324]),
    (pa.float32(), [0.5, 16777216.0]),
    (pa.bool_(), [True, False]),
    (pa.string(), ["", "a", "12345678", "123456789", "ö" * 20, "\0"]),
    (pa.binary(), [b"", b"\0", b"\0\0", b"x" * 17]),
    (pa.date32(), [DAY]),
    (pa.timestamp("us"), [MOMENT]),
    (pa.timestamp("ms"), [MOMENT.replace(microsecond=678_000)]),
    (pa.timestamp("us", "UTC"), [Instant(-5, 7_000), Instant(2**31, 0)]),
    (pa.time64("us"), [datetime.time(1, 2, 3, 4)]),
    (pa.time32("ms"), [datetime.time(1, 2, 3, 4_000)]),
    (pa.decimal128(38, 3), [Decimal("1.500"), Decimal("-7"), Decimal("0.000"), Decimal(10**30) + Decimal("0.1")]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_values_have_the_same_hash_in_both_forms(kind, values):
    of_rows = ValuesOfRows(kind)
    column = of_rows.column(values * 2).slice(1)
    assert hashes_of(column, of_rows).tolist() == list(map(sketches.hash_of, (values * 2)[1:]))


def test_equal_numbers_have_one_hash_whatever_their_type():
    assert len({sketches.hash_of(each) for each in (3, 3.0, Decimal("3.00"), Decimal("3"))}) == 1
    assert len({sketches.hash_of(each) for each in (Decimal("0.5"), Decimal("0.50"))}) == 1


def test_aggregates_without_meaning_are_refused():
    from ekorn.table import DataTypes

    with pytest.raises(ValueError, match=r"takes quantiles from 0 to 1, got 1.5"):
        Quantile("v", 1.5)
    with pytest.raises(ValueError, match="takes quantiles from 0 to 1"):
        Quantile("v", [])
    with pytest.raises(TypeError, match=r"Quantile\('v', 0.5\) needs a column of numbers"):
        Quantile("v", 0.5).result_type(DataTypes.STRING())
    with pytest.raises(TypeError, match=r"CountDistinct\('v'\) needs a column of plain values"):
        CountDistinct("v").result_type(DataTypes.ARRAY(DataTypes.INT()))
