"""Slots read state before a rescale switches to them: the results are the same, whatever became of the reading."""

import threading
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.clock import ManualClock
from ekorn.common import Configuration
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.job_loop import JobLoop
from ekorn.state.restored_tables import read_tables
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.scripted import Crash, Script, ScriptedEngine, run_scripted
from tests.driver.lives import POINTS
from tests.driver.savepoint_programs import Ledger, Rescale, counting, environment, numbers
from tests.examples_by_profile import examples

KEYS, COUNT = 200, 290
EXPECTED = Counter((n % KEYS, n // KEYS + 1) for n in range(COUNT))


def counted(env):
    """Count records by key: the first epoch has one of each key, and then few change, so that chains go on."""
    return counting(numbers(env, COUNT, runs=(KEYS, *[3] * 100)), modulus=KEYS)


def used(engine):
    return sum(host.preloaded.used for host in engine.hosts)


@pytest.mark.parametrize("turns", [None, 7], ids=["epochs", "continuous"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
def test_state_that_slots_have_read_is_that_of_the_switch(tmp_path, before, after, turns):
    rescale = Rescale(after)
    run = run_scripted(counted(environment(tmp_path, parallelism=before)), Script(deeds={3: rescale}, turns=turns))
    assert Counter(run.records) == EXPECTED
    assert rescale.path
    assert used(run.engine) == min(before, after), "slots that go on have read it"


@settings(max_examples=examples(10), deadline=None)
@given(
    crashes=st.lists(st.builds(Crash, st.sampled_from(POINTS), st.integers(3, 20)), max_size=3),
    before=st.integers(1, 3),
    wanted=st.lists(st.tuples(st.integers(3, 7), st.integers(1, 4)), min_size=1, max_size=3),
    every=st.lists(st.booleans(), min_size=1, max_size=4),
    kill=st.booleans(),
    turns=st.none() | st.integers(0, 5),
)
def test_crash_around_a_switch_with_state_read_in_advance_loses_and_repeats_nothing(
    tmp_path_factory, *, crashes, before, wanted, every, kill, turns
):
    env = environment(tmp_path_factory.mktemp("crash"), restarts=10, parallelism=before, tolerable_failed_checkpoints=9)
    counted(env).add_sink(Ledger("preloaded")).uid("ledger")
    deeds, epoch = {}, 0
    for after, parallelism in wanted:
        epoch += after
        deeds[epoch] = Rescale(parallelism)
    run_scripted(env, Script(checkpoints=every, crashes=crashes, kill=kill, turns=turns, deeds=deeds))
    assert Counter(Ledger.committed("preloaded")) == EXPECTED


class Preloading(ScriptedEngine):
    """Notes how often it is to read state; may fail, or read on another thread as an engine with processes does.

    Args:
        error: What is raised instead.
        held: Whether the reading ends only after the job.
    """

    def __init__(self, graph, clock, script, *, error=None, held=False):
        super().__init__(graph, clock, script)
        self.asked, self.directory = 0, None
        self._error, self._waits = error, held
        self.go_on = threading.Event()

    @property
    def in_process(self):
        return not self._waits

    def preload(self, graph, plan):
        self.asked, self.directory = self.asked + 1, plan.directory
        if self._waits:
            assert self.go_on.wait(30)
        if self._error is not None:
            raise self._error
        super().preload(graph, plan)


def run_preloading(stream, script, **more):
    """Run a job; return its engine when no thread of a rescale is left."""
    graph, chosen = drawn_job(stream)
    handle, clock = JobHandle(chosen.job_id, chosen.job_name), ManualClock(1_000_000)
    engine = Preloading(graph, clock, script, **more)
    engine.handle = handle
    JobLoop(graph, chosen, handle, lambda _: engine, clock=clock, chance=Random(0)).run()
    handle.wait(0)
    engine.go_on.set()
    for thread in threading.enumerate():
        if thread.name == "ekorn-rescale":
            thread.join(30)
    assert Counter(handle.results.records()) == EXPECTED
    return engine


def test_job_goes_on_while_slots_read_and_is_not_switched_before(tmp_path):
    rescale = Rescale(3)
    engine = run_preloading(counted(environment(tmp_path)), Script(deeds={4: rescale}), held=True)
    assert "the job has ended" in rescale.error
    assert engine.asked == 1
    assert engine.restored_ids == [None]


@pytest.mark.parametrize("error", [RuntimeError("Spark"), OSError("storage")], ids=["any", "storage"])
def test_state_that_could_not_be_read_in_advance_is_read_at_the_switch(tmp_path, error):
    rescale = Rescale(3)
    engine = run_preloading(counted(environment(tmp_path)), Script(deeds={4: rescale}), error=error)
    assert rescale.path
    assert engine.asked == 1
    assert used(engine) == 0


def test_refused_rescale_leaves_no_state_behind(tmp_path):
    """The switch fails: its checkpoint, behind the one in the background, is not written."""
    rescale = Rescale(2)
    script = Script(checkpoints=[False], deeds={4: rescale}, failed_snapshots={4})
    engine = run_preloading(counted(environment(tmp_path, tolerable_failed_checkpoints=9)), script)
    assert "could not be completed" in rescale.error
    assert engine.asked == 1
    assert [host.preloaded.take(engine.directory) for host in engine.hosts] == [read_tables]


def unprepared(tmp_path, backend="hashmap", preload="true"):
    env = environment(tmp_path)
    env.configure(
        Configuration().set_string("state.backend.type", backend).set_string("ekorn.rescale.preload", preload)
    )
    return env


@pytest.mark.parametrize(
    ("keys", "asked"),
    [({}, 1), ({"backend": "rocksdb"}, 0), ({"preload": "false"}, 0)],
    ids=["heap", "rocksdb", "off"],
)
def test_state_is_read_in_advance_on_the_heap_unless_that_is_off(tmp_path, keys, asked):
    rescale = Rescale(3)
    engine = run_preloading(counted(unprepared(tmp_path, **keys)), Script(deeds={4: rescale}))
    assert rescale.path
    assert engine.asked == asked


def test_job_without_checkpoints_reads_nothing_in_advance():
    rescale = Rescale(3)
    engine = run_preloading(counted(environment()), Script(deeds={4: rescale}))
    assert rescale.path
    assert engine.asked == 0
