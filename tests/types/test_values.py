"""Values are kept and passed on as values: a later change to an object reaches no other holder of the value."""

import copy
import datetime
import pickle
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ekorn.common import Row
from ekorn.types.by_value import dumps, is_immutable, loaded, own, stored


@dataclass
class Basket:
    items: list = field(default_factory=list)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(allow_nan=False),
    st.dates(),
    st.builds(bytearray, st.binary(max_size=3)),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda fields: Row(*fields)),
        st.lists(inner, max_size=2).map(Basket),
        st.frozensets(st.integers(), max_size=2),
        st.sets(st.integers(), max_size=2),
    ),
    max_leaves=8,
)


def spoil(value):
    """Change everything in a value that is mutable; return the number of changes."""
    if isinstance(value, (list, bytearray)):
        inside = sum(spoil(each) for each in value) if isinstance(value, list) else 0
        value.append(7)
        return inside + 1
    if isinstance(value, dict):
        inside = sum(spoil(each) for each in value.values())
        value["spoiled"] = 7
        return inside + 1
    if isinstance(value, set):
        value.add("spoiled")
        return 1
    if isinstance(value, Basket):
        return spoil(value.items)
    if isinstance(value, Row):
        inside = sum(spoil(each) for each in value)
        if len(value):
            value[0] = "spoiled"
        return inside + len(value)
    if isinstance(value, (tuple, frozenset)):
        return sum(spoil(each) for each in value)
    return 0


def shown(value):
    """Return the text of a value with its types; equal sets have equal texts in any order of insertion."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{sorted(map(shown, value))}"
    if isinstance(value, (list, tuple, Row)):
        return f"{type(value).__name__}{[shown(each) for each in value]}"
    if isinstance(value, dict):
        return f"dict{[(shown(key), shown(each)) for key, each in value.items()]}"
    if isinstance(value, Basket):
        return f"Basket({shown(value.items)})"
    return repr(value)


@given(values)
@example(frozenset([-3, -35]))
def test_an_own_copy_is_equal_and_shares_nothing_that_can_change(value):
    before = copy.deepcopy(value)
    mine = own(value)
    assert shown(mine) == shown(before) and type(mine) is type(before)
    spoil(value)
    assert shown(mine) == shown(before)


@given(values)
@example(frozenset([3, 19]))
def test_a_stored_value_is_neither_changed_by_its_giver_nor_by_its_readers(value):
    before = copy.deepcopy(value)
    kept = stored(value)
    spoil(value)
    first = loaded(kept)
    assert shown(first) == shown(before)
    spoil(first)
    assert shown(loaded(kept)) == shown(before)


@given(values)
def test_immutable_values_cannot_be_changed(value):
    if is_immutable(value):
        assert spoil(value) == 0
        assert own(value) is value and stored(value) is value


@pytest.mark.parametrize(
    "value",
    [1, "a", 2.5, None, True, b"x", (1, ("a", None)), frozenset({1}), Decimal("1.1"), datetime.date(2024, 1, 1)],
)
def test_plain_values_are_passed_on_as_they_are(value):
    assert own(value) is value
    assert stored(value) is value


def test_a_bytearray_of_the_user_s_is_not_taken_for_a_stored_value():
    theirs = bytearray(pickle.dumps("a trap"))
    assert loaded(stored(theirs)) == theirs


def test_values_that_refer_to_themselves_or_have_a_local_class_are_pickled():
    class Local:
        def __init__(self):
            self.me = self

    again = pickle.loads(dumps(Local()))
    assert again.me is again
    loop = []
    loop.append(loop)
    assert pickle.loads(dumps(loop))[0][0] is not None


def test_a_value_that_cannot_be_pickled_raises():
    with pytest.raises(TypeError, match="cannot pickle"):
        dumps(value for value in ())
