"""Runs programs that were recorded on PyFlink on an embedded Spark; prints a line of JSON for each that differs.

    python -m tests.spark.recorded_programs continuous|epochs NAME ...

The first line counts the jobs of each engine, so that nobody takes one engine for the other.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO

from ekorn.config.settings.job_settings import JobSettings
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.driver.submit import jobs_submitted_by, spark_engine, submit
from ekorn.engine.execution import reason_for_epochs
from ekorn.engine.protocol import AnyEngine
from ekorn.graph.job_graph import JobGraph
from tests.conformance.recorded_runs import differences, failure_of_user_code, recording_of
from tests.recorded import outcome
from tests.recorded import program as programs

ENGINES: Counter[str] = Counter()


def main(execution: str, names: list[str]) -> None:
    outcome._failure = failure_of_user_code
    with jobs_submitted_by(partial(submit, engine_for=continuously if execution == "continuous" else in_epochs)):
        found = {name: differences_of(name) for name in names}
    print("ENGINES", json.dumps(ENGINES), flush=True)
    for name, different in found.items():
        if different:
            print("DIFFERENT", json.dumps([name, *different]), flush=True)


def differences_of(name: str) -> list[str]:
    """Run a program; return how its outcome differs from PyFlink's, in words."""
    program, printed = programs.load(name, "ekorn"), StringIO()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(program.parallelism)
    env.set_runtime_mode(RuntimeExecutionMode[program.mode])

    def lines_since() -> list[str]:
        lines = printed.getvalue().splitlines()
        printed.seek(0)
        printed.truncate()
        return lines

    with redirect_stdout(printed):
        found = outcome.run(program, env, lines_since)
    return differences(recording_of(name), found, program.ordered)


def continuously(settings: JobSettings) -> Callable[[JobGraph], AnyEngine]:
    """Run jobs as `ekorn.execution: auto` does, but never in epochs because of the session."""

    def make(graph: JobGraph) -> AnyEngine:
        chosen = replace(settings, execution="continuous" if reason_for_epochs(graph) is None else "auto")
        return counted(spark_engine(chosen)(graph))

    return make


def in_epochs(settings: JobSettings) -> Callable[[JobGraph], AnyEngine]:
    """Run jobs in epochs."""

    def make(graph: JobGraph) -> AnyEngine:
        return counted(spark_engine(replace(settings, execution="epochs"))(graph))

    return make


def counted(engine: AnyEngine) -> AnyEngine:
    ENGINES[type(engine).__name__] += 1
    return engine


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
