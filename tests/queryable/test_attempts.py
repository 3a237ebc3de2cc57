"""A query belongs to the attempt by whose graph its keys were assigned: any other one refuses it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.clock import ManualClock, SteadyClock
from ekorn.common import JobStatus, Types
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.job import Job
from ekorn.driver.queries.query_routing import StateQueries
from ekorn.errors import StateNotServed
from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.state_query import QueryableState, StateQuery
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.local_slots import InProcessSlots
from ekorn.testing.process_engine import process_engine
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
    mine = StateQuery(subtask, RUNNING_ATTEMPT, "value", [1, 2], timeout_s=30.0)
    assert engine.look_up(mine).result(30) == [None, None]
    for other in (RUNNING_ATTEMPT - 1, RUNNING_ATTEMPT + 1):
        with pytest.raises(StateNotServed, match="restarts"):
            engine.look_up(StateQuery(subtask, other, "value", [1, 2], timeout_s=30.0)).result(30)


def test_a_slot_refuses_the_query_of_a_subtask_that_it_does_not_have(deployed):
    engine, _ = deployed
    (state,) = [state for state in engine.queryable_states() if state.name == "value"]
    unknown = StateQuery(SubtaskId(state.vertex, 0), RUNNING_ATTEMPT, "no name", [1], timeout_s=30.0)
    with pytest.raises(StateNotServed, match="subtask 0 has no such state"):
        engine.look_up(unknown).result(30)


def test_a_query_that_waits_too_long_for_user_code_is_refused(deployed):
    engine, _ = deployed
    (state,) = [state for state in engine.queryable_states() if state.name == "value"]
    with engine.hosts[0].user_code, pytest.raises(StateNotServed, match="without a pause"):
        engine.look_up(StateQuery(SubtaskId(state.vertex, 0), RUNNING_ATTEMPT, "value", [1], timeout_s=0.01)).result(30)


@pytest.mark.parametrize("status", [each for each in JobStatus if each is not JobStatus.RUNNING])
def test_a_job_that_does_not_run_is_not_asked(deployed, status):
    engine, job = deployed
    no_checkpoints: Any = SimpleNamespace(newest=None)
    queries = StateQueries(job, engine, no_checkpoints, no_checkpoints)
    progress = replace(job.view.progress(), attempt=RUNNING_ATTEMPT)
    job.view.update(replace(progress, status=status))
    for question in (lambda: queries.look_up("value", [1]), lambda: queries.key_type("value")):
        with pytest.raises(StateNotServed, match=status.name):
            question()
    job.view.update(replace(progress, status=JobStatus.RUNNING))
    assert queries.look_up("value", [1]).values == [None]
    assert queries.key_type("value") == Types.LONG()


def test_a_checkpoint_that_is_older_than_the_operator_of_a_state_has_no_values_of_it(deployed):
    """An earlier driver of the job took it, before the program was changed."""
    engine, job = deployed
    older: Any = SimpleNamespace(newest=CheckpointMetadata(7, str(job.view.job_id), job.name, 0, ()))
    queries = StateQueries(job, engine, older, older)
    job.view.update(replace(job.view.progress(), attempt=RUNNING_ATTEMPT, status=JobStatus.RUNNING))
    with pytest.raises(StateNotServed, match="checkpoint 7 is older than its operator"):
        queries.look_up("value", [1], "checkpoint")


def test_a_query_of_a_graph_that_was_rescaled_meanwhile_is_refused_and_may_be_asked_again(deployed):
    """The job has another graph than the engine's states name, or the engine than the query was made for."""
    engine, job = deployed
    (state,) = [state for state in engine.queryable_states() if state.name == "value"]
    job.view.update(replace(job.view.progress(), attempt=RUNNING_ATTEMPT, status=JobStatus.RUNNING))
    for moved in (state.vertex + 9, 0):  # gone, or the number of another vertex
        named = QueryableState(state.name, moved, state.operator, state.operator_id, state.kind)
        stale: Any = SimpleNamespace(queryable_states=lambda found=named: (found,))
        queries = StateQueries(job, stale, stale, stale)
        for question in (
            lambda asked=queries: asked.look_up("value", [1]),
            lambda asked=queries: asked.key_type("value"),
        ):
            with pytest.raises(StateNotServed, match="is being rescaled; try again"):
                question()


@pytest.mark.parametrize("of_processes", [False, True])
def test_an_engine_that_has_fewer_subtasks_than_a_query_was_made_for_refuses_it(of_processes):
    env = environment(2)
    numbers(env).key_by(lambda n: n % 5, Types.LONG()).process(EveryKind())
    graph, settings = drawn_job(env)
    engine: Any = process_engine(graph, InProcessSlots(2)) if of_processes else LocalEngine(graph)
    try:
        assert engine.deploy(Deployment(str(settings.job_id), graph, RUNNING_ATTEMPT)) is None
        for asked in (SubtaskId(9, 0), SubtaskId(graph.vertices[-1].id, 2)):
            with pytest.raises(StateNotServed, match="is being rescaled; try again"):
                engine.look_up(StateQuery(asked, RUNNING_ATTEMPT, "value", [1], timeout_s=30.0)).result(30)
    finally:
        engine.shutdown()


def test_a_slot_that_lost_a_queryable_subtask_in_a_rescale_has_no_state_of_it():
    """The vertex of the state has another number at another parallelism, because operators are chained otherwise."""
    drawn = []
    for parallelism in (3, 1):
        env = environment(parallelism)
        source = numbers(env).set_parallelism(3).map(lambda n: n, Types.LONG()).uid("same")
        source.key_by(lambda n: n % 5, Types.LONG()).process(EveryKind()).uid("states")
        drawn.append(drawn_job(env)[0])
    engine = process_engine(drawn[0], InProcessSlots(3))
    try:
        for attempt, graph in enumerate(drawn):
            assert graph.slot_count == 3
            assert engine.deploy(Deployment("0" * 32, graph, attempt)) is None
            named = [state.vertex for state in engine.queryable_states() if state.name == "value"]
            assert named == [graph.vertices[-1].id]
    finally:
        engine.shutdown()
