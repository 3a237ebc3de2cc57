"""Regions of jobs that run continuously in slot processes: what fails restarts, and the rest goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ekorn.common import JobStatus
from ekorn.datastream.functions import MapFunction
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import until
from tests.slot.summing_job import environment
from tests.spark import apart, tally

pytestmark = pytest.mark.long

RECORDS = 3_000


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_the_region_of_a_lost_slot_restarts_and_the_other_one_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    env = apart.build(RECORDS, 900, tmp_path)
    with on_process_engine(continuous=True):
        client = env.execute_async()
        until(lambda: client.get_progress().checkpoints_completed > 1)
        os.kill(client.get_progress().slot_pids[1], how)
        until(lambda: client.get_progress().restarts == 1)
        at_failure = apart.given(tmp_path, "b").times.total()
        until(lambda: apart.given(tmp_path, "b").times.total() > at_failure + 100)
        assert client.get_progress().status is JobStatus.RESTARTING, "the other region has not waited"
        client.get_job_execution_result().result()
    assert client.get_progress().restarts == 1
    assert apart.given(tmp_path, "a").attempts == {0, 1}
    going_on = apart.given(tmp_path, "b")
    assert going_on.attempts == {0} and set(going_on.times.values()) == {1}
    for name in apart.NAMES:
        assert tally.verify(RECORDS, tmp_path / name) == []


class FailsOnce(MapFunction):
    """Fails at a record, if the file of the failure does not exist yet."""

    def __init__(self, at: int, failed: Path) -> None:
        self.at, self.failed = at, failed

    def map(self, value):
        if value == self.at and not self.failed.exists():
            self.failed.touch()
            raise ValueError(f"no {value}")
        return value


def test_an_error_of_a_pipeline_leaves_the_pipeline_in_the_same_slots_alone(tmp_path: Path) -> None:
    env = environment()
    env.enable_checkpointing(10_000)
    env.from_sequence(0, 99).map(FailsOnce(50, tmp_path / "failed")).key_by(lambda n: n % 3).map(lambda n: n).print("a")
    others = env.from_sequence(0, 19_999).key_by(lambda n: n % 3).map(apart_of(tmp_path / "opened"))
    with on_process_engine(continuous=True), others.execute_and_collect() as records:
        assert sorted(records) == list(range(20_000))
    assert (tmp_path / "failed").exists()
    assert len((tmp_path / "opened").read_text()) == 2, "each subtask was opened once"


def apart_of(opened: Path) -> MapFunction:
    class Opened(MapFunction):
        def open(self, runtime_context):
            with opened.open("a") as file:
                file.write(".")

        def map(self, value):
            return value

    return Opened()
