"""execute, execute_async and execute_and_collect, with a handle in place of a running job."""

from types import SimpleNamespace

import pytest

from ekorn.common import JobStatus
from ekorn.common.accumulators import IntCounter
from ekorn.common.job_execution_result import JobExecutionResult
from ekorn.datastream import CloseableIterator, StreamExecutionEnvironment
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.submit import jobs_submitted_by
from ekorn.errors import InvalidProgramError, JobCancelledError, JobExecutionError
from ekorn.graph.specs import CollectSpec, PrintSpec
from ekorn.operators.sinks.collected_run import collected_runs


def started(settings, records=(), error=None, endless=False):
    """Return the handle of a job that emits some records and then ends, fails, or runs until it is cancelled."""
    handle = JobHandle(settings.job_id, settings.job_name)
    handle.view.update(JobProgress(status=JobStatus.RUNNING))
    handle.results.set_accumulators({"n": IntCounter(2)})
    for run in collected_runs(list(records)):
        handle.results.collected.put(run)
    if endless:
        handle.requests.wake_with(
            on_cancel=lambda: handle.end(JobStatus.CANCELED, None, JobCancelledError(settings.job_name)),
            on_request=lambda: None,
        )
    elif error is not None:
        handle.end(JobStatus.FAILED, None, error)
    else:
        handle.end(JobStatus.FINISHED, JobExecutionResult(settings.job_id, 5, {"n": 3}), None)
    return handle


@pytest.fixture
def submitted():
    """The jobs submitted so far. `next_job` holds the outcome of the next job."""
    log = SimpleNamespace(jobs=[], next_job={})

    def submit(graph, settings):
        if "raises" in log.next_job:
            raise log.next_job["raises"]
        handle = started(settings, **log.next_job)
        log.jobs.append((graph, settings, handle))
        return handle

    with jobs_submitted_by(submit):
        yield log


@pytest.fixture
def env():
    return StreamExecutionEnvironment()


def test_execute_waits_for_the_result(env, submitted):
    env.from_collection([1]).print()
    result = env.execute("counting")
    assert result.get_accumulator_result("n") == 3
    ((graph, settings, _),) = submitted.jobs
    assert graph.name == settings.job_name == "counting"
    assert not any(isinstance(o.spec, CollectSpec) for vertex in graph.vertices for o in vertex.operators)
    assert result.get_job_id() == settings.job_id


def test_execute_raises_what_made_the_job_fail(env, submitted):
    env.from_collection([1]).print()
    submitted.next_job = {"error": JobExecutionError("job", "boom")}
    with pytest.raises(JobExecutionError, match="boom"):
        env.execute()


def test_a_job_takes_its_operators_with_it(env, submitted):
    stream = env.from_collection([1]).map(str)
    stream.print()
    env.execute("first")
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        env.execute()
    stream.filter(bool).print()
    env.execute("second")
    names = [graph.vertices[0].name for graph, _, _ in submitted.jobs]
    assert names[1] == "Source: Collection Source -> Map -> Filter -> Sink: Print to Std. Out"


def test_a_job_that_cannot_start_can_be_tried_again(env, submitted):
    env.from_collection([1]).print()
    submitted.next_job = {"raises": OSError("no Java")}
    with pytest.raises(OSError, match="no Java"):
        env.execute()
    submitted.next_job = {}
    env.execute()
    assert len(submitted.jobs) == 1


def test_close_forgets_what_was_drawn(env, submitted):
    env.from_collection([1]).print()
    env.close()
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        env.execute()


def test_the_client_of_a_running_job(env, submitted):
    env.from_collection([1]).print()
    submitted.next_job = {"endless": True}
    client = env.execute_async("endless")
    ((_, settings, handle),) = submitted.jobs
    assert client.get_job_id() == settings.job_id
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"n": 2}
    result = client.get_job_execution_result()
    assert not result.done()
    assert client.cancel().result(60) is None
    assert handle.requests.cancel_requested
    with pytest.raises(JobCancelledError):
        result.result(60)


def test_the_client_of_a_job_that_ends(env, submitted):
    env.from_collection([1]).print()
    client = env.execute_async()
    assert client.get_job_execution_result().result(60).get_all_accumulator_results() == {"n": 3}


def test_collected_records_come_as_an_iterator(env, submitted):
    submitted.next_job = {"records": [1, 2, 3]}
    found = env.from_collection([1]).map(str).execute_and_collect("collecting")
    assert isinstance(found, CloseableIterator)
    assert found.next() == 1
    assert list(found) == [2, 3]
    with pytest.raises(StopIteration):
        found.next()
    ((graph, settings, handle),) = submitted.jobs
    assert settings.job_name == "collecting"
    assert isinstance(graph.vertices[0].operators[-1].spec, CollectSpec)
    assert not handle.requests.cancel_requested


def test_leaving_the_iterator_stops_the_job(env, submitted):
    submitted.next_job = {"records": iter(range(1000)), "endless": True}
    with env.from_collection([1]).execute_and_collect() as found:
        assert next(found) == 0
    assert submitted.jobs[0][2].requests.cancel_requested
    assert list(found) == []
    found.close()


def test_a_limit_gives_a_list_and_stops_the_job(env, submitted):
    submitted.next_job = {"records": iter(range(1000)), "endless": True}
    assert env.from_collection([1]).execute_and_collect(limit=3) == [0, 1, 2]
    assert submitted.jobs[0][2].requests.cancel_requested


def test_a_limit_above_what_there_is(env, submitted):
    submitted.next_job = {"records": [1]}
    assert env.from_collection([1]).execute_and_collect(limit=3) == [1]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_limit_is_a_positive_number(env, submitted, limit):
    with pytest.raises(ValueError, match="limit"):
        env.from_collection([1]).execute_and_collect(limit=limit)
    assert submitted.jobs == []


def test_the_failure_of_a_collecting_job_comes_after_its_records(env, submitted):
    submitted.next_job = {"records": [1], "error": JobExecutionError("job", "boom")}
    found = env.from_collection([1]).execute_and_collect()
    assert next(found) == 1
    with pytest.raises(JobExecutionError, match="boom"):
        next(found)


def test_collecting_runs_what_else_was_drawn(env, submitted):
    source = env.from_collection([1])
    source.print()
    source.execute_and_collect(limit=1)
    specs = [type(o.spec) for v in submitted.jobs[0][0].vertices for o in v.operators]
    assert PrintSpec in specs
    assert CollectSpec in specs


def test_a_collecting_job_that_cannot_start_leaves_nothing_behind(env, submitted):
    stream = env.from_collection([1]).map(str)
    submitted.next_job = {"raises": OSError("no Java")}
    with pytest.raises(OSError, match="no Java"):
        stream.execute_and_collect()
    submitted.next_job = {}
    stream.print()
    env.execute()
    specs = [type(o.spec) for v in submitted.jobs[0][0].vertices for o in v.operators]
    assert CollectSpec not in specs
