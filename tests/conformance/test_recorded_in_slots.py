"""Every program recorded on PyFlink gives the same in slots that run it continuously, with their own threads and links.

`test_recorded.py` runs the programs on the local engine, where subtasks take turns in a fixed order. Here they run when
their input comes: what a program gives must not depend on that.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ekorn.config.settings.job_settings import JobSettings
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.engine.execution import reason_for_epochs
from ekorn.engine.protocol import AnyEngine
from ekorn.graph.job_graph import JobGraph
from ekorn.testing.continuous_process_engine import continuous_process_engine
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.local_slots import InProcessSlots
from tests.conformance.recorded_runs import differences, like_pyflink, recording_of
from tests.recorded import outcome
from tests.recorded import program as programs


def in_slots(settings: JobSettings) -> Callable[[JobGraph], AnyEngine]:
    """Run jobs as `ekorn.execution: auto` does: continuously, except for those that need epochs."""

    def make(graph: JobGraph) -> AnyEngine:
        if reason_for_epochs(graph) is not None:
            return LocalEngine(graph)
        return continuous_process_engine(graph, pool=InProcessSlots(graph.slot_count))

    return make


def some() -> list[Any]:
    """Return the programs whose results are PyFlink's: every eighth is run in each test run, all in the soak."""
    names = like_pyflink()
    marks = [() if number % 8 == 4 else pytest.mark.soak for number in range(len(names))]
    return [pytest.param(name, marks=mark) for name, mark in zip(names, marks, strict=True)]


@pytest.mark.usefixtures("job_failures_as_what_user_code_raised")
@pytest.mark.parametrize("name", some())
def test_a_program_gives_what_pyflink_gave(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    recording, program = recording_of(name), programs.load(name, "ekorn")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(program.parallelism)
    env.set_runtime_mode(RuntimeExecutionMode[program.mode])

    def lines_since() -> list[str]:
        return capsys.readouterr().out.splitlines()

    with jobs_submitted_by(partial(submit, engine_for=in_slots)):
        found = outcome.run(program, env, lines_since)
    different = differences(recording, found, program.ordered)
    assert not different, "\n".join(different)
