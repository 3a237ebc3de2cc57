"""Operator state in functions: which values lists and maps accept, and their content after any rescaling."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Types
from ekorn.errors import StateError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import decode_operator_state, encode_operator_state, redistribute

SPLIT, UNION = ListStateDescriptor("split"), ListStateDescriptor("union")
RULES = MapStateDescriptor("rules")


def rescaled(subtasks, parallelism):
    """Create new subtasks from the state of the old ones, through the bytes of a checkpoint."""
    stored = [decode_operator_state(encode_operator_state(states.snapshot())) for states in subtasks]
    infos = subtasks[0].infos()
    return [OperatorStates(redistribute(stored, parallelism, index), infos) for index in range(parallelism)]


values = st.one_of(st.integers(0, 9), st.text("ab", max_size=2), st.lists(st.integers(0, 3), max_size=2))


@given(
    st.lists(st.lists(values, max_size=7), min_size=1, max_size=4), st.lists(st.integers(1, 6), min_size=1, max_size=4)
)
def test_elements_of_a_split_list_survive_any_rescalings_exactly_once_and_evenly(lists, parallelisms):
    subtasks = [OperatorStates() for _ in lists]
    for states, elements in zip(subtasks, lists, strict=True):
        states.get_list_state(SPLIT).add_all(elements)
    everything = Counter(repr(e) for elements in lists for e in elements)
    for parallelism in parallelisms:
        unchanged = len(subtasks) == parallelism
        before = [list(states.get_list_state(SPLIT)) for states in subtasks]
        subtasks = rescaled(subtasks, parallelism)
        after = [list(states.get_list_state(SPLIT)) for states in subtasks]
        assert Counter(repr(e) for elements in after for e in elements) == everything
        if unchanged:
            assert after == before
        else:
            total = sum(everything.values())
            more = total % parallelism
            sizes = [total // parallelism + (index < more) for index in range(parallelism)]
            assert [len(elements) for elements in after] == sizes


@given(st.lists(st.lists(values, max_size=5), min_size=1, max_size=4), st.integers(1, 6))
def test_a_union_list_gives_everything_to_everyone(lists, parallelism):
    subtasks = [OperatorStates() for _ in lists]
    for states, elements in zip(subtasks, lists, strict=True):
        states.get_union_list_state(UNION).update(elements)
    everything = [e for elements in lists for e in elements]
    for states in rescaled(subtasks, parallelism):
        assert list(states.get_union_list_state(UNION)) == everything


@given(st.lists(st.dictionaries(st.integers(0, 5), values, max_size=3), min_size=1, max_size=4), st.integers(1, 6))
def test_a_broadcast_map_is_the_copy_of_the_subtask_or_the_next_one_around(maps, parallelism):
    subtasks = [OperatorStates() for _ in maps]
    for states, entries in zip(subtasks, maps, strict=True):
        states.get_broadcast_state(RULES).put_all(entries)
    for index, states in enumerate(rescaled(subtasks, parallelism)):
        assert dict(states.get_broadcast_state(RULES).items()) == maps[index % len(maps)]


def test_a_state_that_nobody_asks_for_is_rescaled_and_written_again():
    first = OperatorStates()
    first.get_list_state(SPLIT).update([1, 2, 3])
    left = rescaled(rescaled([first], 2), 3)
    assert [list(states.get_list_state(SPLIT)) for states in left] == [[1], [2], [3]]


def test_restored_elements_are_there_as_soon_as_the_state_is_asked_for_and_can_be_asked_for_again():
    first = OperatorStates()
    first.get_list_state(SPLIT).add("a")
    (again,) = rescaled([first], 1)
    assert again.get_registered_state_names() == {"split"}
    state = again.get_list_state(SPLIT)
    assert list(state.get()) == ["a"]
    state.add("b")
    assert again.get_list_state(ListStateDescriptor("split")) is state
    assert list(again.get_list_state(SPLIT)) == ["a", "b"]


def test_the_names_of_lists_and_of_broadcast_states_are_told_apart():
    first = OperatorStates()
    first.get_list_state(SPLIT)
    first.get_broadcast_state(RULES)
    for states in (first, rescaled([first], 1)[0]):
        assert states.get_registered_state_names() == {"split"}
        assert states.get_registered_broadcast_state_names() == {"rules"}


def test_a_broadcast_map_takes_pairs_and_takes_all_of_a_dict_or_nothing():
    rules = OperatorStates().get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
    rules.put_all([("a", 1)])  # type: ignore[arg-type]
    rules.put_all(None)  # type: ignore[arg-type]
    with pytest.raises(StateError, match="cannot hold 'x'"):
        rules.put_all({"b": 2, "c": "x"})
    assert dict(rules.items()) == {"a": 1}


def test_what_is_in_the_list_at_the_end_of_a_snapshot_is_what_is_stored():
    states = OperatorStates()
    state = states.get_list_state(SPLIT)
    state.update([1])
    before = states.snapshot()
    state.add(2)
    state.clear()
    state.add_all([3])
    assert list(rescaled([states], 1)[0].get_list_state(SPLIT)) == [3]
    assert list(OperatorStates(before, states.infos()).get_list_state(SPLIT)) == [1]


def test_elements_are_values():
    state = OperatorStates().get_list_state(SPLIT)
    given_list = [1]
    state.add(given_list)
    given_list.append(2)
    next(iter(state.get())).append(3)
    assert list(state.get()) == [[1]]


@pytest.mark.parametrize("bad", [None, [None], [1, None]])
def test_a_list_takes_no_none(bad):
    state = OperatorStates().get_list_state(SPLIT)
    state.add(1)
    for call in (state.update, state.add_all):
        with pytest.raises(StateError, match="None"):
            call(bad)
    with pytest.raises(StateError, match="None"):
        state.add(None)
    assert list(state) == [1]


def test_one_name_is_one_state():
    states = OperatorStates()
    states.get_list_state(SPLIT)
    with pytest.raises(StateError, match="'split' is declared twice: as list-split of pickled and as list-union"):
        states.get_union_list_state(SPLIT)
    with pytest.raises(StateError, match="declared twice: as list-split of pickled and as broadcast"):
        states.get_broadcast_state(MapStateDescriptor("split"))
    with pytest.raises(StateError, match="declared twice"):
        states.get_list_state(ListStateDescriptor("split", Types.INT()))


def test_elements_are_held_against_the_declared_type():
    states = OperatorStates()
    numbers = states.get_list_state(ListStateDescriptor("numbers", Types.INT()))
    numbers.add(1)
    with pytest.raises(StateError, match="'numbers' is declared as Integer and cannot hold 'a'"):
        numbers.add("a")
    rules = states.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
    rules.put("r", None)
    for key, value in [(1, 1), ("r", "x")]:
        with pytest.raises(StateError, match="'rules' is declared as"):
            rules.put(key, value)
    assert (list(numbers), dict(rules.items())) == ([1], {"r": None})


def test_a_name_of_raw_state_is_refused_since_the_state_would_not_be_restored():
    for declare in (OperatorStates().get_list_state, OperatorStates().get_union_list_state):
        with pytest.raises(StateError, match="reserved for raw state"):
            declare(ListStateDescriptor("_raw/operator"))
