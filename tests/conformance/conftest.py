"""Fixtures of the tests that let jobs fail."""

import logging

import pytest

from tests.conformance.recorded_runs import failure_of_user_code
from tests.recorded import outcome


@pytest.fixture
def silent_restarts(caplog):
    caplog.set_level(logging.CRITICAL, logger="ekorn")


@pytest.fixture
def job_failures_as_what_user_code_raised(monkeypatch):
    monkeypatch.setattr(outcome, "_failure", failure_of_user_code)
