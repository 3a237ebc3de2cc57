"""Jobs that change their parallelism by themselves: with the task slots of the cluster, or with their load."""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from ekorn.clock import ManualClock, SteadyClock
from ekorn.common import Configuration
from ekorn.config.settings.elasticity_settings import (
    AutoscalerSettings,
    ElasticitySettings,
    ReactiveSettings,
    elasticity_settings,
)
from ekorn.datastream.functions import MapFunction
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.job import Job
from ekorn.driver.rescaling.elasticity import Elasticity, ReactiveMode
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.errors import ConfigurationError
from ekorn.operators.epoch import Ack
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import InProcessEngine, LocalEngine
from tests.live_jobs import environment, expected_tally, generated, tallied, until


def configured(**keys: str) -> Configuration:
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(key, value)
    return configuration


# -------------------------------------------------------------------------------------------------- reactive mode


def test_places_must_stay_the_same_for_a_while():
    mode = ReactiveMode(ReactiveSettings(cooldown_ms=0, stabilization_ms=1_000), now_ms=0)
    seen = [(0, 2), (500, 3), (1_000, 4), (1_900, 4), (2_000, 4)]
    assert [mode.observe(now_ms, fitting=fitting, parallelism=2) for now_ms, fitting in seen] == [None] * 4 + [4]


def test_last_rescale_must_be_long_enough_ago():
    mode = ReactiveMode(ReactiveSettings(cooldown_ms=5_000, stabilization_ms=0), now_ms=0)
    assert mode.observe(1_000, fitting=3, parallelism=2) == 3
    mode.rescaled(1_500)
    assert mode.observe(6_000, fitting=4, parallelism=3) is None
    assert mode.observe(6_500, fitting=4, parallelism=3) == 4


def test_job_without_any_place_waits():
    mode = ReactiveMode(ReactiveSettings(0, 0), now_ms=0)
    assert mode.observe(9_000, fitting=0, parallelism=2) is None


@contextmanager
def running(directory, maximum=128, **keys):
    """Run an endless job on the local engine; yield its engine and its handle."""
    made: list[LocalEngine] = []

    def make(graph):
        made.append(LocalEngine(graph))
        return made[-1]

    env = environment(directory, parallelism=2, **keys)
    env.set_max_parallelism(maximum)

    generated(env, None, 200.0).key_by(lambda n: n).map(lambda n: n).uid("same")
    handle = submit(env.job_graph("elastic"), env.job_settings("elastic"), lambda settings: make)
    try:
        yield made[0], handle
    finally:
        handle.cancel()
        handle.results.wait_for_end(30)


def rescales(handle):
    return [(each.before, each.wanted, each.refusal) for each in handle.view.statistics.rescales]


@pytest.mark.parametrize(("maximum", "most"), [(128, 4), (3, 3)])
def test_job_follows_the_places_within_its_max_parallelism(tmp_path, maximum, most):
    cooldown = "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling"
    stabilization = "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout"
    keys = {"scheduler-mode": "reactive", cooldown: "0 s", stabilization: "0 s"}
    with running(tmp_path, maximum=maximum, **keys) as (engine, handle):
        engine.task_slots = 4
        until(lambda: rescales(handle) == [(2, most, None)])
        engine.task_slots = 1
        until(lambda: rescales(handle) == [(2, most, None), (most, 1, None)])
        assert handle.view.statistics.rescales[0].cause == "reactive mode: the cluster has 4 task slots"


class LosesTaskSlots(MapFunction):
    """Fails once: the cluster loses task slots, and what ran there."""

    engine: InProcessEngine | None = None

    def map(self, value):
        if value == 300 and LosesTaskSlots.engine is not None:
            LosesTaskSlots.engine.task_slots, LosesTaskSlots.engine = 3, None
            raise OSError("the executor is lost")
        return value


class MarkedEngine(ContinuousLocalEngine):
    """Runs a job continuously, with a task for every subtask."""

    def needed_task_slots(self, graph):
        return sum(vertex.parallelism for vertex in graph.vertices)


@pytest.mark.parametrize("mode", ["reactive", "default"])
def test_continuous_job_that_loses_places_restarts_within_those_that_are_left(tmp_path, mode):
    env = environment(tmp_path, parallelism=4, restarts=1, **{"scheduler-mode": mode})
    stream = tallied(generated(env, 1000, 5000).map(LosesTaskSlots()).set_parallelism(1), 5)

    def make(graph):
        engine = LosesTaskSlots.engine = MarkedEngine(graph)
        engine.task_slots = 9
        return engine

    started = []

    def start(graph, settings):
        started.append(submit(graph, settings, lambda _: make))
        return started[-1]

    with jobs_submitted_by(start), stream.execute_and_collect() as records:
        assert sorted(records) == sorted(expected_tally(1000, 5))
    (handle,) = started
    assert rescales(handle) == ([(4, 2, None)] if mode == "reactive" else [])
    assert handle.progress().restarts == 1


def asked_by(load, task_slots=None, maximum=128, **keys):
    """Return what a job of parallelism 2 asks for by itself within some seconds, without running it."""
    env = environment(parallelism=2, **keys)
    env.set_max_parallelism(maximum)
    generated(env, 1000, 200.0).key_by(lambda n: n).map(lambda n: n)
    graph, settings = drawn_job(env)
    clock, handle = ManualClock(0), JobHandle(settings.job_id, settings.job_name)
    job = Job.of(graph, settings, handle, clock, SteadyClock(clock))
    engine, unused = LocalEngine(graph, clock), cast(Any, None)
    engine.task_slots = task_slots
    elasticity = Elasticity(job, engine, Rescaling(job, engine, unused, unused), sum)
    busiest = graph.vertices[-1]
    for epoch in range(5):
        clock.advance(1_000)
        acks = [Ack(busiest.id, index, epoch, busy_ms=1_000 * load) for index in range(busiest.parallelism)]
        job.statistics.metrics.add(acks)
        elasticity.attend(has_backlog=False)
    return [request.parallelism for request in handle.requests.take_rescales()][:1]


AUTOSCALER = {
    "job.autoscaler.enabled": "true",
    "job.autoscaler.utilization.target": "0.2",
    "job.autoscaler.stabilization.interval": "0 s",
    "job.autoscaler.metrics.window": "2 s",
}


def test_busy_job_gets_the_highest_parallelism_that_it_can_have():
    assert asked_by(1.0, **AUTOSCALER) == [10]
    assert asked_by(1.0, maximum=5, **AUTOSCALER) == [5]
    assert asked_by(1.0, **AUTOSCALER, **{"ekorn.slots.max": "4"}) == [4]
    assert asked_by(1.0, task_slots=3, **AUTOSCALER) == [3]
    assert asked_by(1.0, task_slots=2, **AUTOSCALER) == [], "it has that already"
    assert asked_by(1.0, task_slots=1, **AUTOSCALER) == [], "a busy job keeps what it has"


def test_places_beyond_the_slots_of_the_job_are_not_asked_for():
    stabilization = "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout"
    keys = {"scheduler-mode": "reactive", stabilization: "0 s"}
    assert asked_by(0.0, task_slots=9, **keys) == [9]
    assert asked_by(0.0, task_slots=9, **keys, **{"ekorn.slots.max": "4"}) == [4]


def test_job_in_batch_mode_keeps_its_parallelism_and_says_so(caplog):
    assert asked_by(1.0, **AUTOSCALER, **{"execution.runtime-mode": "BATCH"}) == []
    assert "keeps its parallelism: in BATCH mode" in caplog.text


def test_idle_job_is_scaled_down_to_the_lowest_parallelism(tmp_path):
    keys = {"job.autoscaler.enabled": "true", "job.autoscaler.stabilization.interval": "0 s"}
    with running(tmp_path, **keys, **{"job.autoscaler.metrics.window": "2 s"}) as (_, handle):
        until(lambda: rescales(handle) == [(2, 1, None)])
        assert handle.view.statistics.rescales[0].cause.startswith("autoscaler: it was busy ")


# ----------------------------------------------------------------------------------------------------- the settings


def test_keys_of_flink_are_read():
    found = elasticity_settings(
        configured(**{"scheduler-mode": "reactive", "jobmanager.adaptive-scheduler.scaling-interval.min": "5 s"})
    )
    assert found == ElasticitySettings(reactive=ReactiveSettings(cooldown_ms=5_000))
    found = elasticity_settings(
        configured(**{"job.autoscaler.enabled": "true", "job.autoscaler.target.utilization": "0.6"})
    )
    assert found == ElasticitySettings(autoscaler=replace(AutoscalerSettings(), target=0.6))
    assert elasticity_settings(Configuration()) == ElasticitySettings()


def test_job_follows_one_of_the_two():
    with pytest.raises(ConfigurationError, match="not both"):
        elasticity_settings(configured(**{"scheduler-mode": "reactive", "job.autoscaler.enabled": "true"}))


def test_bounds_that_contradict_each_other_are_refused():
    keys = {"job.autoscaler.enabled": "true", "job.autoscaler.vertex.min-parallelism": "9"}
    with pytest.raises(ConfigurationError, match="is 9, above"):
        elasticity_settings(configured(**keys, **{"job.autoscaler.vertex.max-parallelism": "8"}))
