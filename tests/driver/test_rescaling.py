"""A job goes on at another parallelism while it runs: same driver, same job, every record once."""

import contextlib
import tempfile
import threading
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.clock import ManualClock, SteadyClock
from ekorn.common import JobStatus
from ekorn.common.job_id import JobID
from ekorn.config.settings.metric_settings import LatencySettings
from ekorn.datastream import ExternalizedCheckpointRetention
from ekorn.datastream.functions import MapFunction
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.job import Job
from ekorn.driver.loop.job_loop import JobLoop
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.driver.rescaling.rescale_requests import RescaleRequest
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedEngine, run_scripted, start_scripted
from tests.driver.lives import POINTS
from tests.driver.savepoint_programs import Ask, Ledger, Rescale, counting, environment, numbers
from tests.examples_by_profile import examples

JOB = JobID.generate()
COUNT = 150
EXPECTED = Counter((n % 5, n // 5 + 1) for n in range(COUNT))


def counted(env, splits=3, count=COUNT):
    return counting(numbers(env, count, runs=(2,), splits=splits), modulus=5)


def statistics(run):
    assert run.handle.view.statistics is not None
    return run.handle.view.statistics


def parallelisms(run):
    return {vertex.name: vertex.parallelism for vertex in statistics(run).graph.vertices}


@pytest.mark.parametrize("turns", [None, 7], ids=["epochs", "continuous"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
def test_job_goes_on_at_another_parallelism(tmp_path, before, after, turns):
    env = environment(tmp_path, parallelism=before)
    rescale = Rescale(after)
    run = run_scripted(counted(env), Script(deeds={2: rescale}, turns=turns))
    assert Counter(run.records) == EXPECTED
    assert "chk-" in rescale.path
    assert after in parallelisms(run).values()
    assert before not in parallelisms(run).values()
    assert run.handle.progress().restarts == 0
    assert statistics(run).restarts == 0
    assert [each.status for each in statistics(run).time_line] == [
        JobStatus.CREATED,
        JobStatus.RUNNING,
        JobStatus.RESTARTING,
        JobStatus.RUNNING,
        JobStatus.FINISHED,
    ]


def test_attempt_restores_the_checkpoint_that_ended_the_attempt_before(tmp_path):
    rescale = Rescale(2)
    run = run_scripted(counted(environment(tmp_path)), Script(checkpoints=[False], deeds={2: rescale}))
    assert rescale.path.endswith(f"chk-{run.engine.restored_ids[-1]}")
    assert len(run.engine.restored_ids) == 2
    carried = [order.checkpoint_id for order in run.epochs if order.checkpoint_id is not None]
    assert carried[:2] == [1, 2], "one in the background, one at the switch"
    assert run.engine.restored_ids == [None, 2]


@pytest.mark.parametrize("turns", [None, 3], ids=["epochs", "continuous"])
def test_job_without_checkpoints_goes_on_from_a_savepoint(tmp_path, turns):
    rescale = Rescale(3)
    run = run_scripted(counted(environment()), Script(deeds={2: rescale}, turns=turns))
    assert Counter(run.records) == EXPECTED
    assert "savepoint-" in rescale.path
    assert 3 in parallelisms(run).values()


def test_temporary_savepoint_goes_with_the_next_rescale_and_with_the_job(tmp_path):
    first, second = Rescale(3), Rescale(2)
    existed = []

    def look(_):
        existed.append([Path(rescale.path.removeprefix("file://")).exists() for rescale in (first, second)])

    run = run_scripted(counted(environment()), Script(deeds={2: first, 10: second, 16: look}))
    assert Counter(run.records) == EXPECTED
    look(None)
    assert existed == [[False, True], [False, False]]


def test_rescale_without_a_place_for_its_savepoint_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    rescale = Rescale(3)

    def no_place(handle):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))  # what tempfile.gettempdir() returns
        rescale(handle)

    run = run_scripted(counted(environment()), Script(deeds={2: no_place}))
    assert Counter(run.records) == EXPECTED
    assert "there is no directory for its savepoint" in rescale.error


def test_savepoint_of_a_rescale_goes_where_the_job_has_its_savepoints(tmp_path):
    rescale = Rescale(3)
    run_scripted(counted(environment()), Script(deeds={2: rescale}), savepoint_directory=str(tmp_path))
    assert rescale.path.startswith(f"file://{tmp_path}") or rescale.path.startswith(str(tmp_path))


def test_operators_keep_the_parallelism_that_the_program_sets(tmp_path):
    env = environment(tmp_path, parallelism=2)
    stream = counting(numbers(env, COUNT, runs=(2,), splits=3).set_parallelism(3), modulus=5)
    run = run_scripted(stream.map(lambda pair: pair).set_parallelism(1).name("one"), Script(deeds={2: Rescale(4)}))
    assert Counter(run.records) == EXPECTED
    assert {name.split(" ->")[0]: many for name, many in parallelisms(run).items()} == {
        "Source: numbers": 3,
        "count": 4,
        "one": 1,
    }


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_operators_that_another_parallelism_chains_otherwise_keep_their_latencies(tmp_path, before, after):
    env = environment(tmp_path, parallelism=before)
    source = numbers(env, COUNT, runs=(2,), splits=3).set_parallelism(1)
    rescale = Rescale(after)
    stream = counting(source.map(lambda n: n), modulus=5)
    run = run_scripted(stream, Script(deeds={2: rescale}), latency=LatencySettings(interval_ms=1))
    assert rescale.path
    assert Counter(run.records) == EXPECTED
    (count,) = [v.operators[0].id for v in statistics(run).graph.vertices if v.name.startswith("count")]
    subtasks = {path.subtask for path in statistics(run).latencies.by_path if path.operator_id == count}
    assert subtasks == set(range(after))


def test_transactional_sinks_commit_every_record_once(tmp_path):
    env = environment(tmp_path, parallelism=2)
    counted(env).add_sink(Ledger("rescaled")).uid("ledger")
    up, down = Rescale(4), Rescale(1)
    run = run_scripted(env, Script(checkpoints=[True, False, False], deeds={2: up, 12: down}))
    assert Counter(Ledger.committed("rescaled")) == EXPECTED
    assert (up.future.done(), down.future.done()) == (True, True)
    assert 1 in parallelisms(run).values()


@pytest.mark.parametrize("turns", [None, 5], ids=["epochs", "continuous"])
def test_savepoint_that_comes_before_the_background_checkpoint_does_not_end_the_rescale(tmp_path, turns):
    savepoint, rescale = Ask(tmp_path / "savepoints"), Rescale(3)

    def both(handle):
        savepoint(handle)
        rescale(handle)

    script = Script(checkpoints=[False], deeds={2: both}, turns=turns)
    run = run_scripted(counted(environment(tmp_path / "checkpoints")), script)
    assert Counter(run.records) == EXPECTED
    assert savepoint.path
    assert "chk-" in rescale.path
    assert 3 in parallelisms(run).values()


@pytest.mark.parametrize("turns", [None, 5], ids=["epochs", "continuous"])
def test_savepoint_that_takes_longer_than_that_of_the_rescale_is_waited_for(tmp_path, turns):
    """The job takes no checkpoints, so both are savepoints, in the order in which they were requested."""
    savepoint, rescale = Ask(tmp_path / "savepoints"), Rescale(3)

    def both(handle):
        savepoint(handle)
        rescale(handle)

    script = Script(deeds={2: both}, late_snapshots={1: 9}, late_until_wait=True, turns=turns)
    run = run_scripted(counted(environment()), script)
    assert Counter(run.records) == EXPECTED
    assert savepoint.path
    assert rescale.path
    assert 3 in parallelisms(run).values()


# ------------------------------------------------------------------------------------------------------- refusals


def refused(env, rescale, **more):
    """Run a job that refuses a rescale; return the reason."""
    run = run_scripted(counted(env), Script(deeds={2: rescale}, **more))
    assert Counter(run.records) == EXPECTED
    assert len(run.engine.restored_ids) == 1, "the attempt goes on"
    return rescale.error


def test_parallelism_above_the_maximum_is_refused(tmp_path):
    env = environment(tmp_path, parallelism=2)
    env.set_max_parallelism(4)
    assert "above its max parallelism of 4" in refused(env, Rescale(5))


def test_maximum_is_that_of_the_running_job(tmp_path):
    """The default maximum grows with the parallelism, and the key groups of a running job do not."""
    assert "above its max parallelism of 128" in refused(environment(tmp_path, parallelism=2), Rescale(200))


def test_more_slots_than_the_job_may_take_are_refused(tmp_path):
    rescale, granted = Rescale(3), Rescale(4, most_slots=4)
    run = run_scripted(counted(environment(tmp_path)), Script(deeds={2: rescale, 4: granted}), most_slots=2)
    assert "needs 3 slots, but may use only 2 (ekorn.slots.max)" in rescale.error
    assert granted.path
    assert 4 in parallelisms(run).values()


def test_second_rescale_during_one_is_refused(tmp_path):
    first, second = Rescale(3), Rescale(4)

    def both(handle):
        first(handle)
        second(handle)

    run = run_scripted(counted(environment(tmp_path)), Script(deeds={2: both}))
    assert "already being rescaled to 3" in second.error
    assert first.path
    assert 3 in parallelisms(run).values()


@pytest.mark.parametrize("parallelism", [0, -1])
def test_parallelism_below_one_is_refused(tmp_path, parallelism):
    assert "the parallelism must be at least 1" in refused(environment(tmp_path), Rescale(parallelism))


def test_rescale_that_changes_nothing_is_refused(tmp_path):
    assert "no operator would change its parallelism" in refused(environment(tmp_path, parallelism=2), Rescale(2))


def test_forward_between_operators_of_different_parallelism_is_refused(tmp_path):
    env = environment(tmp_path, parallelism=3)
    stream = numbers(env, COUNT, runs=(2,), splits=3).set_parallelism(3).forward().map(lambda n: n)
    rescale = Rescale(2)
    run = run_scripted(stream, Script(deeds={2: rescale}))
    assert "forward() from operator 'Source: numbers'" in rescale.error
    assert sorted(run.records) == list(range(COUNT))


def test_job_that_ends_first_refuses_the_rescale(tmp_path):
    rescale = Rescale(3)
    stop = Ask(tmp_path / "savepoints", then="stop")

    def both(handle):
        stop(handle)
        rescale(handle)

    start_scripted(counted(environment(tmp_path)), Script(deeds={2: both}))
    assert "being stopped with a savepoint" in rescale.error
    assert stop.path


def test_ended_job_refuses_a_rescale(tmp_path):
    run = run_scripted(counted(environment(tmp_path)))
    assert "the job has ended (FINISHED)" in str(run.handle.request_rescale(3).exception(0))


# ------------------------------------------------------------------------------------------------------- failures


class Picky(MapFunction):
    """Cannot be opened in more than two subtasks."""

    def open(self, runtime_context):
        if runtime_context.get_number_of_parallel_subtasks() > 2:
            raise ValueError("no more than two")

    def map(self, value):
        return value


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("turns", [None, 5], ids=["epochs", "continuous"])
def test_rescale_that_cannot_be_deployed_goes_back(tmp_path, checkpoints, turns):
    """Without a restart strategy: it is the rescale that has failed, and not the job."""
    env = environment(tmp_path if checkpoints else None, parallelism=2)
    rescale = Rescale(3)
    run = run_scripted(counted(env).map(Picky()), Script(deeds={2: rescale}, turns=turns))
    assert Counter(run.records) == EXPECTED
    assert "it was rolled back" in rescale.error
    assert "no more than two" in rescale.error
    assert set(parallelisms(run).values()) == {2}
    _, second, third = run.engine.restored_ids
    assert second == third is not None, "from the same checkpoint"
    assert run.handle.progress().restarts == 0
    assert "no more than two" in statistics(run).failures.failures[0].trace


def test_checkpoint_of_the_switch_that_fails_lets_the_job_go_on(tmp_path):
    env = environment(tmp_path, parallelism=1, tolerable_failed_checkpoints=10)
    rescale = Rescale(3)
    script = Script(checkpoints=[False], deeds={2: rescale}, failed_snapshots={3})
    run = run_scripted(counted(env, splits=1), script)
    assert Counter(run.records) == EXPECTED
    assert "checkpoint 2 could not be completed: " in rescale.error
    assert "lost by the script" in rescale.error
    assert len(run.engine.restored_ids) == 1


def test_background_checkpoint_that_fails_lets_the_job_go_on(tmp_path):
    env = environment(tmp_path, parallelism=1, tolerable_failed_checkpoints=10)
    rescale = Rescale(3)
    script = Script(checkpoints=[False], deeds={2: rescale}, failed_snapshots={1})
    run = run_scripted(counted(env, splits=1), script)
    assert Counter(run.records) == EXPECTED
    assert "its checkpoint before the switch could not be taken: " in rescale.error
    assert "lost by the script" in rescale.error
    assert len(run.engine.restored_ids) == 1


class PreparingEngine(ScriptedEngine):
    """Notes for how many slots it is prepared, beside the loop's thread, as an engine with processes is."""

    def __init__(self, graph, clock, script):
        super().__init__(graph, clock, script)
        self.prepared: list[int] = []
        self.at_it = 0
        self.most_at_it = 0
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def in_process(self):
        return False

    def prepare(self, graph):
        self.at_it += 1
        self.most_at_it = max(self.most_at_it, self.at_it)
        assert self.go_on.wait(30)
        self.prepared.append(graph.slot_count)
        self.at_it -= 1


def run_preparing(stream, script, *, held=False):
    """Run a job; return its engine when no thread of a rescale is left."""
    graph, chosen = drawn_job(stream)
    handle, clock = JobHandle(chosen.job_id, chosen.job_name), ManualClock(1_000_000)
    engine = PreparingEngine(graph, clock, script)
    engine.handle = handle
    if held:
        engine.go_on.clear()
    JobLoop(graph, chosen, handle, lambda _: engine, clock=clock, chance=Random(0)).run()
    handle.wait(0)
    engine.go_on.set()
    for thread in threading.enumerate():
        if thread.name == "ekorn-rescale":
            thread.join(30)
    assert Counter(handle.results.records()) == EXPECTED
    return engine


class Many(MapFunction):
    """Cannot be opened in one subtask."""

    def open(self, runtime_context):
        if runtime_context.get_number_of_parallel_subtasks() == 1:
            raise ValueError("not alone")

    def map(self, value):
        return value


def test_deployment_that_goes_back_alone_starts_the_slots_of_the_graph_before(tmp_path):
    """Slots that another thread made ready for it meanwhile would be left over."""
    rescale = Rescale(1)
    engine = run_preparing(counted(environment(tmp_path, parallelism=3)).map(Many()), Script(deeds={2: rescale}))
    assert "not alone" in rescale.error
    assert engine.prepared == [1]


def test_one_thread_at_a_time_prepares_the_engine(tmp_path):
    """The job fails while a rescale is prepared, and the next rescale comes before that has ended."""
    first, second = Rescale(3), Rescale(4)
    script = Script(crashes=[Crash("before-epoch", 4)], deeds={2: first, 5: second})
    engine = run_preparing(counted(environment(tmp_path, restarts=1)), script, held=True)
    assert "the job failed" in first.error
    assert second.future.done()
    assert engine.most_at_it == 1


def test_rescale_whose_preparation_has_failed_is_not_ready(tmp_path):
    """The preparation may fail after the loop has looked for requests, and before it looks for what is ready."""

    class Unprepared(LocalEngine):
        def prepare(self, graph):
            raise RuntimeError("no place")

    graph, chosen = drawn_job(counted(environment()))
    clock = ManualClock(0)
    handle = JobHandle(chosen.job_id, chosen.job_name)
    job = Job.of(graph, chosen, handle, clock, SteadyClock(clock))
    checkpoints: Any = SimpleNamespace(refusal=None, newest_id=0)
    output: Any = SimpleNamespace()
    rescaling = Rescaling(job, Unprepared(graph), checkpoints, output)
    request = RescaleRequest(3)
    rescaling.accept(request, stopping=False)
    assert not rescaling.is_ready
    rescaling.attend()
    assert "no place" in str(request.future.exception(0))


@settings(max_examples=examples(60), deadline=None)
@given(
    crashes=st.lists(st.builds(Crash, st.sampled_from(POINTS), st.integers(1, 14)), max_size=3),
    before=st.integers(1, 4),
    wanted=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    every=st.lists(st.booleans(), min_size=1, max_size=4),
    kill=st.booleans(),
    turns=st.none() | st.integers(0, 5),
    checkpoints=st.booleans(),
)
def test_crash_at_any_step_loses_and_repeats_nothing(
    tmp_path_factory, *, crashes, before, wanted, every, kill, turns, checkpoints
):
    directory = tmp_path_factory.mktemp("crash")
    env = environment(
        directory if checkpoints else None, restarts=10, parallelism=before, tolerable_failed_checkpoints=9
    )
    counted(env).add_sink(Ledger("crashes")).uid("ledger")
    rescales = [Rescale(parallelism) for parallelism in wanted]
    deeds = {2 + 4 * number: rescale for number, rescale in enumerate(rescales)}
    script = Script(checkpoints=every, crashes=crashes if checkpoints else (), kill=kill, turns=turns, deeds=deeds)
    run_scripted(env, script)
    committed = Counter(Ledger.committed("crashes"))
    assert committed == EXPECTED
    assert all(rescale.future is None or rescale.future.done() for rescale in rescales), "every request is answered"


@pytest.mark.parametrize("count", (2, 3, 4, 5, 6, 8))
@pytest.mark.parametrize("point", ["before-epoch", "after-epoch", "before-notify", "after-notify", "before-deploy"])
def test_driver_that_dies_during_a_rescale_is_followed_by_one_that_continues(tmp_path, point, count):
    def job(parallelism):
        env = environment(tmp_path, restarts=3, parallelism=parallelism)
        retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        counted(env).add_sink(Ledger("dead")).uid("ledger")
        return env

    script = Script(crashes=[Crash(point, count)], driver_dies=True, deeds={2: Rescale(3)})
    with contextlib.suppress(DriverDied):
        run_scripted(job(2), script, job_id=JOB)
        return  # the point was not passed so often
    committed = Ledger.books["dead"]
    env = job(2)
    Ledger.books["dead"] = committed
    run = run_scripted(env, Script(), job_id=JOB)
    assert run.engine.restored_ids[0] is not None or count < 3
    assert Counter(Ledger.committed("dead")) == EXPECTED
