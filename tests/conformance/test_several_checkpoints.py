"""Several checkpoints on their way at the same time change no result of jobs that run continuously."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common.job_status import JobStatus
from ekorn.datastream import CheckpointingMode
from ekorn.testing.scripted import ContinuousScriptedEngine, Crash, Script, run_scripted
from tests.conformance.disturbed_jobs import INPUT, PROGRAMS, counted, environment, runs, scripts, source, undisturbed
from tests.conformance.external_system import ExternalSystem, TransactionalSink
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")

turns = st.integers(0, 1 << 16)


def with_checkpoints_at_once(count, parallelism, **settings):
    env = environment(parallelism=parallelism, **settings)
    env.get_checkpoint_config().set_max_concurrent_checkpoints(count)
    return env


@pytest.mark.parametrize("name", ["count", "two keyed operators", "a stream united with itself"])
@given(
    runs=runs,
    script=scripts,
    turns=turns,
    parallelism=st.integers(1, 4),
    splits=st.integers(1, 5),
    count=st.integers(2, 4),
)
@settings(max_examples=examples(10))
def test_marks_behind_each_other_change_nothing(*, name, runs, script, turns, parallelism, splits, count):
    env, system = with_checkpoints_at_once(count, parallelism), ExternalSystem()
    result = PROGRAMS[name](source(env, runs, splits)).uid("program")
    result.add_sink(TransactionalSink(system)).uid("sink")
    run = run_scripted(result, replace(script, turns=turns))
    assert run.status is JobStatus.FINISHED
    assert counted(run.records) == counted(system.records) == counted(undisturbed(name))


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("count", [1, 3])
def test_a_checkpoint_begins_while_another_is_on_its_way(turns, count):
    env, system = with_checkpoints_at_once(count, 3), ExternalSystem()
    PROGRAMS["count"](source(env, [1], splits=3)).add_sink(TransactionalSink(system))
    run = run_scripted(env, Script(crashes=[Crash("after-epoch", 4)], turns=turns))
    assert counted(system.records) == counted(undisturbed("count"))
    assert isinstance(run.engine, ContinuousScriptedEngine)
    assert (run.engine.orders_ahead > 0) is (count > 1)


@pytest.mark.parametrize("turns", range(6))
def test_at_least_once_loses_nothing(turns):
    env, system = with_checkpoints_at_once(3, 3), ExternalSystem()
    env.get_checkpoint_config().set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    numbers = source(env, [1], splits=3).key_by(lambda v: v[0]).map(lambda v: v[1])
    numbers.add_sink(TransactionalSink(system)).uid("sink")
    run = run_scripted(env, Script(crashes=[Crash("after-epoch", 4)], turns=turns))
    assert isinstance(run.engine, ContinuousScriptedEngine)
    assert run.engine.orders_ahead > 0 and run.engine.deferred_blobs == 0
    assert set(system.records) == {number for _, number in INPUT}
