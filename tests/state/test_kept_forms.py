"""The form in which a state without a declared type keeps its values: immutable ones as themselves, others pickled."""

import decimal

import pytest

from ekorn.state.codecs import PickledCodec

CODEC = PickledCodec("state")


@pytest.mark.parametrize(
    "value",
    [7, "text", None, (), (1, "a"), ((1, 2), 3), (3, ((1, "a"), b"b")), frozenset({1, (2, 3)}), decimal.Decimal(1)],
)
def test_an_immutable_value_of_built_in_types_is_kept_as_itself(value):
    assert CODEC.stored(value) is value
    assert CODEC.loaded(value) is value


class Named(str):
    """A class of the program."""


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, (1, [2]), ([2], 1), ((1, [2]), 3), frozenset({(1, Named("a"))}), Named("a"), str, len]
)
def test_any_other_value_is_kept_pickled_and_every_read_makes_a_new_one(value):
    kept = CODEC.stored(value)
    assert type(kept) is bytearray
    assert CODEC.loaded(kept) == value
