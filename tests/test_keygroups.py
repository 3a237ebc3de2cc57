"""Key groups: the same on every machine, for ever; and the keys that are refused, with the reason."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import subprocess
import sys
import uuid

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Row
from ekorn.errors import InvalidKeyError
from ekorn.keygroups import (
    KeyGroup,
    default_max_parallelism,
    key_group,
    key_group_of_int,
    key_group_of_text,
    key_group_range,
    key_groups_of,
    key_groups_of_texts,
    mixed,
    stable_hash,
    state_key,
    subtask_of,
    user_key,
)
from ekorn.state.rocksdb.key_bytes import address_of

# Literals: a change here moves the state of every job ever checkpointed.
VECTORS = [
    ("a", 3904355907, 111),
    ("", 0, 0),
    ("hello", 907060870, 122),
    ("你好", 1352841281, 13),
    ("\ud800", 499426600, 112),
    (0, 0, 0),
    (1, 1, 97),
    (-1, 2305843009213693949, 43),
    (42, 42, 9),
    (2**70, 512, 38),
    (1.5, 1152921504606846977, 28),
    (float("inf"), 314159, 66),
    (float("nan"), 9221120237041090560, 101),
    (True, 1, 97),
    (b"a", 3904355907, 111),
    (("a", 1), 2061332492, 108),
    ((("a",), None), 3719496779, 15),
    (frozenset({1, 2}), 3148263339, 71),
    (decimal.Decimal("1.50"), 1152921504606846977, 28),
    (uuid.UUID(int=5), 5, 102),
    (datetime.date(2024, 2, 29), 4171806830, 64),
    (datetime.datetime(2024, 2, 29, 1, 2, 3), 1238496210, 25),
    (datetime.time(1, 2), 1618667660, 109),
    (datetime.timedelta(seconds=1), 1000000, 74),
    (Row("a", 1), 2061332492, 108),
]


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    pass


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Order:
    id: float
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(unsafe_hash=True)
class Changing:
    id: float


class Identity:
    pass


class Valued:
    def __eq__(self, other):
        return isinstance(other, Valued)

    def __hash__(self):
        return 1


class Promised(Valued):
    def __stable_hash__(self):
        return -5

    __hash__ = Valued.__hash__


@pytest.mark.parametrize(("key", "hashed", "group"), VECTORS, ids=lambda value: repr(value)[:30])
def test_a_key_goes_where_it_always_went(key, hashed, group):
    assert stable_hash(key) == hashed
    assert key_group(key, 128) == group


def test_another_process_with_another_salt_agrees():
    keys = ["a", ("b", 1), frozenset("abc"), 1.5, (Name("n"), None)]
    script = "import sys; sys.path[:0] = sys.argv[1:]\nfrom ekorn.keygroups import stable_hash\n"
    script += "print([stable_hash(k) for k in ['a', ('b', 1), frozenset('abc'), 1.5, ('n', None)]])"
    command = [sys.executable, "-c", script, *sys.path]
    found = subprocess.run(command, env={"PYTHONHASHSEED": "12345"}, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str([stable_hash(key) for key in keys])


UTC, TOKYO = datetime.UTC, datetime.timezone(datetime.timedelta(hours=9))


@pytest.mark.parametrize(
    "equal",
    [
        (1, 1.0, True, decimal.Decimal(1), fractions.Fraction(1), complex(1), Level.LOW),
        (0.5, decimal.Decimal("0.5"), fractions.Fraction(1, 2)),
        (0.0, -0.0, 0, False),
        ("a", Name("a")),
        ((1, "a"), (1.0, "a"), Point(1, "a")),
        (datetime.datetime(2024, 1, 1, 9, tzinfo=TOKYO), datetime.datetime(2024, 1, 1, tzinfo=UTC)),
        (datetime.time(9, tzinfo=TOKYO), datetime.time(0, tzinfo=UTC)),
        (datetime.time(9), datetime.time(9, fold=1)),
        (Order(1, "x"), Order(1, "y")),
    ],
    ids=repr,
)
def test_keys_that_are_equal_share_a_group(equal):
    """Check that equal keys share a group: routes are looked up by equality."""
    assert all(a == b for a in equal for b in equal)
    assert len({stable_hash(key) for key in equal}) == 1


def test_keys_of_one_s_own_are_found_by_what_they_are():
    assert stable_hash(Order(1)) == stable_hash(Order(1))
    assert stable_hash(Order(1)) != stable_hash(Order(2))
    assert stable_hash(Colour.RED) == stable_hash(Colour["RED"])
    assert stable_hash(Promised()) == 2**64 - 5


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, "None is not a key"),
        ([{}], "a dict is mutable"),
        ({}, "a dict is mutable"),
        ({1}, "a set is mutable"),
        (bytearray(b"x"), "a bytearray is mutable"),
        (Identity(), "Identity does not define __eq__ and __hash__"),
        (object(), "object does not define __eq__ and __hash__"),
        (Valued(), "the hash of Valued may differ in another process"),
        (("a", [{1}]), "a set is mutable"),
        ((Identity(),), "Identity does not define __eq__"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_a_key_is_refused_with_the_reason(key, reason):
    with pytest.raises(InvalidKeyError, match=reason):
        key_group(key, 128)


def spread(keys):
    """Return how many of 128 key groups the keys reach, chi-square per degree of freedom, and the largest share."""
    sizes = collections.Counter(key_group(key, 128) for key in keys)
    expected = len(keys) / 128
    chi_square = sum((sizes[KeyGroup(group)] - expected) ** 2 / expected for group in range(128))
    return len(sizes), chi_square / 127, max(sizes.values()) / expected


LETTERS = "abcdefghijklmnopqrstuvwxyz"
MANY_KEYS = {
    "numbers from 0": range(20_000),
    "negative numbers": range(-20_000, 0),
    "multiples of 128": range(0, 2_560_000, 128),
    "multiples of 1000": range(0, 20_000_000, 1000),
    "multiples of 2**32": [n << 32 for n in range(20_000)],
    "multiples of 2**32 + 1": [n * (2**32 + 1) for n in range(20_000)],
    "timestamps, a second apart": range(1_700_000_000_000, 1_700_020_000_000, 1000),
    "timestamps, a minute apart": range(1_700_000_000_000, 1_701_200_000_000, 60_000),
    "multiples of 0.1": [n * 0.1 for n in range(20_000)],
    "UUIDs": [uuid.UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128) for n in range(20_000)],
    "user-<n>": [f"user-{n}" for n in range(20_000)],
    "digits": [str(n) for n in range(20_000)],
    "hexadecimal digits": [f"{n:08x}" for n in range(20_000)],
    "three letters": [a + b + c for a in LETTERS for b in LETTERS for c in LETTERS],
    "pairs": [(n % 100, str(n)) for n in range(20_000)],
}


@pytest.mark.parametrize("keys", MANY_KEYS.values(), ids=MANY_KEYS)
def test_many_keys_of_any_pattern_spread_as_random_keys_do(keys):
    """Chi-square per degree of freedom is 1 for random keys, and above 1.5 for one set of them in 30,000."""
    groups, chi_square, largest = spread(keys)
    assert groups == 128
    assert chi_square < 1.5 and largest < 1.5


@pytest.mark.parametrize(
    ("keys", "at_least"),
    [
        (range(16), 14),  # Flink's hash: 15
        (range(100), 60),  # Flink's hash: 67
        ([1 << n for n in range(61)], 40),
        (LETTERS, 20),
        ([f"user_{n}" for n in range(100)], 60),
    ],
    ids=["0 to 15", "0 to 99", "powers of two", "letters", "user_<n>"],
)
def test_few_keys_reach_about_as_many_groups_as_random_keys_do(keys, at_least):
    assert spread(keys)[0] >= at_least


def test_every_bit_of_a_hash_changes_every_bit_of_the_mixed_one_half_of_the_time():
    numbers = [(n * 0x9E3779B97F4A7C15) % 2**61 for n in range(1, 2001)]
    for bit in range(61):
        flipped = [mixed(number) ^ mixed(number ^ 1 << bit) for number in numbers]
        for output in range(32):
            assert 0.42 < sum(change >> output & 1 for change in flipped) / len(numbers) < 0.58


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_numpy_finds_the_same_groups(keys):
    prime, multiplier, shift = numpy.uint64(2**61 - 1), numpy.uint64(0xD6E8FEB86659FD93), numpy.uint64(32)
    signed = numpy.array(keys, dtype=numpy.int64)
    rest = numpy.abs(signed).view(numpy.uint64) % prime  # of -2**63 the absolute value is itself, read as unsigned
    number = numpy.where(signed < 0, (prime - numpy.where(rest == 1, 2, rest).astype(numpy.uint64)) % prime, rest)
    for _ in range(2):
        number = (number ^ number >> shift) * multiplier
    assert ((number >> shift) % numpy.uint64(128)).tolist() == key_groups_of(keys, 128)


@given(st.integers(1, 300), st.integers(1, 40))
def test_ranges_of_key_groups_partition_all_groups_and_agree_with_the_owner(max_parallelism, parallelism):
    parallelism = min(parallelism, max_parallelism)
    groups = []
    for index in range(parallelism):
        first, last = key_group_range(max_parallelism, parallelism, index)
        assert all(subtask_of(group, max_parallelism, parallelism) == index for group in range(first, last + 1))
        groups += range(first, last + 1)
    assert groups == list(range(max_parallelism))


def test_ranges_are_flink_s():
    assert [key_group_range(10, 3, i) for i in range(3)] == [(0, 3), (4, 6), (7, 9)]
    assert [key_group_range(128, 3, i) for i in range(3)] == [(0, 42), (43, 85), (86, 127)]


def test_default_max_parallelism_is_flink_s():
    found = [default_max_parallelism(p) for p in (1, 85, 86, 170, 171, 1000, 21845, 32768)]
    assert found == [128, 128, 256, 256, 256, 2048, 32768, 32768]


TELL_APART = [
    *(0, 0.0, -0.0, False, 1, 1.0, True, "1", b"1", None, float("nan"), decimal.Decimal(1)),
    *((1,), (1.0,), ((1,),), ((True,),), ("1",), (0.0,), (-0.0,), (float("nan"),), Point(1, 2), (1, 2)),
    *(Row(1), Colour.RED, Level.LOW, Name("1"), (b"\x00typed",), (b"\x00typed", "float", 1.0)),
    *(Point(1.0, 2), Point(float("nan"), 2), Row(1.0), Row(True), Row(float("nan")), Row(-0.0), Row(a=1)),
    *(Order(1), Order(float("nan")), decimal.Decimal("NaN"), complex(float("nan"), 1), [1], [1.0]),
    *(
        frozenset({1}),
        frozenset({1.0}),
        frozenset({float("nan")}),
        [float("nan")],
        Row([1.0]),
        Changing(1),
        Changing(2),
    ),
    *((decimal.Decimal("NaN"),), Point(Row(float("nan")), Order(float("nan")))),
]


@pytest.mark.parametrize("key", TELL_APART, ids=repr)
def test_a_state_key_tells_types_apart_and_gives_the_key_back(key):
    twins = [other for other in TELL_APART if state_key(other) == state_key(key)]
    assert [(type(k), repr(k)) for k in twins] == [(type(key), repr(key))]
    assert hash(state_key(key)) == hash(state_key(key))
    given_back = user_key(state_key(key))
    assert (type(given_back), repr(given_back)) == (type(key), repr(key))


def fresh_nans():
    """Return keys with NaN, made anew, so that no two of them are one object."""
    nan = float("1e999") - float("1e999")
    number = decimal.Decimal("NaN")
    return [
        *(nan, (nan,), [nan], Row(nan, 1), Row(a=nan), Point(nan, "x"), Order(nan), frozenset({nan}), complex(nan, 1)),
        *(number, (number,), Row(number), Point(Row(nan), (number, nan)), decimal.Decimal("sNaN"), Changing(nan)),
    ]


@pytest.mark.parametrize("number", range(15))
def test_nan_is_one_key_wherever_it_stands_in_a_key(number):
    one, other = fresh_nans()[number], fresh_nans()[number]
    assert state_key(one) == state_key(other) and hash(state_key(one)) == hash(state_key(other))
    assert key_group(one, 32768) == key_group(other, 32768)
    assert address_of(state_key(one), 128, 0) == address_of(state_key(other), 128, 0)


@pytest.mark.parametrize("key", TELL_APART, ids=repr)
def test_two_keys_have_one_address_on_disk_if_they_are_one_key_on_the_heap(key):
    for other in TELL_APART:
        if key is not None and other is not None:
            is_one = address_of(state_key(key), 128, 0)[0] == address_of(state_key(other), 128, 0)[0]
            assert is_one == (state_key(key) == state_key(other)), other


def test_a_dataclass_changed_afterwards_is_not_the_key_changed():
    key = Changing(1)
    kept = state_key(key)
    key.id = 2
    assert user_key(kept) == Changing(1) and hash(kept) == hash(state_key(Changing(1)))
    user_key(kept).id = 3
    assert user_key(kept) == Changing(1)


def test_a_row_changed_afterwards_is_not_the_key_changed():
    row = Row("a", 1)
    kept = state_key(row)
    row[0] = "b"
    assert user_key(kept) == Row("a", 1)
    user_key(kept)[0] = "c"
    assert user_key(kept) == Row("a", 1)


@given(number=st.integers() | st.integers(-(2**62), 2**62), text=st.text(), most=st.sampled_from([1, 128, 32768]))
def test_the_fast_paths_give_the_groups_of_all_keys(number, text, most):
    assert key_group_of_int(number, most) == key_group(number, most)
    assert key_group_of_text(text.encode(), most) == key_group(text, most)


@given(
    texts=st.lists(st.text(st.characters(codec=None) | st.sampled_from("\ud800\udfff"))),
    most=st.sampled_from([1, 128, 32768]),
)
def test_the_groups_of_many_texts_are_those_of_each(texts, most):
    assert key_groups_of_texts(texts, most) == [key_group(text, most) for text in texts]


@pytest.mark.parametrize(
    "keys",
    [[], [1, -7, 2**61 - 1, 2**70, -(2**65)], ["a", "é", "\ud800"], [True, 1, "a", 1.0, -0.0, (1, "x"), Row(1, 2)]],
)
@pytest.mark.parametrize("most", [1, 128, 32768])
def test_the_groups_of_many_stored_keys_are_those_of_each(keys, most):
    stored = [state_key(key) for key in keys]
    assert key_groups_of(stored, most) == [key_group(key, most) for key in keys]
