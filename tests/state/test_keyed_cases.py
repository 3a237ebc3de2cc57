"""The behaviour of every keyed state backend, case by case. `test_keyed_backends.py` tests random sequences."""

from functools import partial

import pytest

from ekorn.common import Time, Types
from ekorn.errors import NoCurrentKey, StateError, StateMigrationError
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import BACKENDS, EVERYTHING, GROUPS
from tests.state.keyed_machine import DESCRIPTORS, Collect, Subtask, Target


@pytest.fixture(params=list(BACKENDS))
def backend(request):
    made = BACKENDS[request.param]()
    yield made
    made.close()


def test_state_cannot_be_used_without_a_key(backend):
    cannot_be_used_without_a_key(backend)


def test_state_of_a_job_without_checkpoints_cannot_be_used_without_a_key_either():
    cannot_be_used_without_a_key(HeapStateBackend(tracked=False))


def cannot_be_used_without_a_key(backend):
    value, elements, entries = (
        backend.state(DESCRIPTORS["value"]),
        backend.state(DESCRIPTORS["list"]),
        backend.state(DESCRIPTORS["map"]),
    )
    reducing, aggregating, folding = (
        backend.state(DESCRIPTORS["reducing"]),
        backend.state(DESCRIPTORS["aggregating"]),
        backend.state(DESCRIPTORS["folding"]),
    )
    for use in (
        *(state.clear for state in (value, elements, entries, reducing, aggregating, folding)),
        *(state.get for state in (elements, reducing, aggregating, folding)),
        *(partial(state.add, 1) for state in (elements, reducing, aggregating, folding)),
        *(partial(state.add, None) for state in (reducing, aggregating)),
        *(value.value, partial(value.update, 1), partial(value.update, None)),
        *(partial(elements.update, [1]), partial(elements.update, []), partial(elements.add_all, [1])),
        *(partial(entries.put, 1, 1), partial(entries.get, 1), partial(entries.contains, 1)),
        *(partial(entries.remove, 1), partial(entries.put_all, {1: 1}), entries.keys, entries.is_empty),
    ):
        with pytest.raises(NoCurrentKey):
            use()


def test_the_same_descriptor_gives_the_same_state(backend):
    one, two = (backend.state(ValueStateDescriptor("state")) for _ in range(2))
    backend.cell[0] = "key"
    one.update(5)
    assert two.value() == 5


def test_a_name_stands_for_one_kind_of_state(backend):
    backend.state(ValueStateDescriptor("state"))
    with pytest.raises(StateError, match="'state' is declared twice: as value of pickled and as list of pickled"):
        backend.state(ListStateDescriptor("state"))


def test_a_merge_of_state_that_cannot_be_merged_names_the_state_and_its_kind(backend):
    states = backend.in_windows("trigger/")
    for state, named in (
        (states.state(ValueStateDescriptor("last")), "value state 'last'"),
        (states.state(MapStateDescriptor("a/b")), "map state 'a/b'"),
    ):
        with pytest.raises(StateError, match=f"{named} of two windows cannot be merged: use list, reducing or"):
            state.merge(("key", (0, 1)), [("key", (1, 2))])


@pytest.mark.parametrize("bad", [None, [None], [1, None]])
def test_a_list_state_takes_no_none(backend, bad):
    state = backend.state(ListStateDescriptor("state"))
    backend.cell[0] = "key"
    for call in (state.add_all, state.update):
        with pytest.raises(StateError, match="None"):
            call(bad)
    with pytest.raises(StateError, match="None"):
        state.add(None)
    assert list(state.get()) == []


@pytest.mark.parametrize("expires", [False, True])
def test_what_is_refused_leaves_nothing_behind(backend, expires):
    backend.cell[0] = "key"
    descriptors = ListStateDescriptor("list", Types.INT()), MapStateDescriptor("map", Types.STRING(), Types.INT())
    if expires:
        for descriptor in descriptors:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    numbers, names = backend.state(descriptors[0]), backend.state(descriptors[1])
    for call in (
        lambda: numbers.add("x"),
        lambda: numbers.add_all([1, "x"]),
        lambda: numbers.update([1, "x"]),
        lambda: names.put("a", "x"),
        lambda: names.put(1, 1),
        lambda: names.put_all({"a": 1, "b": "x"}),
    ):
        with pytest.raises(StateError, match="cannot hold"):
            call()
    assert list(backend.keys("list")) == list(backend.keys("map")) == []


@pytest.mark.parametrize("expires", [False, True])
def test_an_accumulator_of_none_is_none_at_all(backend, expires):
    class Sum(Collect):
        def add(self, value, accumulator):
            return None if value == "stop" else [*accumulator, value]

    def fold(so_far, value):
        return None if value == "stop" else [*so_far, value]

    backend.cell[0] = "key"
    descriptors = AggregatingStateDescriptor("aggregating", Sum()), FoldingStateDescriptor("folding", [], fold)
    if expires:
        for descriptor in descriptors:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    for state in (backend.state(descriptors[0]), backend.state(descriptors[1])):
        state.add(1)
        state.add("stop")
        assert state.get() is None
    assert list(backend.keys("aggregating")) == list(backend.keys("folding")) == []


def test_a_default_that_could_not_be_written_is_refused_when_the_state_is_asked_for(backend):
    with pytest.raises(StateError, match=r"default value of ValueStateDescriptor\('n', Long\).*cannot hold 'abc'"):
        backend.state(ValueStateDescriptor("n", Types.LONG(), "abc"))
    backend.cell[0] = "key"
    assert backend.state(ValueStateDescriptor("n", Types.LONG(), 3)).value() == 3


def test_adding_none_clears_reducing_and_aggregating_state(backend):
    backend.cell[0] = "key"
    for state in (
        backend.state(ReducingStateDescriptor("reducing", max)),
        backend.state(AggregatingStateDescriptor("aggregating", Collect(), None)),
    ):
        state.add(1)
        assert state.get() is not None
        state.add(None)
        assert state.get() is None


def test_a_reduce_function_that_returns_none_is_refused_and_changes_nothing(backend):
    backend.cell[0] = "key"
    state = backend.state(ReducingStateDescriptor("reducing", lambda a, b: None))
    state.add(1)
    with pytest.raises(StateError, match="None"):
        state.add(2)
    assert state.get() == 1


def test_map_state_takes_pairs_as_well_as_a_dict(backend):
    backend.cell[0] = "key"
    state = backend.state(MapStateDescriptor("map"))
    state.put_all([("a", 1), ("b", 2)])
    state["c"] = 3
    del state["a"]
    assert dict(state.items()) == {"b": 2, "c": 3}
    assert "b" in state and "a" not in state
    state.put_all(None)
    assert sorted(state) == ["b", "c"]


@pytest.mark.parametrize("size", [255, 256, 257, 700])  # RocksDB reads larger maps lazily
def test_a_map_of_any_size_gives_all_its_entries(backend, size):
    backend.cell[0] = "key"
    state = backend.state(MapStateDescriptor("map"))
    state.put_all({n: -n for n in range(size)})
    backend.snapshot(1)  # writes the changes to RocksDB
    state.put(0, "new")
    state.put(size, "added")
    expected = {n: -n for n in range(size)} | {0: "new", size: "added"}
    assert dict(state.items()) == expected
    assert sorted(state.keys()) == sorted(expected)
    assert sorted(map(str, state.values())) == sorted(map(str, expected.values()))


@pytest.mark.parametrize("change", [lambda state, n: state.remove(n), lambda state, n: state.clear()])
def test_a_large_map_may_be_changed_while_its_entries_are_gone_through(backend, change):
    backend.cell[0] = "key"
    state = backend.state(MapStateDescriptor("map"))
    state.put_all({n: n for n in range(600)})
    backend.snapshot(1)
    seen = []
    for entry in state:
        seen.append(entry)
        change(state, entry)
    assert sorted(seen) == list(range(600))
    assert state.is_empty() and list(backend.keys("map")) == []


def test_removing_the_last_entry_of_a_map_removes_the_state(backend):
    backend.cell[0] = "key"
    state = backend.state(MapStateDescriptor("map"))
    state.put("a", None)
    assert state.contains("a") and not state.is_empty() and list(backend.keys("map")) == ["key"]
    state.remove("a")
    assert state.is_empty() and list(backend.keys("map")) == []


def restored(states, make=BACKENDS["heap"]):
    first, store = Subtask(make, EVERYTHING), MemoryFiles()
    first.backend.cell[0] = "key"
    first.handles["value"].update("kept")
    files = first.capture(1).write(Target(store))
    again = make()
    infos = tuple(info for info in first.backend.infos() if info.name in states)
    again.restore(OperatorRestore("operator", (files,), (), infos, 1, GROUPS), store, EVERYTHING)
    return again


def test_restored_state_of_another_kind_is_refused_by_name():
    backend = restored(["value"])
    with pytest.raises(StateMigrationError, match="'value': it was saved as value state and is declared as list state"):
        backend.state(ListStateDescriptor("value"))


def test_restored_state_that_nobody_asks_for_is_in_the_next_snapshot():
    backend, store = restored(["value"]), MemoryFiles()
    captured = backend.snapshot(2)
    captured.key_groups = EVERYTHING
    files = captured.write(Target(store))
    again = BACKENDS["heap"]()
    again.restore(OperatorRestore("operator", (files,), (), backend.infos(), 2, GROUPS), store, EVERYTHING)
    state = again.state(ValueStateDescriptor("value"))
    again.cell[0] = "key"
    assert state.value() == "kept"


def test_a_chain_of_changes_is_cut_when_it_has_grown_as_large_as_the_whole():
    subtask, store = Subtask(BACKENDS["heap"], EVERYTHING), MemoryFiles()
    for key in range(200):
        subtask.backend.cell[0] = key
        subtask.handles["value"].update("x" * 50)
    lengths = []
    for checkpoint_id in range(1, 60):
        for key in range(20):
            subtask.backend.cell[0] = (checkpoint_id * 20 + key) % 200
            subtask.handles["value"].update(f"{checkpoint_id}" * 20)
        files = subtask.capture(checkpoint_id).write(Target(store))
        subtask.backend.snapshot_completed(checkpoint_id)
        lengths.append(len(files.files))
        assert sum(file.size for file in files.files) < 3 * files.files[0].size
    assert max(lengths) > 3
    assert lengths.count(1) > 3


def lengths_of_chains(changing, still=0):
    """Return the number of files of each checkpoint if so many small entries change before each, beside large ones."""
    subtask, store = Subtask(BACKENDS["heap"], EVERYTHING), MemoryFiles()
    for key in range(1000, 1000 + still):
        subtask.backend.cell[0] = key
        subtask.handles["value"].update("x" * 10_000)
    lengths = []
    for checkpoint_id in range(1, 10):
        for key in range(changing if checkpoint_id > 1 else 200):
            subtask.backend.cell[0] = key
            subtask.handles["value"].update(f"{checkpoint_id}")
        files = subtask.capture(checkpoint_id).write(Target(store))
        subtask.backend.snapshot_completed(checkpoint_id)
        lengths.append(len(files.files))
    return lengths


def test_where_nearly_everything_changes_everything_is_written():
    assert lengths_of_chains(changing=150) == [1, 2, *[1] * 7], "the second one is to learn what a change takes"
    assert lengths_of_chains(changing=20) == list(range(1, 10))


def test_entries_that_are_many_are_not_everything():
    assert lengths_of_chains(changing=200, still=20) == list(range(1, 10))


@pytest.mark.parametrize("subsumed", [False, True], ids=["given up", "overtaken"])
def test_what_changed_before_a_snapshot_that_came_to_nothing_is_in_the_next_one(subsumed):
    """The random machine hardly reaches this case: its state is so small that every chain is rewritten."""
    subtask, store = Subtask(BACKENDS["heap"], EVERYTHING), MemoryFiles()
    for key in range(300):
        subtask.backend.cell[0] = key
        subtask.handles["value"].update("x" * 50)
    subtask.capture(1).write(Target(store))
    subtask.backend.snapshot_completed(1)
    subtask.backend.cell[0] = 7
    subtask.handles["value"].update("changed")
    subtask.backend.cell[0] = 8
    subtask.handles["value"].clear()
    lost = subtask.capture(2)
    if not subsumed:
        lost.write(target := Target(store))
        for path in target.created:
            store.delete(path)
    subtask.backend.cell[0] = 9
    subtask.handles["value"].update("later")
    files = subtask.capture(3).write(Target(store))
    subtask.backend.snapshot_completed(3)
    assert len(files.files) == 2, "it builds on the first one"
    again = Subtask(
        BACKENDS["heap"],
        EVERYTHING,
        OperatorRestore("operator", (files,), (), subtask.backend.infos(), 3, GROUPS),
        store,
    )
    found = []
    for key in (6, 7, 8, 9):
        again.backend.cell[0] = key
        found.append(again.handles["value"].value())
    assert found == ["x" * 50, "changed", None, "later"]


@pytest.mark.parametrize("name", BACKENDS)
def test_what_is_done_after_a_snapshot_was_captured_is_not_in_it_though_it_is_written_later(name):
    subtask, store = Subtask(BACKENDS[name], EVERYTHING), MemoryFiles()
    subtask.backend.cell[0] = "key"
    subtask.handles["list"].add(1)
    subtask.handles["map"].put("a", 1)
    subtask.handles["aggregating"].add(1)
    captured = subtask.capture(1)
    subtask.handles["list"].add(2)
    subtask.handles["map"].put("a", 2)
    subtask.handles["map"].put("b", 2)
    subtask.handles["aggregating"].add(2)
    files = captured.write(Target(store))
    restore = OperatorRestore("operator", (files,), (), subtask.backend.infos(), 1, GROUPS)
    again = Subtask(BACKENDS[name], EVERYTHING, restore, store)
    again.backend.cell[0] = "key"
    assert list(again.handles["list"].get()) == [1]
    assert dict(again.handles["map"].items()) == {"a": 1}
    assert again.handles["aggregating"].get() == ("1",)


def written(handles):
    """Write to every kind of state."""
    handles["value"].update([1])
    handles["list"].add_all([1, 2])
    handles["map"].put_all({"a": 1, "b": 2})
    handles["reducing"].add([1])
    handles["aggregating"].add(1)
    handles["folding"].add(1)


@pytest.mark.parametrize("name", list(BACKENDS))
def test_what_is_dropped_is_gone_from_memory_and_from_disk(name):
    subtask, store = Subtask(BACKENDS[name], EVERYTHING), MemoryFiles()
    for flushed in (False, True):
        for key in range(50):
            subtask.backend.cell[0] = key
            written(subtask.handles)
        if flushed:
            subtask.backend.snapshot(1).write(Target(store))
        subtask.backend.drop_all()
        for state in subtask.handles:
            assert list(subtask.backend.keys(state)) == []
        subtask.backend.cell[0] = 7
        assert subtask.handles["value"].value() is None
        assert list(subtask.handles["list"].get()) == list(subtask.handles["map"].items()) == []
        assert subtask.handles["map"].get("a") is None
        assert subtask.handles["reducing"].get() is subtask.handles["folding"].get() is None
        subtask.handles["list"].add(3)
        subtask.handles["map"].put("c", 3)
        assert list(subtask.handles["list"].get()) == [3]
        assert list(subtask.handles["map"].items()) == [("c", 3)]
    subtask.backend.close()


MERGED = {
    "list": (ListStateDescriptor("state"), lambda state, value: state.add(value), lambda state: list(state.get())),
    "reducing": (DESCRIPTORS["reducing"], lambda state, value: state.add([value]), lambda state: state.get() or []),
    "aggregating": (
        DESCRIPTORS["aggregating"],
        lambda state, value: state.add(value),
        lambda state: [int(text) for text in state.get() or ()],
    ),
}


@pytest.mark.parametrize("kind", MERGED)
@pytest.mark.parametrize("name", list(BACKENDS))
@pytest.mark.parametrize("held", [(1, 2, 3), (2, 3), (1,), (3,), ()])
def test_windows_that_merge_leave_one_entry_with_what_they_held(name, kind, held):
    descriptor, add, read = MERGED[kind]
    backend, store = BACKENDS[name](), MemoryFiles()
    state = backend.in_windows("w/").state(descriptor)
    for window in held:
        backend.window_cell[0] = ("key", window)
        add(state, window)
    backend.snapshot(1).write(Target(store))  # on disk, where there is one, and with nothing changed since
    backend.snapshot_completed(1)
    state.merge(("key", 1), [("key", 2), ("key", 3)])
    again = BACKENDS[name]()
    files = backend.snapshot(2).write(Target(store))
    again.restore(OperatorRestore("operator", (files,), (), backend.infos(), 2, GROUPS), store, EVERYTHING)
    for found in (backend, again):
        state = found.in_windows("w/").state(descriptor)
        kept = {}
        for window in (1, 2, 3):
            found.window_cell[0] = ("key", window)
            kept[window] = read(state)
        assert kept == {1: list(held), 2: [], 3: []}
        assert [address[1] for address, _ in found.entries(f"w/{descriptor.name}")] == ([1] if held else [])
        found.close()


def test_the_keys_of_several_states_are_listed_once_each(backend):
    value = backend.state(ValueStateDescriptor("value"))
    elements = backend.state(ListStateDescriptor("list"))
    entries = backend.state(MapStateDescriptor("map"))
    for key in range(20):
        backend.cell[0] = key
        if key < 12:
            value.update(1)
        if key >= 8:
            elements.add_all([1, 2])
        entries.put_all({1: 1, 2: 2})
    for names, keys in (
        (["value", "list"], range(20)),
        (["list", "value"], range(20)),
        (["value", "no such state"], range(12)),
        (["list"], range(8, 20)),
        (["map", "list"], range(20)),
        ([], ()),
    ):
        assert sorted(backend.keys_of(names)) == list(keys)


def test_a_closed_heap_holds_no_state():
    backend = HeapStateBackend(tracked=True)
    backend.cell[0] = "key"
    backend.state(ValueStateDescriptor("value")).update(1)
    assert list(backend.keys("value")) == ["key"]
    backend.close()
    assert list(backend.keys("value")) == []
    assert backend.infos() == ()
