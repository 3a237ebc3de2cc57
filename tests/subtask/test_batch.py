"""Records held in BATCH mode: sorted by key, or in the order of arrival; in memory and on disk."""

import tempfile
from contextlib import contextmanager
from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from ekorn.subtask.batch_order import ArrivalBuffer, KeySorter
from ekorn.types.time_bounds import MIN_TIMESTAMP

records = st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))), max_size=12)
runs = st.lists(st.tuples(st.integers(0, 1), records), max_size=6)


limits = st.sampled_from([1, 3, 1000])


@contextmanager
def keeping(in_memory):
    """Return arguments that limit the records in memory, with a folder for the others."""
    with tempfile.TemporaryDirectory(prefix="ekorn-test-") as folder:
        yield {"in_memory": in_memory, "scratch": lambda: tempfile.mkdtemp(dir=folder)}


def fill(held, runs):
    """Add numbered records; return the records of each input, in order."""
    given_in = ([], [])
    number = 0
    for input_index, run in runs:
        values = []
        for key, time in run:
            values.append((key, time, number))
            number += 1
        held.add(values, [time for _, time in run], input_index)
        given_in[input_index].extend(values)
    return given_in


def flat(parts):
    return [(part.input_index, value) for part in parts for value in part.values]


def merged(left, right, key):
    """Merge two sorted lists. Of equal records, the one from the list that did not come last comes first."""
    sides, found, waiting_longest = ([*left], [*right]), [], 0
    while sides[0] or sides[1]:
        if not sides[0] or not sides[1]:
            side = 0 if sides[0] else 1
        elif key(sides[0][0]) == key(sides[1][0]):
            side = waiting_longest
        else:
            side = 0 if key(sides[0][0]) < key(sides[1][0]) else 1
        found.append((side, sides[side].pop(0)))
        waiting_longest = 1 - side
    return found


def place(value):
    return value[0], MIN_TIMESTAMP if value[1] is None else value[1]


@given(runs=runs, in_memory=limits)
def test_records_come_by_key_and_time_and_equals_take_turns(runs, in_memory):
    with keeping(in_memory) as memory:
        sorter = KeySorter([itemgetter(0), itemgetter(0)], lambda key: key, **memory)
        left, right = fill(sorter, runs)
        groups = list(sorter.groups())
    expected = merged(sorted(left, key=place), sorted(right, key=place), place)
    assert [r for parts in groups for r in flat(parts)] == expected
    assert [len({value[0] for _, value in flat(parts)}) for parts in groups] == [1] * len({v[0] for v in left + right})
    assert all(part.times == [v[1] for v in part.values] for parts in groups for part in parts)


@given(run=records, in_memory=limits)
def test_one_input_comes_by_key_and_time_in_one_part_for_each_key(run, in_memory):
    with keeping(in_memory) as memory:
        sorter = KeySorter([itemgetter(0)], lambda key: key, **memory)
        values, _ = fill(sorter, [(0, run)])
        groups = list(sorter.groups())
    assert all(len(parts) == 1 for parts in groups)
    assert [v for parts in groups for _, v in flat(parts)] == sorted(values, key=place)


def test_an_input_without_keys_is_not_held():
    sorter = KeySorter([itemgetter(0), None], lambda key: key, scratch=tempfile.mkdtemp, in_memory=1000)
    assert sorter.buffers(0)
    assert not sorter.buffers(1)


@given(runs=runs, in_memory=limits)
def test_two_inputs_held_back_take_turns(runs, in_memory):
    with keeping(in_memory) as memory:
        held = ArrivalBuffer([0, 1], **memory)
        left, right = fill(held, runs)
        parts = [part for group in held.groups() for part in group]
    assert flat(parts) == merged(left, right, lambda value: 0)
    assert all(part.times == [v[1] for v in part.values] for part in parts)


@given(run=records, in_memory=limits)
def test_one_input_held_back_comes_as_it_was(run, in_memory):
    with keeping(in_memory) as memory:
        held = ArrivalBuffer([0], **memory)
        values, _ = fill(held, [(0, run)])
        assert not held.buffers(1)
        assert [v for parts in held.groups() for _, v in flat(parts)] == values
