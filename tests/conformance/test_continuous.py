"""Jobs that run continuously have the results of jobs in epochs: whoever takes turns with whom, with any failures.

The engine draws the order in which subtasks take turns, and sources read on behind the marks that they put into the
stream. Channels then get ahead of each other, and marks have to be aligned.
"""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Configuration
from ekorn.common.job_status import JobStatus
from ekorn.datastream import CheckpointingMode
from ekorn.testing.scripted import ContinuousScriptedEngine, Crash, DriverDied, Script, run_scripted
from tests.conformance.disturbed_jobs import (
    INPUT,
    PROGRAMS,
    UNORDERED,
    counted,
    draw,
    environment,
    folder,
    newest_checkpoint,
    runs,
    scripts,
    source,
    undisturbed,
)
from tests.conformance.external_system import ExternalSystem, TransactionalSink
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")

turns = st.integers(0, 1 << 16)


@pytest.mark.parametrize("name", PROGRAMS)
@given(runs=runs, script=scripts, turns=turns, parallelism=st.integers(1, 3))
@settings(max_examples=examples(3))
def test_other_turns_and_crashes_change_nothing(name, runs, script, turns, parallelism):
    env, system = environment(parallelism=parallelism), ExternalSystem()
    run = run_scripted(draw(env, name, runs, system), replace(script, turns=turns))
    assert run.status is JobStatus.FINISHED
    assert counted(system.records) == counted(undisturbed(name))
    assert counted(run.records) == counted(undisturbed(name))
    if parallelism == 1 and name not in UNORDERED:
        assert run.records == undisturbed(name)


@pytest.mark.parametrize("name", ["count", "a stream united with itself"])
@given(runs=runs, script=scripts, turns=turns, parallelism=st.integers(2, 4), splits=st.integers(2, 5))
@settings(max_examples=examples(12))
def test_sources_that_read_ahead_of_each_other_repeat_nothing(*, name, runs, script, turns, parallelism, splits):
    system = ExternalSystem()
    drawn = draw(environment(parallelism=parallelism), name, runs, system, splits)
    run = run_scripted(drawn, replace(script, turns=turns))
    assert counted(run.records) == counted(system.records) == counted(undisturbed(name))


@pytest.mark.parametrize("turns", range(8))
def test_channels_that_are_ahead_wait_for_the_others(turns):
    system = ExternalSystem()
    drawn = draw(environment(parallelism=3), "count", [1], system, splits=3)
    run = run_scripted(drawn, Script(crashes=[Crash("after-epoch", 4)], turns=turns))
    assert counted(system.records) == counted(undisturbed("count"))
    assert isinstance(run.engine, ContinuousScriptedEngine)
    assert run.engine.deferred_blobs > 0


@pytest.mark.parametrize("turns", range(8))
def test_at_least_once_holds_no_channel_back_and_loses_nothing(turns):
    env, system = environment(parallelism=3), ExternalSystem()
    env.get_checkpoint_config().set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    numbers = source(env, [1], splits=3).key_by(lambda v: v[0]).map(lambda v: v[1])
    numbers.add_sink(TransactionalSink(system)).uid("sink")
    run = run_scripted(env, Script(crashes=[Crash("after-epoch", 4)], turns=turns))
    assert isinstance(run.engine, ContinuousScriptedEngine)
    assert run.engine.deferred_blobs == 0
    assert set(system.records) == {number for _, number in INPUT}


def test_at_least_once_counts_records_twice_in_state_after_a_failure():
    """Flink: a snapshot holds what came behind the mark of a channel that was ahead, and the source reads it again."""
    seen = Counter()
    for turns in range(8):
        for mode in CheckpointingMode:
            env = environment(parallelism=3)
            env.get_checkpoint_config().set_checkpointing_mode(mode)
            run = run_scripted(
                PROGRAMS["count"](source(env, [1], splits=3)), Script(crashes=[Crash("after-epoch", 4)], turns=turns)
            )
            greatest = Counter()
            for key, count in run.records:
                greatest[key] = max(greatest[key], count)
            assert greatest.total() >= len(INPUT)
            seen[mode] += greatest.total() - len(INPUT)
    assert seen[CheckpointingMode.EXACTLY_ONCE] == 0
    assert seen[CheckpointingMode.AT_LEAST_ONCE] > 0


@pytest.mark.parametrize("turns", range(4))
def test_output_that_leaves_in_parts_behind_a_mark_comes_with_the_next_epoch(turns):
    env, configuration = environment(parallelism=3), Configuration()
    configuration.set_string("ekorn.exchange.blob-size", "1 kb")
    env.configure(configuration)
    wide = source(env, [1], splits=3).map(lambda v: (*v, "x" * 2_000))
    run = run_scripted(wide, Script(crashes=[Crash("after-epoch", 4)], turns=turns))
    assert counted(v[:2] for v in run.records) == counted(INPUT)


@pytest.mark.parametrize("name", ["count", "list state", "requests in order", "a stream united with itself"])
@pytest.mark.parametrize("then", ["stop", "drain"])
@given(
    lives=st.lists(st.tuples(st.none() | turns, st.integers(1, 4), st.integers(1, 6)), min_size=2, max_size=3),
    runs=runs,
)
@settings(max_examples=examples(4))
def test_a_savepoint_of_either_engine_continues_on_either_engine(name, then, lives, runs):
    system, path = ExternalSystem(), None
    with folder() as directory:
        for number, (turns, parallelism, epoch) in enumerate(lives):
            env = environment(directory, parallelism)
            env.set_max_parallelism(8)
            draw(env, name, runs, system)
            stopped = []

            def stop(handle, stopped=stopped, directory=directory):
                stopped.append(handle.request_savepoint(f"{directory}/savepoints", then=then))

            deeds = {epoch: stop} if number < len(lives) - 1 else {}
            restored = {"restore_path": path} if path else {}
            run_scripted(env, Script(turns=turns, deeds=deeds), **restored)
            if not stopped or stopped[0].exception() is not None:
                break  # the job had read everything before
            path = stopped[0].result()
    assert counted(system.records) == counted(undisturbed(name))


@given(script=scripts, turns=turns, death=st.integers(1, 6), parallelism=st.integers(1, 4))
@settings(max_examples=examples(12))
def test_a_new_driver_in_epochs_goes_on_where_a_continuous_one_died(script, turns, death, parallelism):
    system = ExternalSystem()
    with folder() as directory:
        env = environment(directory, parallelism)
        env.set_max_parallelism(8)
        draw(env, "count", [5], system)
        newest = None
        try:
            run_scripted(env, Script(crashes=[Crash("after-epoch", death)], turns=turns, driver_dies=True))
        except DriverDied:
            newest = newest_checkpoint(directory)
            env = environment(directory, parallelism % 4 + 1)
            env.set_max_parallelism(8)
            draw(env, "count", [3], system)
            run_scripted(env, replace(script, turns=None), **({"restore_path": newest} if newest else {}))
        assert counted(system.records) == counted(undisturbed("count"))
