"""Queries as bytes: a client can make the driver decode plain values, and nothing else."""

import datetime
import decimal
import fractions
import os
import pickle
import uuid
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Row, Types
from ekorn.driver.queries.query_wire import (
    Answer,
    decode_answer,
    decode_keys,
    decode_query,
    encode_answer,
    encode_query,
)
from ekorn.errors import QueryError, QueryRefused, StateNotServed, UnknownKey


@dataclass(frozen=True)
class Place:
    x: int
    y: int


class Pair(NamedTuple):
    left: str
    right: int


class Harmful:
    def __reduce__(self):
        return os.system, ("touch /tmp/must-not-exist",)


KEYS = st.recursive(
    st.one_of(
        st.text(),
        st.integers(),
        st.floats(allow_nan=False),
        st.booleans(),
        st.binary(),
        st.dates(),
        st.datetimes(),
        st.uuids(),
        st.decimals(allow_nan=False),
        st.fractions(),
        st.timedeltas(),
        st.times(),
        st.complex_numbers(allow_nan=False),
    ),
    lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(st.integers())),
    max_leaves=4,
)


@given(st.lists(KEYS, max_size=5), st.text(), st.text())
def test_plain_keys_arrive_as_they_were_sent(keys, job, name):
    query = decode_query(encode_query(job, name, keys))
    assert (query.job, query.name) == (job, name)
    found = decode_keys(query.keys, None)
    assert found == keys and [type(key) for key in found] == [type(key) for key in keys]


@pytest.mark.parametrize(
    "key",
    [
        Row(1, "a"),
        Row(n=1),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 3),
        uuid.UUID(int=7),
    ],
    ids=repr,
)
def test_rows_and_values_of_the_standard_library_are_plain(key):
    assert decode_keys(decode_query(encode_query("", "", [key])).keys, None) == [key]


@pytest.mark.parametrize("key", [Place(1, 2), Pair("a", 1)], ids=["dataclass", "named tuple"])
def test_a_class_is_decoded_if_it_is_the_declared_type_of_the_keys(key):
    keys = decode_query(encode_query("", "", [key])).keys
    assert decode_keys(keys, Types.POJO(type(key))) == [key]
    nested = decode_query(encode_query("", "", [("a", key)])).keys
    assert decode_keys(nested, Types.TUPLE([Types.STRING(), Types.POJO(type(key))])) == [("a", key)]
    with pytest.raises(QueryRefused, match="declare the class as the key type"):
        decode_keys(keys, Types.LONG())


def test_a_pickle_that_calls_something_is_refused_and_not_called(tmp_path):
    for message in (pickle.dumps(Harmful()), pickle.dumps(("job", "name", "live", Harmful()))):
        with pytest.raises(QueryRefused, match=r"posix\.system"):
            decode_query(message)
    with pytest.raises(QueryRefused, match=r"posix\.system"):
        decode_keys(pickle.dumps([Harmful()]), Types.LONG())
    assert not os.path.exists("/tmp/must-not-exist")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_query_are_refused(message):
    with pytest.raises(QueryRefused):
        decode_query(message)


@pytest.mark.parametrize(
    "message", [pickle.dumps(7), pickle.dumps(("job", "name")), pickle.dumps(("j", "n", "exact", b""))]
)
def test_values_that_are_no_query_are_refused(message):
    with pytest.raises(QueryRefused, match="not a query"):
        decode_query(message)


def test_an_answer_has_values_or_the_error():
    answer = decode_answer(encode_answer(Answer("value", [b"1", None])))
    assert answer == Answer("value", [b"1", None])
    answer.raise_error()
    for error in (UnknownKey("counts", "'tea'"), StateNotServed("counts", "it restarts")):
        with pytest.raises(type(error), match="counts"):
            decode_answer(encode_answer(Answer(error=(type(error).__name__, error.args)))).raise_error()
    with pytest.raises(QueryError):
        Answer(error=("SystemExit", ("no",))).raise_error()
