"""State with a time to live: when entries expire, what reads return and renew, the cleanup, and snapshots.

`test_ttl_machine.py` drives the same states against a model.
"""

import io
import itertools
import pickle
from typing import Any, ClassVar

import pytest

from tamias.clock import ManualClock
from tamias.common import WatermarkStrategy
from tamias.common.time import Time
from tamias.datastream import StreamExecutionEnvironment
from tamias.errors import NoCurrentKey, StateError, StateMigrationError
from tamias.functions.process_functions import KeyedProcessFunction
from tamias.functions.state_descriptors import ReducingStateDescriptor, ValueStateDescriptor
from tamias.functions.state_ttl import StateTtlConfig
from tamias.state.canonical_format import decode_file
from tamias.state.operator_state import OperatorStates
from tamias.state.snapshots import OperatorRestore
from tamias.storage.memory import MemoryFiles
from tamias.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from tests.state.backends import EVERYTHING, heap, rocksdb
from tests.state.expiring import GROUPS, GROWING, KINDS, TTL_MS, Target, descriptor_of, handle_of

BACKENDS = {"heap": heap, "rocksdb": rocksdb}
ON_HEAP = pytest.mark.parametrize("backends", ["heap"], indirect=True)  # RocksDB's cleanup: test_rocksdb_ttl.py


@pytest.fixture(autouse=True, params=list(BACKENDS))
def backends(request):
    """Run every test on all backends, unless a test chooses its backends."""
    made = []

    def make(*args, **more):
        made.append(BACKENDS[request.param](*args, **more))
        return made[-1]

    Kept.make = staticmethod(make)
    yield make
    for backend in made:
        backend.close()


def builder(ttl_ms=TTL_MS):
    """Configure no background cleanup, so that only reads remove entries."""
    return StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).disable_cleanup_in_background()


class Kept:
    """A backend with its own clock and one state."""

    make: ClassVar[Any]

    def __init__(self, kind, configured=None, *, clock=None, incremental=True, restored=None, windowed=False):
        self.kind = kind
        self.clock = clock or ManualClock()
        self.backend = Kept.make(EVERYTHING, self.clock, incremental=incremental)
        if restored is not None:
            self.backend.restore(*restored, EVERYTHING)
        states = self.backend.in_windows("w/") if windowed else self.backend
        self.cell = self.backend.window_cell if windowed else self.backend.cell
        self.cell[0] = ("key", 0) if windowed else "key"
        self.state = handle_of(states, kind, (configured or builder()).build())

    def at(self, now_ms):
        self.clock.set_ms(now_ms)
        return self.state

    def write(self, value, entry="m"):
        if self.kind == "value":
            self.state.update(value)
        elif self.kind == "map":
            self.state.put(entry, value)
        else:
            self.state.add(value)

    def read(self, entry="m"):
        if self.kind == "value":
            return self.state.value()
        if self.kind == "map":
            return self.state.get(entry)
        if self.kind == "list":
            found = list(self.state.get())
            return found[0] if found else None  # the tests that use this write one element
        return self.state.get()

    def snapshot(self, checkpoint_id=1, store=None):
        """Take a snapshot; return what a restore needs."""
        store = store or MemoryFiles()
        captured = self.backend.snapshot(checkpoint_id)
        captured.key_groups = EVERYTHING
        files = captured.write(Target(store))
        return OperatorRestore("operator", (files,), (), self.backend.infos(), checkpoint_id, GROUPS), store

    @property
    def physical(self):
        return sorted(self.backend.keys(self.kind))


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
    state = backend.reducing_state(descriptor)
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


# ------------------------------------------------------------------------------------------------------- clean-up


def fill(kept, count):
    for key in range(count):
        kept.cell[0] = key
        kept.write("v")
    kept.cell[0] = "key"


def incremental(size, every_record):
    return StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).cleanup_incrementally(size, every_record)


@ON_HEAP
@pytest.mark.parametrize("kind", KINDS)
def test_each_access_looks_at_a_few_entries(kind):
    kept = Kept(kind, incremental(3, False))
    fill(kept, 10)
    kept.at(50)
    left = []
    for _ in range(6):
        kept.read()
        left.append(len(kept.physical))
    assert left[-1] == 0
    assert all(0 <= before - after <= 3 for before, after in itertools.pairwise([10, *left]))


ACCESSES = [
    ("value", lambda state: state.value()),
    ("value", lambda state: state.update("new")),
    ("list", lambda state: list(state.get())),
    ("list", lambda state: state.add("new")),
    ("list", lambda state: state.add_all(["new"])),
    ("list", lambda state: state.add_all([])),
    ("list", lambda state: state.update(["new"])),
    ("map", lambda state: state.get("m")),
    ("map", lambda state: state.contains("m")),
    ("map", lambda state: state.put("m", "new")),
    ("map", lambda state: state.put_all({"m": "new"})),
    ("map", lambda state: state.put_all({})),
    ("map", lambda state: state.remove("m")),
    ("map", lambda state: list(state.items())),
    ("map", lambda state: list(state.keys())),
    ("map", lambda state: list(state.values())),
    ("map", lambda state: state.is_empty()),
    ("reducing", lambda state: state.get()),
    ("reducing", lambda state: state.add("new")),
    ("aggregating", lambda state: state.get()),
    ("aggregating", lambda state: state.add("new")),
    ("folding", lambda state: state.get()),
    ("folding", lambda state: state.add("new")),
]


@ON_HEAP
@pytest.mark.parametrize(("kind", "access"), ACCESSES)
def test_every_kind_of_access_cleans_up(kind, access):
    kept = Kept(kind, incremental(3, False))
    fill(kept, 10)
    kept.at(50)
    for _ in range(6):
        access(kept.state)
    assert [key for key in kept.backend.keys(kind) if key != "key"] == []


@ON_HEAP
def test_by_default_five_entries_are_looked_at():
    kept = Kept("value")
    fill(kept, 20)
    default = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
    again = Kept("value", default, clock=ManualClock(50), restored=kept.snapshot())
    left = []
    for _ in range(5):
        again.read()
        left.append(len(again.physical))
    assert left == [15, 10, 5, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_with_background_cleanup_off_only_reads_remove(kind):
    kept = Kept(kind)
    fill(kept, 20)
    kept.at(50)
    for _ in range(50):
        kept.read()
    assert len(kept.physical) == 20


@ON_HEAP
def test_what_rocksdb_would_do_means_nothing_here():
    kept = Kept("value", builder().cleanup_in_rocksdb_compact_filter(1000))
    fill(kept, 20)
    kept.at(50)
    for _ in range(50):
        kept.read()
    assert len(kept.physical) == 20


@ON_HEAP
def test_an_explicit_cleanup_stays_when_the_default_one_is_off():
    kept = Kept("value", builder().cleanup_incrementally(7, False))
    fill(kept, 20)
    kept.at(50)
    for _ in range(6):
        kept.read()
    assert kept.physical == []


@ON_HEAP
@pytest.mark.parametrize("kind", ["list", "map"])
def test_the_cleanup_removes_expired_parts_and_keeps_the_others(kind):
    kept = Kept(kind, incremental(1, False).return_expired_if_not_cleaned_up())
    kept.write("old", "old")
    kept.at(6)
    kept.write("young", "young")
    kept.at(12)
    kept.cell[0] = "another"
    kept.read()
    kept.read()
    kept.cell[0] = "key"
    assert list(kept.state) == ["young"]


@ON_HEAP
def test_the_cleanup_reaches_every_entry_although_others_come_and_go():
    kept = Kept("value", incremental(2, False))
    fill(kept, 100)
    kept.at(50)
    for key in range(1000, 1200):
        kept.cell[0] = key
        kept.write("young")
        if key % 3 == 0:
            kept.state.clear()
    assert not [key for key in kept.physical if key < 1000]


@ON_HEAP
def test_every_record_is_for_states_that_ask_for_it():
    for every_record, left in ((False, 20), (True, 0)):
        kept = Kept("value", incremental(5, every_record))
        fill(kept, 20)
        kept.at(50)
        for _ in range(6):
            for clean_up in kept.backend.every_record:
                clean_up()
        assert len(kept.physical) == left


@ON_HEAP
def test_what_the_cleanup_removes_is_gone_from_the_next_snapshot():
    kept, store = Kept("value", incremental(5, False)), MemoryFiles()
    fill(kept, 20)
    kept.snapshot(1, store)
    kept.backend.snapshot_completed(1)
    kept.at(50)
    for _ in range(10):
        kept.read()
    again = Kept("value", clock=ManualClock(50), restored=kept.snapshot(2, store))
    assert again.physical == []


# ------------------------------------------------------------------------------------------- snapshots and restore


@pytest.mark.parametrize("kind", KINDS)
def test_stamps_are_restored_and_time_ran_on_meanwhile(kind):
    kept = Kept(kind)
    kept.write("v")
    saved = kept.snapshot()
    for now_ms, shown in ((9, "v"), (10, None)):
        assert Kept(kind, clock=ManualClock(now_ms), restored=saved).read() == shown


@pytest.mark.parametrize("kind", KINDS)
def test_another_time_to_live_holds_for_old_stamps_too(kind):
    kept = Kept(kind)
    kept.write("v")
    saved = kept.snapshot()
    assert Kept(kind, builder(100), clock=ManualClock(99), restored=saved).read() == "v"
    assert Kept(kind, builder(5), clock=ManualClock(5), restored=saved).read() is None


@pytest.mark.parametrize("kind", KINDS)
def test_time_to_live_is_not_put_on_or_taken_off_by_a_restore(kind):
    kept = Kept(kind)
    kept.write("v")
    backend = Kept.make()
    backend.restore(*kept.snapshot(), EVERYTHING)
    with pytest.raises(StateMigrationError, match="saved with time-to-live and is declared without"):
        handle_of(backend, kind, None)

    plain = Kept(kind)
    handle_of(plain.backend, kind, None, "other")
    backend = Kept.make()
    backend.restore(*plain.snapshot(), EVERYTHING)
    with pytest.raises(StateMigrationError, match="saved without time-to-live and is declared with"):
        handle_of(backend, kind, builder().build(), "other")


@ON_HEAP
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whole", [True, False], ids=["whole snapshots", "incremental"])
def test_full_snapshots_leave_expired_entries_out_and_the_state_alone(kind, whole):
    visible = builder().return_expired_if_not_cleaned_up()
    kept = Kept(kind, visible.cleanup_full_snapshot(), incremental=not whole)
    fill(kept, 5)
    kept.at(9)
    kept.write("young")
    kept.at(15)
    restored = Kept(kind, builder(), clock=ManualClock(15), restored=kept.snapshot())
    assert restored.physical == ["key"]
    assert restored.read() == "young"
    assert len(list(kept.backend.keys(kind))) == 6


@ON_HEAP
@pytest.mark.parametrize("kind", ["list", "map"])
def test_full_snapshots_leave_expired_parts_out(kind):
    kept = Kept(kind, builder().return_expired_if_not_cleaned_up().cleanup_full_snapshot())
    kept.write("old", "old")
    kept.at(6)
    kept.write("young", "young")
    kept.at(12)
    saved = kept.snapshot()
    assert list(kept.state) == ["old", "young"]
    restored = Kept(kind, builder().return_expired_if_not_cleaned_up(), clock=ManualClock(12), restored=saved)
    assert list(restored.state) == ["young"]


@ON_HEAP
def test_a_changed_entry_that_has_expired_is_not_in_the_checkpoint_that_follows():
    kept, store = Kept("value", builder().cleanup_full_snapshot()), MemoryFiles()
    kept.write("first")
    kept.snapshot(1, store)
    kept.backend.snapshot_completed(1)
    kept.at(1)
    kept.write("second")
    kept.at(20)
    assert Kept("value", clock=ManualClock(1), restored=kept.snapshot(2, store)).physical == []


def test_without_the_setting_snapshots_hold_expired_entries_too():
    kept = Kept("value")
    kept.write("v")
    kept.at(50)
    visible = builder().return_expired_if_not_cleaned_up()
    assert Kept("value", visible, clock=ManualClock(50), restored=kept.snapshot()).read() == "v"


@ON_HEAP
def test_only_built_in_types_go_to_a_checkpoint():
    class BuiltIn(pickle.Unpickler):
        def find_class(self, module, name):
            assert module == "builtins", f"a checkpoint refers to {module}.{name}"
            return super().find_class(module, name)

    for kind in KINDS:
        kept = Kept(kind)
        kept.write("v")
        store = MemoryFiles()
        (file,) = kept.backend.snapshot(1).write(Target(store)).files
        chunks = list(decode_file(store, file))
        assert chunks
        for chunk in chunks:
            BuiltIn(io.BytesIO(pickle.dumps(tuple(chunk)))).load()


# --------------------------------------------------------------------------------------------------------- in a job


class LastSeen(KeyedProcessFunction):
    """Emit for each record what is remembered of its key, and how many keys are remembered."""

    def __init__(self, config):
        self.config = config

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("last")
        descriptor.enable_time_to_live(self.config)
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        before = self.last.value()
        self.last.update(value)
        yield value[0], before, value[1]


def seen_twice(config, script, directory=None):
    """The key a occurs in epochs 1, 2 and 9. An epoch with a checkpoint takes 10 ms."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.enable_checkpointing(10)
    if directory is not None:
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    records = [("a", 1), ("a", 2), *[(f"k{n}", n) for n in range(3, 9)], ("a", 9)]
    source = ScriptedSource([records], [1])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    return run_scripted(stream.key_by(lambda r: r[0]).process(LastSeen(config)), script).records


@pytest.mark.parametrize("crashes", [(), (Crash("after-epoch", 5),)], ids=["undisturbed", "restored"])
def test_a_job_forgets_by_its_clock(crashes, tmp_path):
    for ttl_ms, remembered in ((60, None), (100_000, ("a", 2))):
        config = StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).build()
        found = seen_twice(config, Script(checkpoints=[True], crashes=crashes), tmp_path / str(ttl_ms))
        assert [before for key, before, _ in found if key == "a"] == [None, ("a", 1), remembered]


class Remember(KeyedProcessFunction):
    """Write the state for some records only; the test looks at the number of keys from outside."""

    sizes = []

    def __init__(self, config):
        self.config = config

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("last")
        descriptor.enable_time_to_live(self.config)
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        if value < 10:
            self.last.update(value)
        Remember.sizes.append(len(self.last._data))


@pytest.mark.parametrize("every_record", [True, False])
def test_a_job_cleans_up_with_every_record_if_it_is_asked_to(every_record):
    Remember.sizes.clear()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    source = ScriptedSource([range(40)], [10])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    config = StateTtlConfig.new_builder(Time.milliseconds(5)).cleanup_incrementally(2, every_record).build()
    run_scripted(stream.key_by(lambda n: n).process(Remember(config)), Script(checkpoints=[True]))
    assert max(Remember.sizes) == 10
    assert Remember.sizes[-1] == (0 if every_record else 10)
