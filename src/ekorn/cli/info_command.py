"""`ekorn info`: prints the plan of a program's first job as JSON, and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ekorn.cli.run_command import run_program
from ekorn.config.configuration import Configuration
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.submit import jobs_submitted_by
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.plan import execution_plan

__all__ = ["show_plan"]


def show_plan(script: str, arguments: Sequence[str], configuration: Configuration) -> int:
    """Run a program up to the start of its first job, and print the plan of the job.

    Args:
        script: The program.
        arguments: Its arguments.
        configuration: What its environments start from.
    """

    def show(graph: JobGraph, settings: JobSettings) -> NoReturn:
        print(execution_plan(graph))
        raise SystemExit(0)

    with jobs_submitted_by(show):
        return run_program(script, arguments, configuration)
