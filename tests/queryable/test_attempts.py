"""A query belongs to the attempt by whose graph its keys were assigned: any other one refuses it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tamias.clock import ManualClock, SteadyClock
from tamias.common import JobStatus, Types
from tamias.driver.job import Job
from tamias.driver.job_handle import JobHandle
from tamias.driver.state_queries import StateQueries
from tamias.engine.local_engine import LocalEngine
from tamias.errors import StateNotServed
from tamias.graph.addresses import SubtaskId
from tamias.slot.deployment import Deployment
from tamias.slot.state_look_ups import StateQuery
from tamias.testing.drawn_job import drawn_job
from tests.queryable.programs import EveryKind, environment, numbers

RUNNING_ATTEMPT = 1


@pytest.fixture(name="deployed")
def deployed_job():
    env = environment()
    numbers(env).key_by(lambda n: n % 5, Types.LONG()).process(EveryKind())
    graph, settings = drawn_job(env)
    engine = LocalEngine(graph)
    assert engine.deploy(Deployment(str(settings.job_id), graph, RUNNING_ATTEMPT)) is None
    clock = ManualClock(0)
    handle = JobHandle(settings.job_id, settings.job_name)
    yield engine, Job.of(graph, settings, handle, clock, SteadyClock(clock))
    engine.shutdown()


def test_a_slot_refuses_the_query_of_another_attempt(deployed):
    engine, _ = deployed
    (state,) = [state for state in engine.queryable_states() if state.name == "value"]
    subtask = SubtaskId(state.vertex, 0)
    assert engine.look_up(StateQuery(subtask, RUNNING_ATTEMPT, "value", [1, 2], timeout_s=1.0)) == [None, None]
    for other in (RUNNING_ATTEMPT - 1, RUNNING_ATTEMPT + 1):
        with pytest.raises(StateNotServed, match="restarts"):
            engine.look_up(StateQuery(subtask, other, "value", [1, 2], timeout_s=1.0))


def test_a_slot_refuses_the_query_of_a_subtask_that_it_does_not_have(deployed):
    engine, _ = deployed
    (state,) = [state for state in engine.queryable_states() if state.name == "value"]
    with pytest.raises(StateNotServed, match="subtask 0 has no such state"):
        engine.look_up(StateQuery(SubtaskId(state.vertex, 0), RUNNING_ATTEMPT, "no name", [1], timeout_s=1.0))


def test_a_query_that_waits_too_long_for_user_code_is_refused(deployed):
    engine, _ = deployed
    (state,) = [state for state in engine.queryable_states() if state.name == "value"]
    with engine.hosts[0].turn, pytest.raises(StateNotServed, match="without a pause"):
        engine.look_up(StateQuery(SubtaskId(state.vertex, 0), RUNNING_ATTEMPT, "value", [1], timeout_s=0.01))


@pytest.mark.parametrize("status", [each for each in JobStatus if each is not JobStatus.RUNNING])
def test_a_job_that_does_not_run_is_not_asked(deployed, status):
    engine, job = deployed
    no_checkpoints: Any = SimpleNamespace(newest=None)
    queries = StateQueries(job, engine, no_checkpoints, no_checkpoints)
    progress = replace(job.handle.progress(), attempt=RUNNING_ATTEMPT)
    job.handle.update(replace(progress, status=status))
    for question in (lambda: queries.look_up("value", [1]), lambda: queries.key_type("value")):
        with pytest.raises(StateNotServed, match=status.name):
            question()
    job.handle.update(replace(progress, status=JobStatus.RUNNING))
    assert queries.look_up("value", [1]).values == [None]
    assert queries.key_type("value") == Types.LONG()
