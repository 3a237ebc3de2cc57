"""Fixtures of the tests that let jobs fail."""

import logging

import pytest


@pytest.fixture
def silent_restarts(caplog):
    caplog.set_level(logging.CRITICAL, logger="tamias")
