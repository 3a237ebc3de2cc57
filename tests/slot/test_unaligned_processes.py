"""Unaligned checkpoints of jobs in slot processes: they complete under back-pressure, and hold what is on its way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.common import Duration, JobStatus
from ekorn.program.running.job_client import JobClient
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import until
from tests.spark import tally

pytestmark = pytest.mark.long

RECORDS = 30_000


def in_flight_bytes(path: str) -> int:
    """Return the size of the blobs on their way in a checkpoint."""
    operators = resolve(path).metadata.operators
    return sum(part.size_bytes for operator in operators for part in operator.in_flight if part is not None)


def held_up(folder: Path, *, timeout_ms: int = 0) -> JobClient:
    """Start a job that reads at once what it takes half a minute to process."""
    (folder / "slow").touch()
    env = tally.build(RECORDS, 1e9, folder, execution="continuous", held_up_by=folder / "slow")
    config = env.get_checkpoint_config().enable_unaligned_checkpoints()
    config.set_aligned_checkpoint_timeout(Duration.of_millis(timeout_ms))
    return env.execute_async()


def read_all(client: JobClient) -> Callable[[], bool]:
    return lambda: client.get_progress().records_read == RECORDS


def cancelled(client: JobClient) -> str:
    """Cancel a job; return its newest checkpoint."""
    client.cancel().result()
    until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
    path = client.get_progress().last_checkpoint_path
    assert path is not None
    return path


@pytest.mark.parametrize("timeout_ms", [0, 300])
def test_checkpoints_complete_under_back_pressure_and_lose_nothing(tmp_path: Path, timeout_ms: int) -> None:
    with on_process_engine(continuous=True):
        client = held_up(tmp_path, timeout_ms=timeout_ms)
        until(read_all(client))
        seen = client.get_progress().checkpoints_completed
        until(lambda: client.get_progress().checkpoints_completed > seen + 1)
        os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
        until(lambda: client.get_progress().restarts == 1)
        seen = client.get_progress().checkpoints_completed
        until(lambda: client.get_progress().checkpoints_completed > seen + 1)
        path = cancelled(client)
        assert in_flight_bytes(path) > 0, "the records that were read are on their way"
        (tmp_path / "slow").unlink()
        tally.build(RECORDS, 1e9, tmp_path, parallelism=3, restore=path, execution="continuous").execute()
    assert tally.verify(RECORDS, tmp_path) == []


def test_what_was_on_its_way_goes_on_in_epochs(tmp_path: Path) -> None:
    with on_process_engine(continuous=True):
        client = held_up(tmp_path)
        until(read_all(client))
        seen = client.get_progress().checkpoints_completed
        until(lambda: client.get_progress().checkpoints_completed > seen + 1)
        path = cancelled(client)
        assert in_flight_bytes(path) > 0
    (tmp_path / "slow").unlink()
    with on_process_engine():
        tally.build(RECORDS, 1e9, tmp_path, parallelism=1, restore=path).execute()
    assert tally.verify(RECORDS, tmp_path) == []


def test_a_savepoint_of_the_same_job_holds_nothing_on_its_way(tmp_path: Path) -> None:
    with on_process_engine(continuous=True):
        client = held_up(tmp_path)
        until(read_all(client))
        (tmp_path / "slow").unlink()
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        assert in_flight_bytes(path) == 0
        tally.build(RECORDS, 1e9, tmp_path, parallelism=1, restore=path, execution="continuous").execute()
    assert tally.verify(RECORDS, tmp_path) == []
