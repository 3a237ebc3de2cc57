"""Operator state: its encoding, and its redistribution after a restore."""

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.errors import CorruptFileError, StateMigrationError
from ekorn.state.operator_state_files import decode_operator_state, encode_operator_state, redistribute

PIECES = st.binary(max_size=5)
LISTS = st.lists(PIECES, max_size=6)
MODES = {"s1": "split", "s2": "split", "t": "split", "u": "union", "b": "broadcast"}


def some_state(name):
    elements = st.lists(st.tuples(PIECES, PIECES), max_size=4) if MODES[name] == "broadcast" else LISTS
    return elements.map(lambda e: (MODES[name], e))


STATES = st.fixed_dictionaries({}, optional={name: some_state(name) for name in MODES})


def split(*lists, name="s"):
    return [{name: ("split", [e.encode() for e in elements])} for elements in lists]


def shares(old, parallelism, name="s"):
    taken: list[Any] = [redistribute(old, parallelism, i)[name][1] for i in range(parallelism)]
    return ["".join(element.decode() for element in elements) for elements in taken]


# ------------------------------------------------------------------------------------------------------------- encoding


@given(STATES)
def test_states_read_back_as_written(states):
    decoded = decode_operator_state(encode_operator_state(states))
    assert decoded == states
    assert list(decoded) == list(states)


def test_names_may_be_any_text():
    states: Any = {"": ("split", [b""]), "naïve 状态": ("broadcast", [(b"", b"")])}
    assert decode_operator_state(encode_operator_state(states)) == states


@given(STATES, st.data())
def test_cut_bytes_are_refused(states, data):
    payload = encode_operator_state(states)
    size = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(CorruptFileError, match="some/file"):
        decode_operator_state(payload[:size], "some/file")


@given(st.binary(max_size=60), STATES, st.data())
def test_no_bytes_make_it_fail_in_any_other_way(noise, states, data):
    payload = bytearray(encode_operator_state(states))
    position = data.draw(st.integers(0, len(payload) - 1))
    payload[position] ^= data.draw(st.integers(1, 255))
    for candidate in (noise, bytes(payload), bytes(payload) + noise):
        with contextlib.suppress(CorruptFileError):
            decode_operator_state(candidate)


def test_a_newer_format_is_refused_as_such():
    payload = bytearray(encode_operator_state({}))
    payload[7] = 2
    with pytest.raises(CorruptFileError, match="version 2"):
        decode_operator_state(bytes(payload))


def test_the_bytes_are_as_documented():
    payload = encode_operator_state({"s": ("union", [b"ab", b""])})
    parts = ["454b4f4f505354", "01", "00000001", "00000001", "01", "0000000000000002", "73"]
    assert payload.hex() == "".join(parts) + "0000000000000002" + "0000000000000000" + "6162"


# --------------------------------------------------------------------------------------------- the reference's examples


def test_even_split_hands_out_contiguous_runs():
    assert shares(split(["a", "b"]), 2) == ["a", "b"]
    assert shares(split("abc", "de"), 3) == ["ab", "cd", "e"]
    assert shares(split("a", "b", "c"), 2) == ["ab", "c"]
    assert shares(split("abc", "de"), 1) == ["abcde"]
    assert shares(split("a"), 3) == ["a", "", ""]


def test_an_unchanged_parallelism_hands_back_each_its_own():
    assert shares(split("abcd", ""), 2) == ["abcd", ""]


def test_union_gives_everything_to_everyone_in_the_old_order():
    old: Any = [{"u": ("union", [b"a", b"b"])}, {"u": ("union", [b"c"])}]
    for parallelism in (1, 2, 3):
        for index in range(parallelism):
            assert redistribute(old, parallelism, index) == {"u": ("union", [b"a", b"b", b"c"])}


def test_broadcast_copies_go_round():
    old: Any = [{"b": ("broadcast", [(b"copy", b"0")])}, {"b": ("broadcast", [(b"copy", b"1")])}]
    copies = [redistribute(old, 5, i)["b"][1][0][1] for i in range(5)]
    assert copies == [b"0", b"1", b"0", b"1", b"0"]
    assert redistribute(old, 1, 0)["b"][1] == [(b"copy", b"0")]
    assert [redistribute(old, 2, i)["b"][1][0][1] for i in range(2)] == [b"0", b"1"]


def test_remainders_of_the_next_name_go_on_where_the_last_ended():
    old: Any = [{"x": ("split", [b"1"]), "y": ("split", [b"2", b"3"]), "z": ("split", [b"4"])}]
    got = [{name: elements for name, (_, elements) in redistribute(old, 3, i).items()} for i in range(3)]
    assert got == [
        {"x": [b"1"], "y": [], "z": [b"4"]},
        {"x": [], "y": [b"2"], "z": []},
        {"x": [], "y": [b"3"], "z": []},
    ]


def test_finished_subtasks_contribute_nothing():
    assert shares([None, *split("ab")], 3) == ["a", "b", ""]
    assert redistribute([None, *split("ab")], 2, 0) == {}
    assert redistribute([None, *split("ab")], 2, 1) == {"s": ("split", [b"a", b"b"])}
    assert redistribute([None, None], 2, 1) == {}
    broadcast: Any = [None, {"b": ("broadcast", [(b"k", b"v")])}]
    assert [redistribute(broadcast, 2, i)["b"][1] for i in range(2)] == [[(b"k", b"v")]] * 2


def test_a_name_with_two_modes_is_refused():
    old: Any = [{"x": ("split", [b"1"])}, {"x": ("union", [b"2"])}]
    with pytest.raises(StateMigrationError, match="'x'"):
        redistribute(old, 1, 0)


# ----------------------------------------------------------------------------------------------------------- any states


@given(st.lists(st.none() | STATES, min_size=1, max_size=5), st.integers(1, 6))
def test_split_elements_are_kept_once_in_order_of_turn_and_evenly(old, parallelism):
    new = [redistribute(old, parallelism, i) for i in range(parallelism)]
    for name, mode in MODES.items():
        everything = [e for states in old for e in (states or {}).get(name, (mode, []))[1]]
        got = [states.get(name, (mode, []))[1] for states in new]
        if mode == "split":
            assert sorted(e for part in got for e in part) == sorted(everything)
            if len(old) == parallelism:
                assert got == [(states or {}).get(name, (mode, []))[1] for states in old]
            else:
                assert max(map(len, got)) - min(map(len, got)) <= 1
                turns = [
                    [e for i in range(parallelism) for e in got[(first + i) % parallelism]]
                    for first in range(parallelism)
                ]
                assert everything in turns
        elif mode == "union":
            assert all(part == everything for part in got)


@given(st.lists(STATES, min_size=1, max_size=5), st.integers(1, 6))
def test_remainders_of_all_names_together_are_spread_evenly(old, parallelism):
    if len(old) == parallelism:
        return
    new = [redistribute(old, parallelism, i) for i in range(parallelism)]
    totals = [sum(len(e) for name, (mode, e) in states.items() if mode == "split") for states in new]
    assert max(totals) - min(totals) <= 1


@given(st.lists(STATES, min_size=1, max_size=4), st.integers(1, 4))
def test_what_is_handed_out_is_not_the_stored_list_itself(old, parallelism):
    before = repr(old)
    for index in range(parallelism):
        for _, elements in redistribute(old, parallelism, index).values():
            elements.clear()
    assert repr(old) == before


# ---------------------------------------------------------------------------------------------------- damaged bytes

HEADER = struct.Struct(">7sBI")
STATE = struct.Struct(">IBQ")


def payload(*states, count=None, magic=b"EKOOPST", version=1):
    header = HEADER.pack(magic, version, len(states) if count is None else count)
    return header + b"".join(STATE.pack(len(name), mode, 0) + name for name, mode in states)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (payload((b"a", 3)), "redistribution mode 3"),
        (payload((b"a", 255)), "redistribution mode 255"),
        (payload((b"\xff", 0)), "a state name that is not UTF-8"),
        (payload((b"a", 0), (b"a", 0)), "state 'a' twice"),
        (payload((b"a", 0)) + b"xyz", "3 bytes too many"),
        (payload(magic=b"EKOOPSX"), "bytes that start with b'EKOOPSX'"),
        (payload(version=0), "format version 0"),
        (payload(version=2), "format version 2"),
        (payload(count=1), "12 bytes.*at least 25"),
        (payload()[:-1], "11 bytes.*at least 12"),
    ],
)
def test_damaged_bytes_are_refused_with_what_is_wrong(damaged, message):
    with pytest.raises(CorruptFileError, match=rf"the place.*{message}"):
        decode_operator_state(damaged, "the place")


def test_states_of_every_mode_without_elements_are_read():
    states = decode_operator_state(payload((b"a", 0), (b"b", 1), (b"c", 2)))
    assert states == {"a": ("split", []), "b": ("union", []), "c": ("broadcast", [])}
