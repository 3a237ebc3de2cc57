"""The table of kinds of keyed state is whole, and the shapes of entries convert, expire and stamp what is in them."""

from operator import itemgetter
from typing import Any

import pytest

from ekorn.functions.state import state_descriptors
from ekorn.functions.state.state_descriptors import ListStateDescriptor, StateDescriptor
from ekorn.functions.state.state_stores import KeyedStateStore
from ekorn.queryable.immutable_states import immutable_state
from ekorn.state.entry_shapes import LIST, MAP, ONE_VALUE, PANE, SESSIONS, DeclaredShape
from ekorn.state.kinds import KINDS, kind_of, shape_of
from ekorn.state.rocksdb.handles import rocks_kind

CONTENTS = {ONE_VALUE: 1, LIST: [1], MAP: [("a", 1)]}  # as the answer to a query has them


def test_every_descriptor_declares_a_kind():
    declared = {each for each in vars(state_descriptors).values() if isinstance(each, type)}
    kinds = {each for each in declared if issubclass(each, StateDescriptor) and each is not StateDescriptor}
    assert kinds == {kind.descriptor for kind in KINDS.values()}


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_kind_has_its_place_in_every_table(kind):
    assert hasattr(KeyedStateStore, kind.descriptor.getter)
    assert issubclass(kind.handles.lasting, kind.interface) and issubclass(kind.handles.expiring, kind.interface)
    of_rocksdb = rocks_kind(kind).handles
    assert issubclass(of_rocksdb.lasting, kind.interface) and issubclass(of_rocksdb.expiring, kind.interface)
    assert all(callable(getattr(kind.interface, method)) for method in kind.timed)
    queried = immutable_state(kind.name, CONTENTS[kind.shape])
    assert isinstance(queried, kind.interface)
    assert kind.content(queried) == kind.shape.from_answer(CONTENTS[kind.shape])


def test_only_a_descriptor_has_a_kind():
    assert kind_of(ListStateDescriptor("list")) is KINDS["list"]
    assert kind_of("list") is None and kind_of(StateDescriptor("state", None)) is None


def test_the_shape_of_a_table_follows_from_its_kind():
    assert [shape_of(kind) for kind in ("map", "window-map", "reducing")] == [MAP, MAP, ONE_VALUE]
    assert [shape_of(kind) for kind in ("window-panes", "window-slices", "sessions")] == [PANE, PANE, SESSIONS]
    assert shape_of("timers") is ONE_VALUE


@pytest.mark.parametrize(
    ("shape", "entry", "converted"),
    [
        (ONE_VALUE, 1, "1"),
        (LIST, [1, 2], ["1", "2"]),
        (MAP, {"a": 1}, {"a": "1"}),
        (PANE, ([1, 2], True), (["1", "2"], True)),
        (PANE, (1, False), ("1", False)),
        (SESSIONS, [(0, 9, 1, True), (20, 30, [2], False)], [(0, 9, "1", True), (20, 30, ["2"], False)]),
    ],
)
def test_each_value_of_an_entry_is_converted(shape, entry, converted):
    assert shape.converter(str)(entry) == converted


def test_the_keys_of_a_map_are_converted_on_request():
    assert MAP.converter(str, str.upper)({"a": 1}) == {"A": "1"}
    assert MAP.answer(str, str.upper, list)({"a": 1}) == [("A", "1")]


@pytest.mark.parametrize(
    ("shape", "entry", "left"),
    [
        (ONE_VALUE, (7, "a"), (7, "a")),
        (ONE_VALUE, (5, "a"), None),
        (LIST, [(5, "a"), (7, "b")], [(7, "b")]),
        (LIST, [(4, "a"), (5, "b")], None),
        (MAP, {"k": (5, "a"), "l": (7, "b")}, {"l": (7, "b")}),
        (MAP, {"k": (5, "a")}, None),
    ],
)
def test_what_is_stamped_up_to_a_time_is_not_left(shape, entry, left):
    assert shape.left(entry, 5) == left


def test_an_entry_of_which_nothing_has_expired_is_left_as_the_same_object():
    entries: list[tuple[DeclaredShape, Any]] = [(ONE_VALUE, (7, "a")), (LIST, [(7, "a")]), (MAP, {"k": (7, "a")})]
    for shape, entry in entries:
        assert shape.left(entry, 5) is entry


@pytest.mark.parametrize(
    ("shape", "entry", "stamps", "stamped"),
    [
        (ONE_VALUE, "a", None, (9, "a")),
        (ONE_VALUE, "a", 3, (3, "a")),
        (LIST, ["a", "b"], [3], [(3, "a"), (9, "b")]),
        (LIST, ["a"], None, [(9, "a")]),
        (MAP, {"k": "a", "l": "b"}, {"k": 3}, {"k": (3, "a"), "l": (9, "b")}),
    ],
)
def test_a_value_without_a_stamp_is_stamped_now(shape, entry, stamps, stamped):
    assert shape.stamped(entry, stamps, 9) == stamped
    assert shape.without_stamps(stamped) == entry
    assert shape.converter(itemgetter(1))(stamped) == entry
