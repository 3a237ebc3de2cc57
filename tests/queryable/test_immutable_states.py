"""The copies of state that a query returns: read as in Flink, and never changed."""

from typing import Any

import pytest

from ekorn.errors import UnsupportedOperationError
from ekorn.queryable import immutable_states


def immutable_state(kind: str, content: Any) -> Any:
    return immutable_states.immutable_state(kind, content)


@pytest.mark.parametrize("kind", ["reducing", "aggregating", "folding"])
def test_a_result_is_read_and_never_changed(kind):
    found = immutable_state(kind, 7)
    assert found.get() == 7
    for change in (lambda: found.add(1), found.clear):
        with pytest.raises(UnsupportedOperationError, match="a queried state is a copy"):
            change()
    assert found.get() == 7


def test_a_value_is_read_and_never_changed():
    found = immutable_state("value", (1, "a"))
    assert found.value() == (1, "a")
    for change in (lambda: found.update(1), found.clear):
        with pytest.raises(UnsupportedOperationError, match="only the job can change its state"):
            change()


def test_a_list_is_read_as_often_as_wanted_and_never_changed():
    found = immutable_state("list", [1, 2])
    for _ in range(2):
        assert list(found.get()) == [1, 2]
    changes = (lambda: found.add(1), lambda: found.update([]), lambda: found.add_all([1]), found.clear)
    for change in changes:
        with pytest.raises(UnsupportedOperationError):
            change()


def test_a_map_is_read_by_key_and_whole_and_never_changed():
    found = immutable_state("map", [("a", 1), ("b", None)])
    assert (found.get("a"), found.get("b"), found.get("c")) == (1, None, None)
    assert (found.contains("a"), found.contains("b"), found.contains("c")) == (True, True, False)
    assert list(found.items()) == [("a", 1), ("b", None)]
    assert (list(found.keys()), list(found.values())) == (["a", "b"], [1, None])
    assert not found.is_empty() and immutable_state("map", []).is_empty()
    changes = (lambda: found.put("a", 2), lambda: found.put_all({}), lambda: found.remove("a"), found.clear)
    for change in changes:
        with pytest.raises(UnsupportedOperationError):
            change()
    assert len(list(found.items())) == 2
