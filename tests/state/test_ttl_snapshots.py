"""State with a time to live in snapshots, after a restore, and in a job."""

import io
import pickle

import pytest

from ekorn.clock import ManualClock
from ekorn.common import WatermarkStrategy
from ekorn.common.time import Time
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import StateMigrationError
from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.canonical_format import decode_file
from ekorn.storage.memory import MemoryFiles
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from tests.state.backends import EVERYTHING
from tests.state.expiring import KINDS, Target, handle_of
from tests.state.ttl_states import ON_HEAP, Kept, backends, builder  # noqa: F401 - backends is a fixture


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
    kept.fill(5)
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


@pytest.mark.heavy  # waits for its clock
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
