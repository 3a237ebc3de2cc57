"""Jobs that run continuously in slot processes: operator state after rescaling, finished subtasks, listeners."""

from __future__ import annotations

from pathlib import Path

import pytest

from ekorn.testing.process_engine import on_process_engine
from tests.spark import continuous_jobs

pytestmark = pytest.mark.long


def test_operator_state_is_restored_at_another_parallelism(tmp_path: Path) -> None:
    with on_process_engine(continuous=True):
        found = continuous_jobs.operator_state(tmp_path)
    continuous_jobs.verify_operator_state(found)


def test_a_finished_source_is_not_read_again_and_listeners_hear_of_checkpoints(tmp_path: Path) -> None:
    with on_process_engine(continuous=True):
        found = continuous_jobs.finished_source(tmp_path)
    continuous_jobs.verify_finished_source(found)
