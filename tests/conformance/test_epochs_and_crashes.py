"""Other epochs, crashes anywhere and other parallelisms never change the committed results."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.datastream.functions import FlatMapFunction
from ekorn.datastream.state import ListStateDescriptor
from ekorn.errors import JobExecutionError
from ekorn.functions.source_contract import SourceFunction
from ekorn.functions.state.checkpointed import CheckpointedFunction, ListCheckpointed
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.conformance.disturbed_jobs import (
    INPUT,
    POINTS,
    PROGRAMS,
    UNORDERED,
    checkpoints,
    counted,
    draw,
    environment,
    folder,
    lost,
    newest_checkpoint,
    runs,
    scripts,
    source,
    undisturbed,
)
from tests.conformance.external_system import ExternalSystem, TransactionalSink
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")


# ---------------------------------------------------------------------------------------------------- the properties


@pytest.mark.parametrize("name", PROGRAMS)
@given(runs=runs, script=scripts, parallelism=st.integers(1, 3), incremental=st.booleans())
@settings(max_examples=examples(8))
def test_other_epochs_and_crashes_change_nothing(name, runs, script, parallelism, incremental):
    env, system = environment(parallelism=parallelism, incremental=incremental), ExternalSystem()
    run = run_scripted(draw(env, name, runs, system), script)
    assert run.status is JobStatus.FINISHED
    assert counted(system.records) == counted(undisturbed(name))
    assert counted(run.records) == counted(undisturbed(name))
    if parallelism == 1 and name not in UNORDERED:
        assert run.records == undisturbed(name)


@pytest.mark.parametrize("name", PROGRAMS)
@given(
    runs=st.lists(runs, min_size=4, max_size=4),
    deaths=st.lists(st.builds(Crash, st.sampled_from(POINTS), st.integers(1, 6)), min_size=1, max_size=3),
    checkpoints=checkpoints,
    parallelisms=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    incremental=st.booleans(),
    lost=lost,
)
@settings(max_examples=examples(5))
def test_a_new_driver_at_another_parallelism_goes_on_where_the_last_checkpoint_stands(
    *, name, runs, deaths, checkpoints, parallelisms, incremental, lost
):
    system = ExternalSystem()
    with folder() as directory:
        newest = None
        for death, run, parallelism in zip([*deaths, None], runs, parallelisms, strict=False):
            env = environment(directory, parallelism, incremental=incremental)
            env.set_max_parallelism(8)
            draw(env, name, run, system)
            script = Script(checkpoints, [death] if death else [], lost, driver_dies=True)
            try:
                done = run_scripted(env, script, **({"restore_path": newest} if newest else {}))
                assert done.status is JobStatus.FINISHED
                break
            except DriverDied:
                newest = newest_checkpoint(directory) or newest
        assert counted(system.records) == counted(undisturbed(name))


@pytest.mark.parametrize("name", ["count", "stateless, over every partitioner", "a stream united with itself"])
@given(runs=runs, script=scripts, parallelism=st.integers(2, 4), splits=st.integers(1, 5))
@settings(max_examples=examples(12))
def test_sources_read_in_parallel_lose_and_repeat_nothing(name, runs, script, parallelism, splits):
    env, system = environment(parallelism=parallelism), ExternalSystem()
    result = PROGRAMS[name](source(env, runs, splits)).uid("program")
    result.add_sink(TransactionalSink(system)).uid("sink")
    run = run_scripted(result, script)
    assert counted(run.records) == counted(system.records) == counted(undisturbed(name))


# ------------------------------------------------------------------------------------------ state of one's own


class CounterSource(SourceFunction, CheckpointedFunction):
    """Advances its offset with every emitted record, under the checkpoint lock."""

    def __init__(self, end):
        self.end = end
        self.offset = 0
        self.running = True

    def run(self, ctx):
        while self.running and self.offset < self.end:
            with ctx.get_checkpoint_lock():
                ctx.collect(INPUT[self.offset])
                self.offset += 1

    def cancel(self):
        self.running = False

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("offset"))
        for offset in self.state.get():
            self.offset = offset

    def snapshot_state(self, context):
        self.state.update([self.offset])


class OffsetSource(SourceFunction, ListCheckpointed):
    def __init__(self, end):
        self.end, self.offset, self.running = end, 0, True

    run = CounterSource.run
    cancel = CounterSource.cancel

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.offset]

    def restore_state(self, state):
        (self.offset,) = state or [0]


@pytest.mark.parametrize("make", [CounterSource, OffsetSource])
@given(script=scripts)
@settings(max_examples=examples(20))
def test_a_source_function_is_restored_to_the_record(make, script):
    env, system = environment(), ExternalSystem()
    result = PROGRAMS["count"](env.add_source(make(len(INPUT))))
    result.add_sink(TransactionalSink(system))
    run = run_scripted(result, script)
    assert run.records == undisturbed("count")
    assert counted(system.records) == counted(undisturbed("count"))


class Batches(FlatMapFunction, CheckpointedFunction):
    """Emits records in threes; the buffered records are operator state."""

    def __init__(self):
        self.waiting = []

    def flat_map(self, value):
        self.waiting.append(value)
        if len(self.waiting) == 3:
            yield tuple(self.waiting)
            self.waiting.clear()

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("waiting"))
        self.waiting = list(self.state.get())

    def snapshot_state(self, context):
        self.state.update(self.waiting)


@given(runs=runs, script=scripts)
@settings(max_examples=examples(20))
def test_operator_state_holds_buffered_records(runs, script):
    run = run_scripted(source(environment(), runs).flat_map(Batches()), script)
    assert run.records == [tuple(INPUT[n : n + 3]) for n in range(0, len(INPUT) - 2, 3)]


# ------------------------------------------------------------------------------------------ how much is written


def test_a_checkpoint_of_few_changes_is_small():
    keys = 20_000
    everything, changes = [(key, key) for key in range(keys)], [(key, 1) for key in range(0, keys, 100)]
    with folder() as directory:
        env = environment(directory)
        scripted = ScriptedSource([everything + 3 * changes], [keys] + 3 * [len(changes)])
        stream = env.from_source(scripted, WatermarkStrategy.no_watermarks(), "scripted")
        run = run_scripted(stream.key_by(lambda v: v[0]).sum(1))
    first, second, third = (run.engine.bytes_written[checkpoint_id] for checkpoint_id in (1, 2, 3))
    assert first > 5 * keys
    assert second < first / 20
    assert third < first / 20


def test_without_incremental_checkpoints_every_one_holds_all_state():
    keys = 2_000
    records = [(key, key) for key in range(keys)]
    env = environment(incremental=False)
    scripted = ScriptedSource([[*records, *records[:30]]], [keys, 10, 10, 10])
    stream = env.from_source(scripted, WatermarkStrategy.no_watermarks(), "scripted")
    run = run_scripted(stream.key_by(lambda v: v[0]).sum(1))
    assert run.engine.bytes_written[2] > run.engine.bytes_written[1] / 2


def test_a_job_that_gives_up_keeps_what_was_committed_and_nothing_more():
    env, system = environment(restarts=1), ExternalSystem()
    draw(env, "count", [4], system)
    run = start_scripted(env, Script(crashes=[Crash("after-epoch", 3), Crash("after-epoch", 5)]))
    with pytest.raises(JobExecutionError, match="crashed after an epoch"):
        run.handle.wait(0)
    assert system.records == undisturbed("count")[: len(system.records)]
    assert 0 < len(system.records) < len(INPUT)
