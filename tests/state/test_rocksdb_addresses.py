"""Remembered addresses: which are known, in which order, and when all are forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.state.rocksdb.known_addresses import KnownAddresses
from tests.state.backends import rocksdb

KEYS = st.integers(0, 30)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), KEYS),
        st.tuples(st.just("drop"), KEYS),
        st.tuples(st.just("of"), st.sets(KEYS)),
        st.tuples(st.just("limit"), st.booleans()),
    ),
    max_size=40,
)


@pytest.fixture
def backend():
    backend = rocksdb()
    yield backend
    backend.close()


def address(key):
    return bytes([key * 7 % 31, key])  # in another order than the keys


@given(STEPS)
def test_addresses_are_those_that_were_learnt_and_not_dropped(steps):
    addresses, model, fit = KnownAddresses(), {}, True
    for step, given_ in steps:
        if step == "learn":
            addresses.learn(given_, address(given_))
            if fit:
                model[given_] = address(given_)
        elif step == "drop":
            addresses.drop(given_)
            model.pop(given_, None)
        elif step == "limit":
            fit = given_
            addresses.limit(60 if fit else 61, 100)
            model = model if fit else {}
        else:
            found, places = addresses.of(given_)
            assert dict(zip(found, places, strict=True)) == {key: model[key] for key in given_ if key in model}
            assert set(addresses.unknown(given_)) == given_ - set(model)


@given(st.sets(KEYS, min_size=1), st.data())
def test_many_come_in_order_once_they_come_again(keys, data):
    addresses = KnownAddresses()
    for key in keys:
        addresses.learn(key, address(key))
    half = data.draw(st.sets(st.sampled_from(sorted(keys)), min_size=(len(keys) + 1) // 2))
    found, places = addresses.of(half)
    assert set(found) == half
    assert places == sorted(places)


def test_a_table_that_is_nearly_full_remembers_none(backend):
    state = backend.state(ValueStateDescriptor("count"))
    table = backend.rocks.by_name["count"]
    for value in (1, 2):
        for key in range(100):
            backend.cell[0] = key
            state.update(value)
        table.limit[0] = 1000
        backend.rocks.flush()
        assert len(table.addresses.of(set(range(100)))[0]) == 100
    table.limit[0] = 150
    backend.cell[0] = 0
    state.update(3)
    backend.rocks.flush()
    assert table.addresses.of(set(range(100))) == ([], [])
    backend.cell[0] = 99
    assert state.value() == 2


def test_what_is_cleared_and_written_again_and_again_is_what_was_written_last(backend):
    state = backend.state(ValueStateDescriptor("count"))
    for turn in range(6):
        for key in range(50):
            backend.cell[0] = key
            if (key + turn) % 3 == 0:
                state.clear()
            else:
                state.update((key, turn) if key % 2 else turn)
        backend.rocks.flush()
        expected = {key: (key, turn) if key % 2 else turn for key in range(50) if (key + turn) % 3}
        assert dict(backend.entries("count")) == expected
