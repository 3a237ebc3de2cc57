"""The handles of jobs that tests start."""

from contextlib import contextmanager

from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.testing.local_engine import LocalEngine


def start_locally(env, name="job"):
    """Start the environment's job on the local engine and return its handle."""
    return submit(env.job_graph(name), env.job_settings(name), lambda settings: LocalEngine)


@contextmanager
def noted_handles():
    """List the handles of the jobs that are submitted inside the block, on the engine that was chosen before."""
    handles = []

    def note(graph, settings):
        handles.append(before(graph, settings))
        return handles[-1]

    with jobs_submitted_by(note) as before:
        yield handles
