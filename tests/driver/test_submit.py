"""How a job is submitted: what its settings become, and who starts it."""

from dataclasses import replace

import pytest

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.submit import heartbeat_of, jobs_submitted_by, submit_from_program
from ekorn.testing.drawn_job import drawn_job


def drawn():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    return drawn_job(env)


def test_slots_are_watched_in_seconds():
    settings = replace(
        drawn().settings, heartbeat_interval_ms=1_500, heartbeat_timeout_ms=4_000, epoch_stall_timeout_ms=60_500
    )
    watched = heartbeat_of(settings)
    assert (watched.interval_s, watched.timeout_s, watched.stall_timeout_s) == (1.5, 4.0, 60.5)


def test_the_innermost_block_starts_the_jobs_of_a_program():
    job, started = drawn(), []

    def starter(name):
        def start(graph, settings):
            started.append(name)
            return JobHandle(settings.job_id, settings.job_name)

        return start

    outer = starter("outer")
    with jobs_submitted_by(outer):
        with pytest.raises(RuntimeError), jobs_submitted_by(starter("inner")) as before:
            assert before is outer
            submit_from_program(*job)
            raise RuntimeError
        submit_from_program(*job)
    assert started == ["inner", "outer"]
