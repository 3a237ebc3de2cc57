"""Keys and values as bytes: equal keys have equal bytes, different keys differ, and every value is read back."""

import datetime
import decimal
import enum
import fractions
import subprocess
import sys
import uuid
from collections import namedtuple
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ekorn.common.types import Row
from ekorn.errors import StateError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.keygroups import key_group, state_key, user_key
from ekorn.state.rocksdb.key_bytes import PREFIX, address_of, entry_bytes, read_part, window_bytes
from ekorn.state.rocksdb.value_bytes import (
    decode,
    decode_stamped,
    encode,
    encode_stamped,
    split_original,
    stamp_of,
    with_original,
)
from ekorn.types.by_value import stored
from tests.state.backends import BACKENDS, rocksdb


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Named(str):
    """Text of another type, which is another key than the text itself."""


@dataclass(frozen=True)
class Place:
    town: str
    number: float
    note: str = field(default="", compare=False)


Point = namedtuple("Point", "x y")

zones = st.sampled_from([datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))])
numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 2.0**70]),
    st.sampled_from(["1.0", "1.00", "0.1", "1e400"]).map(decimal.Decimal),
    st.sampled_from([fractions.Fraction(1, 2), fractions.Fraction(1, 3), fractions.Fraction(2)]),
    st.sampled_from([1j, 1 + 0j, 0.5 + 2j]),
)
plain = st.one_of(st.text(max_size=3), st.binary(max_size=3), numbers, st.none())
others = st.one_of(
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=zones),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from(Colour),
    st.text("ab", max_size=2).map(Named),
    st.builds(Place, st.text("ab", max_size=1), st.sampled_from([1, 1.0, 2]), st.text("ab", max_size=1)),
    st.builds(Point, plain, plain),
    st.frozensets(plain, max_size=3),
    st.builds(Row, plain, plain),
    st.builds(lambda a, b: Row(x=a, y=b), plain, plain),
)
keys = st.recursive(st.one_of(plain, others), lambda some: st.lists(some, max_size=3).map(tuple), max_leaves=5).filter(
    lambda key: key is not None
)


def bytes_of(key):
    return address_of(state_key(key), 128, 7)[0]


@given(keys, keys)
def test_two_keys_have_the_same_bytes_when_they_are_one(one, other):
    assert (bytes_of(one) == bytes_of(other)) is (state_key(one) == state_key(other))


@given(keys, keys)
def test_no_key_is_the_beginning_of_another(one, other):
    assume(state_key(one) != state_key(other))
    assert not bytes_of(one).startswith(bytes_of(other))


@given(keys)
def test_an_address_begins_with_the_key_group_and_the_state(key):
    assert PREFIX.unpack_from(bytes_of(key)) == (key_group(key, 128), 7)


@given(keys)
def test_bytes_that_say_all_are_read_back_and_others_are_passed_over(key):
    address, exact = address_of(state_key(key), 128, 7)
    found, end = read_part(address + b"rest", PREFIX.size)
    assert end == len(address)
    if exact:
        assert state_key(found) == state_key(key)
        assert repr(found) == repr(user_key(state_key(key)))


@pytest.mark.parametrize("key", ["a" * 70_000, b"b" * 70_000, 2**600, -(2**600), -(2**63), 2**63 - 1, "\ud800", ()])
def test_keys_of_any_size_are_read_back(key):
    address, exact = address_of(state_key(key), 128, 7)
    assert exact
    assert read_part(address, PREFIX.size) == (key, len(address))


@given(st.one_of(st.tuples(st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64)), st.integers(), st.just(())))
def test_windows_are_read_back(window):
    assert read_part(window_bytes(window) + b"rest", 0) == (window, len(window_bytes(window)))


def test_nan_is_one_key():
    assert bytes_of(float("nan")) == bytes_of(-float("nan"))


@given(st.one_of(plain, others).filter(lambda v: v == v), st.one_of(plain, others).filter(lambda v: v == v))
def test_two_entries_of_a_map_have_the_same_bytes_when_they_are_equal(one, other):
    assert (entry_bytes(one)[0] == entry_bytes(other)[0]) is (one == other)


def test_the_order_in_which_a_set_was_made_does_not_matter_in_any_process():
    program = (
        "from ekorn.state.rocksdb.key_bytes import address_of; from ekorn.keygroups import state_key;"
        "print(address_of(state_key(frozenset('abcdefgh')), 128, 1)[0].hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_an_address_from_elsewhere_is_refused():
    with pytest.raises(StateError, match="that ekorn did not write"):
        read_part(b"\x00\x00\x00\x00?", 4)


# --------------------------------------------------------------------------------------------------------------- values

values = st.recursive(
    st.one_of(plain, st.floats(), st.uuids(), st.datetimes()),
    lambda some: st.lists(some, max_size=3) | st.tuples(some, some) | st.dictionaries(st.text(), some, max_size=2),
    max_leaves=5,
).map(stored)


@given(values, st.integers(-(2**62), 2**62))
def test_values_are_read_back_with_and_without_stamps(kept, stamp_ms):
    assert repr(decode(encode(kept))) == repr(kept)
    stamped = encode_stamped((stamp_ms, kept))
    assert repr(decode_stamped(stamped)) == repr((stamp_ms, kept))
    assert stamp_of(stamped) == stamp_ms


@given(values, keys)
def test_the_original_of_an_address_stands_before_the_value(kept, key):
    data = with_original(state_key(key), encode(kept))
    original, rest = split_original(data)
    assert original == state_key(key)
    assert repr(decode(rest)) == repr(kept)
    assert split_original(encode(kept)) == (None, encode(kept))


@pytest.mark.parametrize("read", [decode, stamp_of])
def test_a_value_from_elsewhere_is_refused(read):
    with pytest.raises(StateError, match="RocksDB holds a value"):
        read(b"?what")


# ------------------------------------------------------------------------------------------------------ in the backends

ODD = [
    Place("a", 1, "x"),
    decimal.Decimal("1.10"),
    Colour.RED,
    Named("a"),
    frozenset({"a", 1}),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    uuid.UUID(int=7),
    Row(a=1, b="x"),
    Point(1, (True, 2.0)),
    (Colour.BLUE, 1.0),
    float("nan"),
    True,
]
SAME = [
    Place("a", 1.0, "y"),
    decimal.Decimal("1.1"),
    Colour.RED,
    Named("a"),
    frozenset({1, "a"}),
    datetime.datetime(2020, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    uuid.UUID(int=7),
    Row(a=1, b="x"),
    Point(1, (True, 2.0)),
    (Colour.BLUE, 1.0),
    -float("nan"),
    True,
]


@pytest.mark.parametrize("make", [BACKENDS["heap"], rocksdb, BACKENDS["rocksdb, cramped"]])
def test_keys_of_any_type_find_their_state_and_are_listed_as_they_were(make):
    backend = make()
    value = backend.state(ValueStateDescriptor("value"))
    listed = backend.state(ListStateDescriptor("list"))
    entries = backend.state(MapStateDescriptor("map"))
    for number, key in enumerate(ODD):
        backend.cell[0] = state_key(key)
        value.update(number)
        listed.add_all([number, key])
        entries.put(key, number)
        entries.put("n", number)
    for number, (key, given_first) in enumerate(zip(SAME, ODD, strict=True)):
        backend.cell[0] = state_key(key)
        assert value.value() == number
        assert repr(list(listed.get())) == repr([number, given_first])
        if key == key:  # in a dictionary every NaN is a key of its own
            assert entries.get(key) == number
        assert sorted(map(repr, entries.keys())) == sorted(map(repr, ["n", given_first]))
    for state in ("value", "list", "map"):
        assert sorted(map(repr, backend.keys(state))) == sorted(map(repr, ODD))
    backend.close()


@pytest.mark.parametrize("make", [BACKENDS["heap"], rocksdb, BACKENDS["rocksdb, cramped"]])
def test_entries_of_a_map_are_told_apart_by_equality_whatever_their_types(make):
    backend = make()
    entries = backend.state(MapStateDescriptor("map"))
    backend.cell[0] = "key"
    entries.put(1, "one")
    entries.put(True, "true")
    entries.put(1.0, "float")
    entries.put(decimal.Decimal(2), "two")
    assert entries.get(1) == "float"
    assert entries.contains(2.0)
    assert len(list(entries.keys())) == 2
    entries.remove(decimal.Decimal("1.0"))
    assert dict(entries.items()) == {2: "two"}
    backend.close()


# ------------------------------------------------------------------------------------------ keys of rarer kinds


class Blob(bytes):
    """Bytes of another type."""


class Plain:
    """A class that is not known to the encoder: told apart by its pickle."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, Plain) and self.number == other.number

    def __hash__(self):
        return hash(self.number)


def at(hour, minute=0, *, offset):
    return datetime.time(hour, minute, tzinfo=datetime.timezone(datetime.timedelta(hours=offset)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (at(12, offset=2), at(11, offset=1)),
        (at(1, 30, offset=2), at(0, 30, offset=1)),  # both of them on the day before, in UTC
        (Blob(b"a"), b"a"),
        (Plain(1), Plain(1)),
        (1, 1 + 0j),
        (fractions.Fraction(10**400, 1), 10**400),
        (fractions.Fraction(1, 2), 0.5),
        (decimal.Decimal("Infinity"), float("inf")),
        (decimal.Decimal("-Infinity"), float("-inf")),
    ],
)
def test_equal_entries_of_a_map_have_the_same_bytes(one, other):
    assert one == other
    assert entry_bytes(one)[0] == entry_bytes(other)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (at(12, offset=2), at(12, offset=1)),
        (at(12, offset=2), datetime.time(10)),
        (datetime.time(10), datetime.datetime(2000, 1, 2, 10)),
        (Blob(b"a"), Blob(b"b")),
        (Plain(1), Plain(2)),
        (1j, 1),
        (1 + 1j, 1 + 2j),
        (2 + 1j, 1 + 1j),
        (fractions.Fraction(10**400, 3), fractions.Fraction(10**400, 7)),
        (fractions.Fraction(1, 3), 1 / 3),
        (float("inf"), float("-inf")),
        ((), frozenset()),
        (None, ()),
    ],
)
def test_different_entries_of_a_map_have_different_bytes(one, other):
    assert one != other
    first, second = (entry_bytes(value)[0] for value in (one, other))
    assert first != second
    assert not first.startswith(second) and not second.startswith(first)


@pytest.mark.parametrize(
    ("entry", "exact"),
    [
        *((entry, True) for entry in ("a", b"a", 3, 2**70, None, 0.5, float("inf"), float("nan"), ("a", (1, 0.5)))),
        *((entry, False) for entry in (("a", True), True, 1.0, 2.0**70, 1j, 1 + 0j, fractions.Fraction(1, 3))),
        *((entry, False) for entry in (decimal.Decimal("0.5"), decimal.Decimal("Infinity"))),
        *((entry, False) for entry in (Named("a"), Plain(1), Blob(b""))),
    ],
)
def test_an_entry_is_exact_when_its_key_can_be_read_back_from_its_bytes(entry, exact):
    data, says = entry_bytes(entry)
    assert says is exact
    found, end = read_part(data, 0)
    assert end == len(data)
    if exact:
        assert repr(found) == repr(entry)


@pytest.mark.parametrize("fields", [1 << 16, (1 << 16) + 1])
def test_a_key_with_too_many_fields_is_refused_with_their_number(fields):
    for encoded in (lambda: entry_bytes((0,) * fields), lambda: address_of(state_key((0,) * fields), 128, 7)):
        with pytest.raises(StateError, match=f"a key has {fields} fields, but no more than 65535 are possible"):
            encoded()
    assert read_part(entry_bytes((None,) * 65_535)[0], 0)[0] == (None,) * 65_535


@pytest.mark.parametrize("size", [(1 << 16) - 1, 1 << 16])
def test_a_long_text_is_read_back_at_the_limit_of_its_shorter_form(size):
    for key in ("a" * size, b"b" * size, ("a" * size, 1)):
        address, exact = address_of(state_key(key), 128, 7)
        assert exact
        assert read_part(address, PREFIX.size) == (key, len(address))


@pytest.mark.parametrize("window", [(0, 10), (-(2**63), 2**63 - 1), (5, 5), (5, 4), (0, 2**63), (-(2**63) - 1, 0), "w"])
def test_a_window_is_read_back(window):
    data = window_bytes(window)
    assert read_part(data + b"rest", 0) == (window, len(data))


@pytest.mark.parametrize("data", [b"", b"?", b"i\0", b"s\0\5ab", b"S\0\0\0\5ab", b"(\0\2N", b"s\0\1\xff", b"d\0", b"x"])
def test_bytes_that_break_off_are_refused(data):
    with pytest.raises(StateError, match="an address that ekorn did not write"):
        read_part(data, 0)


@pytest.mark.parametrize(
    "number", [-(2**63) - 1, -(2**63), -1, 0, 127, 128, 255, 256, 2**63 - 1, 2**63, 2**64, -(2**71)]
)
def test_an_integer_of_any_size_is_read_back(number):
    assert read_part(entry_bytes(number)[0], 0)[0] == number


def test_integers_in_an_address_keep_their_order():
    inside = [-(2**63), -2, -1, 0, 1, 2**63 - 1]
    encoded = [entry_bytes(number)[0] for number in inside]
    assert encoded == sorted(encoded)


@pytest.mark.parametrize(
    ("entry", "data"),
    [
        ("a", b"s\0\1a"),
        (b"a", b"b\0\1a"),
        (1, b"i\x80" + bytes(6) + b"\1"),
        (-1, b"i\x7f" + b"\xff" * 7),
        (2**63, b"g\0\x09\0\x80" + bytes(7)),
        (0.5, b"d\x3f\xe0" + bytes(6)),
        (None, b"N"),
        ((None, "a"), b"(\0\2Ns\0\1a"),
        (frozenset({"b", "a"}), b"f\0\2s\0\1as\0\1b"),
        (at(12, offset=2), b"xs\0\4times\0\x132000-01-02T10:00:00"),
        (datetime.time(12), b"xs\0\4times\0\x0812:00:00"),
        (datetime.date(2001, 2, 3), b"xs\0\4dates\0\x0a2001-02-03"),
        (datetime.timedelta(seconds=1), b"xs\0\x09timedeltai\x80" + bytes(4) + b"\x0f\x42\x40"),
        (fractions.Fraction(1, 3), b"ri\x80" + bytes(6) + b"\1i\x80" + bytes(6) + b"\3"),
        (2j, b"ci\x80" + bytes(7) + b"i\x80" + bytes(6) + b"\2"),
    ],
)
def test_the_bytes_of_an_entry_never_change_because_checkpoints_hold_them(entry, data):
    assert entry_bytes(entry)[0] == data
