"""Fixtures of the tests that let jobs fail."""

import logging

import pytest

from tamias.errors import JobExecutionError
from tests.recorded import outcome


@pytest.fixture
def silent_restarts(caplog):
    caplog.set_level(logging.CRITICAL, logger="tamias")


@pytest.fixture
def job_failures_as_what_user_code_raised(monkeypatch):
    plain = outcome._failure

    def failure(phase, problem):
        found = plain(phase, problem)
        if isinstance(problem, JobExecutionError):
            found["error"] = problem.message.partition(":")[0].rpartition(".")[2]
        return found

    monkeypatch.setattr(outcome, "_failure", failure)
