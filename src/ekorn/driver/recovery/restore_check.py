"""Checks, without running anything, that a job can start from a savepoint, before a new program takes over a job."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from ekorn.clock import SystemClock
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.checkpoints.job_directory import open_directory
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.graph.job_graph import JobGraph

__all__ = ["check_restore"]


def check_restore(graph: JobGraph, settings: JobSettings) -> NoReturn:
    """Check that the state that a job is to start from fits its graph; end the program if it does.

    The checkpoint directory of the job, which another driver may own now, is not touched.

    Raises:
        SystemExit: The state fits.
        RestoreError: It does not.
    """
    apart = replace(settings, checkpoints=replace(settings.checkpoints, interval_ms=None), claim_mode="NO_CLAIM")
    directory = open_directory(apart, SystemClock().now_ms())
    try:
        JobRecovery(apart, directory).prepare(graph)
    finally:
        directory.release()
    raise SystemExit(0)
