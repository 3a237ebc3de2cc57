"""Values that ekorn did not write: refused with a message that shows their beginning, and no more."""

from __future__ import annotations

import pickle
import re

import pytest

from ekorn.errors import CorruptFileError, StateError
from ekorn.state.evolution.avro_resolution import resolver
from ekorn.state.evolution.pickled_classes import loads
from ekorn.state.evolution.type_descriptions import Incompatible
from ekorn.state.rocksdb.value_bytes import (
    STAMP_BYTES,
    decode,
    decode_stamped,
    encode,
    encode_all,
    encode_all_stamped,
    encode_stamped,
    split_original,
    stamp_of,
    with_original,
    without_original,
)


@pytest.mark.parametrize("data", [b"", b"?", b"?12345678", b"d", b"d1234567", b"d123456789", b"s\xff\xfe"])
def test_a_value_of_no_known_form_is_refused_with_its_first_bytes(data):
    with pytest.raises(StateError) as refused:
        decode(data)
    assert str(refused.value).endswith(f"that ekorn did not write: it begins with {data[:8]!r}")


@pytest.mark.parametrize("data", [b"", b"x12345678", b"t1234567", b"x1234567890"])
def test_a_value_without_a_whole_stamp_is_refused_with_its_first_bytes(data):
    for read in (stamp_of, decode_stamped):
        with pytest.raises(StateError) as refused:
            read(data)
        assert str(refused.value).endswith(f"without a stamp: it begins with {data[:8]!r}")


def test_a_stamp_alone_can_be_read():
    assert stamp_of(b"t" + (5).to_bytes(8, "big")) == 5
    assert STAMP_BYTES == 9


def test_an_original_that_breaks_off_is_refused_with_its_first_bytes():
    whole = with_original(("key", 1), b"")
    assert split_original(whole) == (("key", 1), b"")
    assert without_original(whole) == b""
    for end in range(1, len(whole)):
        for read in (split_original, without_original):
            with pytest.raises(StateError) as refused:
                read(whole[:end])
            assert str(refused.value).endswith(f"that breaks off: it begins with {whole[:end][:8]!r}")


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, b"i\0"),
        (127, b"i\x7f"),
        (128, b"i\x80\0"),
        (-128, b"i\x80\xff"),
        (1 << 20, b"i\0\0\x10"),
        ("é", b"s\xc3\xa9"),
        (0.5, b"d\x3f\xe0\0\0\0\0\0\0"),
        (True, b"T"),
        (False, b"F"),
        (b"a", b"ba"),
        (bytearray(b"a"), b"ma"),
        (None, b"N"),
    ],
)
def test_the_bytes_of_a_value_never_change_because_checkpoints_hold_them(value, data):
    assert encode(value) == data
    assert repr(decode(data)) == repr(value)
    assert encode_stamped((2, value)) == b"t" + (2).to_bytes(8, "big") + data


@pytest.mark.parametrize("values", [[], [1, 2], ["a"], [1, "a", None], [(1, 2), (3, 4)], [True, 1]])
def test_many_values_are_encoded_as_each_is(values):
    assert list(encode_all(values)) == [encode(value) for value in values]
    stamped = [(7, value) for value in values]
    assert list(encode_all_stamped(stamped)) == [encode_stamped(each) for each in stamped]


def test_bytes_that_are_no_pickle_are_refused_with_the_first_of_them():
    data = b"0123456789abcdefgh"
    with pytest.raises(CorruptFileError, match=r"not a pickle \(.*\): b'0123456789abcdef'"):
        loads(data, "the place")
    with pytest.raises(CorruptFileError, match="not a pickle"):
        loads(pickle.dumps([1, 2, 3])[:-1], "the place")


def test_a_record_of_no_branch_of_its_union_is_refused_with_its_beginning():
    convert = resolver(["int", "string"], ["long", "string"])
    assert convert is not None
    assert [convert(7), convert("text")] == [7, "text"]
    shown = repr(b"x" * 100)[:77] + "..."
    with pytest.raises(Incompatible, match=re.escape(f"holds {shown}, which matches no branch of ")):
        convert(b"x" * 100)
