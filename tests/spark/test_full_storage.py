"""Checkpoint storage that is full while a job runs on Spark: its checkpoints fail, and the job goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.damage import newest
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import Held, until
from tests.small_disk import Disk, small_disk
from tests.spark import tally

pytestmark = [pytest.mark.spark, pytest.mark.soak]

RECORDS = 4_000


@pytest.fixture
def disk() -> Iterator[Disk]:
    with small_disk() as mounted:
        yield mounted


@pytest.mark.parametrize("execution", ["epochs", "continuous"])
def test_a_job_whose_checkpoint_storage_is_full_keeps_its_last_checkpoint_and_goes_on(
    disk: Disk, tmp_path: Path, execution: str
) -> None:
    held = Held(tmp_path, RECORDS // 2, per_second=100)
    env = tally.build(RECORDS, held, tmp_path, execution=execution, parallelism=2 if execution == "epochs" else 1)
    config = env.get_checkpoint_config()
    config.set_checkpoint_storage_dir(str(disk.path / "checkpoints"))
    config.set_tolerable_checkpoint_failure_number(1_000)
    with noted_handles() as handles:
        client = env.execute_async("full storage")
    progress = client.get_progress
    try:
        until(lambda: progress().checkpoints_completed >= 2)
        disk.fill()
        before = progress()

        def has_gone_on_without_room() -> bool:
            disk.fill()  # a checkpoint that was under way leaves the room of the one before it
            now = progress()
            return now.checkpoints_failed >= before.checkpoints_failed + 2 and now.records_read > before.records_read

        until(has_gone_on_without_room)
        assert newest(disk.path / "checkpoints") is not None, "the last checkpoint is kept"
        disk.free()
        completed = progress().checkpoints_completed
        until(lambda: progress().checkpoints_completed > completed)
        held.let_go()
        client.get_job_execution_result().result(120)
    finally:
        client.cancel()
    assert progress().restarts == 0 and tally.verify(RECORDS, tmp_path) == []
    causes = [each.why or "" for each in handles[0].view.statistics.checkpoints.records()]
    assert any("No space left on device" in cause for cause in causes), causes
