"""Marks that overtake records change no result: whoever takes turns, with any failures, at any parallelism.

The engine draws the order in which subtasks take turns, and the moment at which each of them gets the order of a
checkpoint. Snapshots then hold records that were on their way.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common.job_status import JobStatus
from ekorn.testing.scripted import ContinuousScriptedEngine, Crash, DriverDied, Script, run_scripted
from tests.conformance.disturbed_jobs import (
    PROGRAMS,
    counted,
    draw,
    environment,
    folder,
    newest_checkpoint,
    runs,
    scripts,
    undisturbed,
)
from tests.conformance.external_system import ExternalSystem
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")

turns = st.integers(0, 1 << 16)


def unaligned(directory=None, parallelism=1):
    env = environment(directory, parallelism)
    env.get_checkpoint_config().enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    return env


@pytest.mark.parametrize("name", PROGRAMS)
@given(runs=runs, script=scripts, turns=turns, parallelism=st.integers(1, 3))
@settings(max_examples=examples(3))
def test_marks_that_overtake_change_nothing(name, runs, script, turns, parallelism):
    system = ExternalSystem()
    run = run_scripted(draw(unaligned(parallelism=parallelism), name, runs, system), replace(script, turns=turns))
    assert run.status is JobStatus.FINISHED
    assert counted(system.records) == counted(run.records) == counted(undisturbed(name))


@pytest.mark.parametrize("name", ["count", "a stream united with itself"])
@given(runs=runs, script=scripts, turns=turns, parallelism=st.integers(2, 4), splits=st.integers(2, 5))
@settings(max_examples=examples(12))
def test_sources_that_read_ahead_of_each_other_repeat_nothing(*, name, runs, script, turns, parallelism, splits):
    system = ExternalSystem()
    drawn = draw(unaligned(parallelism=parallelism), name, runs, system, splits)
    run = run_scripted(drawn, replace(script, turns=turns))
    assert counted(run.records) == counted(system.records) == counted(undisturbed(name))


@pytest.mark.parametrize("turns", range(8))
def test_records_on_their_way_are_part_of_the_checkpoint(turns):
    system = ExternalSystem()
    drawn = draw(unaligned(parallelism=3), "count", [1], system, splits=3)
    run = run_scripted(drawn, Script(crashes=[Crash("after-epoch", 4)], turns=turns))
    assert counted(system.records) == counted(undisturbed("count"))
    assert isinstance(run.engine, ContinuousScriptedEngine)
    assert run.engine.overtaken_blobs > 0


@pytest.mark.parametrize(
    "name", ["count", "list state", "a stream united with itself", "aggregates on columns", "windows on columns"]
)
@given(
    lives=st.lists(st.tuples(st.none() | turns, st.integers(1, 4), st.integers(1, 6)), min_size=2, max_size=4),
    runs=runs,
)
@settings(max_examples=examples(8))
def test_a_new_driver_goes_on_at_another_parallelism_on_either_engine(name, lives, runs):
    system, path = ExternalSystem(), None
    with folder() as directory:
        for number, (turns, parallelism, death) in enumerate(lives):
            env = unaligned(directory, parallelism)
            env.set_max_parallelism(8)
            draw(env, name, runs, system)
            dies = number < len(lives) - 1
            script = Script(crashes=[Crash("after-epoch", death)] if dies else [], turns=turns, driver_dies=dies)
            try:
                run_scripted(env, script, **({"restore_path": path} if path else {}))
                break  # the job had read everything before
            except DriverDied:
                path = newest_checkpoint(directory) or path
    assert counted(system.records) == counted(undisturbed(name))
