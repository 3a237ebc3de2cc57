"""Fixtures of the tests that let jobs fail."""

import logging

import pytest

from tamias.operators import async_wait


@pytest.fixture
def silent_restarts(caplog):
    caplog.set_level(logging.CRITICAL, logger="tamias")


@pytest.fixture
def epochs_leave_requests_in_flight(monkeypatch):
    monkeypatch.setattr(async_wait, "_LINGER_S", 0.0)
