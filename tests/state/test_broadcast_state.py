"""Broadcast state: what one side writes, the other side reads and cannot change."""

import pytest

from ekorn.common import Types
from ekorn.errors import UnsupportedOperationError
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.state.operator_state import OperatorStates


@pytest.fixture(params=["pickled", "typed"])
def store(request):
    types = () if request.param == "pickled" else (Types.STRING(), Types.PICKLED_BYTE_ARRAY())
    return OperatorStates().get_broadcast_state(MapStateDescriptor("rules", *types))


def content(state):
    return dict(state.items())


def test_what_is_put_is_read_on_both_sides(store):
    view = store.view()
    assert view.is_empty() and store.is_empty()
    store.put("a", [1])
    store.put_all({"b": [2], "c": [3]})
    for side in (store, view):
        assert not side.is_empty()
        assert content(side) == {"a": [1], "b": [2], "c": [3]}
        assert (list(side.keys()), list(side.values())) == (["a", "b", "c"], [[1], [2], [3]])
        assert (side.get("b"), side.get("missing")) == ([2], None)
        assert side.contains("a") and not side.contains("missing")


def test_what_is_removed_is_gone_on_both_sides(store):
    view = store.view()
    store.put_all({"a": [1], "b": [2]})
    store.remove("a")
    store.remove("missing")
    assert content(view) == content(store) == {"b": [2]}
    store.clear()
    assert view.is_empty() and content(store) == {}


def test_nothing_put_at_once_changes_nothing(store):
    store.put("a", [1])
    store.put_all({})
    store.put_all(None)
    assert content(store) == {"a": [1]}


def test_changing_a_value_that_was_put_or_read_does_not_change_the_state(store):
    value = [1]
    store.put("a", value)
    value.append("spoiled")  # type: ignore[arg-type]
    store.get("a").append("spoiled")
    next(store.values()).append("spoiled")
    next(store.items())[1].append("spoiled")
    assert store.get("a") == [1]


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.put("a", 2),
        lambda view: view.put_all({"a": 2}),
        lambda view: view.remove("a"),
        lambda view: view.clear(),
        lambda view: view.__setitem__("a", 2),
        lambda view: view.__delitem__("a"),
    ],
    ids=["put", "put_all", "remove", "clear", "[]=", "del"],
)
def test_the_side_that_reads_is_told_where_writing_is_allowed(store, write, request):
    store.put("a", [1])
    call = request.node.callspec.id.split("-")[-1]
    with pytest.raises(UnsupportedOperationError) as refused:
        write(store.view())
    assert str(refused.value).startswith(f"{call}: broadcast state 'rules' can only be read here")
    assert content(store) == {"a": [1]}
