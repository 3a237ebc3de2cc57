"""State with a time to live: when entries expire, what reads return and renew, and what merging windows keep.

`test_ttl_machine.py` drives the same states against a model.
"""

import pytest

from ekorn.clock import ManualClock
from ekorn.common.time import Time
from ekorn.errors import NoCurrentKey, StateError
from ekorn.functions.state.state_descriptors import ReducingStateDescriptor
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.operator_state import OperatorStates
from tests.state.backends import EVERYTHING
from tests.state.expiring import GROWING, KINDS, TTL_MS, descriptor_of, handle_of
from tests.state.ttl_states import ON_HEAP, Kept, backends, builder  # noqa: F401 - backends is a fixture

# ------------------------------------------------------------------------------------------------- worked examples


def test_every_element_of_a_list_expires_on_its_own():
    kept = Kept("list")
    kept.at(0).add("a")
    kept.at(6).add("b")
    assert list(kept.at(10).get()) == ["b"]
    assert list(kept.at(15).get()) == ["b"]
    assert list(kept.at(16).get()) == []
    assert kept.physical == []


def test_reading_a_list_renews_what_has_not_expired():
    kept = Kept("list", builder().update_ttl_on_read_and_write())
    kept.at(0).add("a")
    kept.at(6).add("b")
    assert list(kept.at(10).get()) == ["b"]
    assert list(kept.at(15).get()) == ["b"]
    assert list(kept.at(16).get()) == ["b"]
    assert list(kept.at(26).get()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_there_until_its_time_and_not_at_it(kind):
    kept = Kept(kind)
    kept.at(100)
    kept.write("v")
    kept.at(109)
    assert kept.read() == "v"
    kept.at(110)
    assert kept.read() is None
    assert kept.physical == []
    kept.at(100)
    assert kept.read() is None, "the read removed it"


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_renews_only_if_the_configuration_says_so(kind):
    for configured, shown in ((builder(), None), (builder().update_ttl_on_read_and_write(), "v")):
        kept = Kept(kind, configured)
        kept.write("v")
        kept.at(9)
        assert kept.read() == "v"
        kept.at(18)
        assert kept.read() == shown


@pytest.mark.parametrize("kind", KINDS)
def test_an_expired_value_may_be_shown_once(kind):
    kept = Kept(kind, builder().return_expired_if_not_cleaned_up())
    kept.write("v")
    kept.at(50)
    assert kept.read() == "v"
    assert kept.physical == []
    assert kept.read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_an_expired_value_that_is_shown_is_not_renewed(kind):
    kept = Kept(kind, builder().return_expired_if_not_cleaned_up().update_ttl_on_read_and_write())
    kept.write("v")
    kept.at(50)
    assert [kept.read(), kept.read()] == ["v", None]


@pytest.mark.parametrize("kind", ["value", "map"])
def test_a_write_renews(kind):
    kept = Kept(kind)
    kept.write("old")
    kept.at(9)
    kept.write("new")
    kept.at(18)
    assert kept.read() == "new"


@pytest.mark.parametrize("kind", GROWING)
def test_an_add_renews_the_whole_and_starts_afresh_after_expiry(kind):
    kept = Kept(kind)
    kept.write("a")
    kept.at(9)
    kept.write("b")
    kept.at(18)
    assert kept.read() == "a+b"
    kept.at(19)
    kept.write("c")
    assert kept.read() == "c"


@pytest.mark.parametrize("kind", GROWING)
def test_an_expired_value_that_may_be_shown_still_takes_part(kind):
    kept = Kept(kind, builder().return_expired_if_not_cleaned_up())
    kept.write("a")
    kept.at(50)
    kept.write("b")
    assert kept.read() == "a+b"
    kept.at(59)
    assert kept.read() == "a+b", "and the whole is stamped anew"


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_may_live_longer_than_time_itself(kind):
    kept = Kept(kind, builder(2**63 - 1))
    kept.at(1)
    kept.write("v")
    kept.at(2**62)
    assert kept.read() == "v"


@pytest.mark.parametrize("kind", KINDS)
def test_state_that_expires_cannot_be_used_without_a_key(kind):
    kept = Kept(kind, StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)))
    fresh = Kept.make(EVERYTHING, kept.clock)
    kept.state = handle_of(fresh, kind, builder().build())
    for use in (kept.read, lambda: kept.write("v"), kept.state.clear):
        with pytest.raises(NoCurrentKey):
            use()


def test_the_default_of_a_value_is_not_used():
    kept = Kept("value")
    assert kept.state.value() is None
    assert handle_of(kept.backend, "value", None, "plain").value() == "default"


def test_updating_with_none_and_clearing_remove():
    for kind in KINDS:
        kept = Kept(kind)
        kept.write("v")
        kept.state.clear()
        assert kept.read() is None and kept.physical == []
    kept = Kept("value")
    kept.write("v")
    kept.state.update(None)
    assert kept.read() is None
    kept = Kept("list")
    kept.write("v")
    kept.state.update([])
    assert kept.physical == []
    for kind in ("reducing", "aggregating"):
        kept = Kept(kind)
        kept.write("v")
        kept.state.add(None)
        assert kept.read() is None


def test_a_list_with_a_live_element_still_holds_and_may_show_the_expired_ones():
    kept = Kept("list", builder().return_expired_if_not_cleaned_up())
    kept.at(0).add("a")
    kept.at(6).add_all(["b", "c"])
    assert list(kept.at(12).get()) == list(kept.at(13)) == ["a", "b", "c"]
    assert list(kept.at(16).get()) == ["a", "b", "c"]
    assert list(kept.at(16).get()) == []


def test_a_list_that_is_rewritten_by_a_read_loses_its_expired_elements():
    kept = Kept("list", builder().return_expired_if_not_cleaned_up().update_ttl_on_read_and_write())
    kept.at(0).add("a")
    kept.at(6).add("b")
    assert list(kept.at(12).get()) == ["a", "b"]
    assert list(kept.at(12).get()) == ["b"]


def test_replacing_a_list_stamps_all_of_it():
    kept = Kept("list")
    kept.at(0).add("a")
    kept.at(9).update(["b", "c"])
    assert list(kept.at(18).get()) == ["b", "c"]


def test_every_entry_of_a_map_expires_on_its_own():
    kept = Kept("map")
    kept.at(0).put("a", 1)
    kept.at(6).put_all({"b": 2, "c": None})
    state = kept.at(10)
    assert dict(state.items()) == {"b": 2, "c": None}
    assert (list(state), list(state.values())) == (["b", "c"], [2, None])
    assert "a" not in state and "c" in state and state.get("a") is None
    assert not kept.at(16).contains("c")
    assert list(kept.at(16).keys()) == []
    assert kept.physical == []


def test_asking_whether_a_map_has_a_key_is_a_read():
    kept = Kept("map", builder().update_ttl_on_read_and_write())
    kept.at(0).put("a", 1)
    assert kept.at(9).contains("a")
    assert kept.at(18).get("a") == 1
    assert kept.at(27)["a"] == 1
    assert list(kept.at(36)) == ["a"]
    shown = Kept("map", builder().return_expired_if_not_cleaned_up())
    shown.at(0).put("a", 1)
    assert shown.at(10).contains("a")
    assert not shown.at(10).contains("a")


def test_a_map_of_expired_entries_is_not_empty_until_they_are_removed():
    kept = Kept("map")
    kept.at(0).put("a", 1)
    assert not kept.at(50).is_empty()
    assert kept.at(50).get("a") is None
    assert kept.at(50).is_empty()


def test_what_is_read_can_be_changed_without_changing_the_state():
    for kind in ("value", "list", "map"):
        kept = Kept(kind, builder().update_ttl_on_read_and_write())
        given = ["x"]
        kept.write(given)
        given.append("spoiled")
        kept.at(5)
        kept.read().append("spoiled")
        assert kept.read() == ["x"]


def test_none_is_refused_where_states_without_ttl_refuse_it():
    kept = Kept("list")
    for use in (lambda: kept.state.add(None), lambda: kept.state.add_all([None]), lambda: kept.state.update(None)):
        with pytest.raises(StateError, match="None"):
            use()
    backend = Kept.make(EVERYTHING, ManualClock())
    backend.cell[0] = "key"
    descriptor = ReducingStateDescriptor("reducing", lambda a, b: None)
    descriptor.enable_time_to_live(builder().build())
    state = backend.state(descriptor)
    state.add(1)
    with pytest.raises(StateError, match="None"):
        state.add(2)
    assert state.get() == 1


def test_operator_state_takes_no_time_to_live():
    for ask, kind in (("get_list_state", "list"), ("get_union_list_state", "list"), ("get_broadcast_state", "map")):
        with pytest.raises(StateError, match="only keyed state"):
            getattr(OperatorStates(), ask)(descriptor_of(kind, builder().build()))


# ------------------------------------------------------------------------------------------------- windows merging


@pytest.mark.parametrize("kind", ["reducing", "aggregating"])
def test_windows_that_merge_leave_their_expired_values_behind(kind):
    def windows(configured, *stamps):
        kept = Kept(kind, configured, windowed=True)
        for window, stamp in enumerate(stamps):
            kept.cell[0] = ("key", window)
            kept.at(stamp)
            kept.write(f"v{window}")
        kept.at(12)
        kept.state.merge(("key", 9), [("key", window) for window in range(len(stamps))])
        kept.cell[0] = ("key", 9)
        return kept

    assert windows(builder(), 5, 6).read() == "v0+v1"
    kept = windows(builder(), 0, 6)
    kept.at(21)
    assert kept.read() == "v1", "what was merged is stamped anew"
    assert windows(builder(), 0, 1).read() is None
    assert windows(builder().return_expired_if_not_cleaned_up(), 0, 6).read() == "v0+v1"
    alone = windows(builder(), 6)
    alone.at(16)
    assert alone.read() is None, "what had nothing to merge with keeps its stamp"


def test_lists_that_merge_keep_the_stamps_of_their_elements():
    kept = Kept("list", windowed=True)
    kept.at(0).add("a")
    kept.cell[0] = ("key", 1)
    kept.at(6).add("b")
    kept.state.merge(("key", 1), [("key", 0)])
    assert list(kept.at(9).get()) == ["b", "a"]
    assert list(kept.at(10).get()) == ["b"]


@pytest.mark.parametrize("kind", ["value", "map", "folding"])
def test_other_kinds_cannot_be_merged(kind):
    with pytest.raises(StateError, match="merge"):
        Kept(kind, windowed=True).state.merge(("key", 1), [("key", 0)])
