"""A job on Spark is stopped with a savepoint under load, and restored from the moved savepoint.

The second run has another state backend and another parallelism.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.live_jobs import Held
from tests.spark import tally

RECORDS = 6_000


@pytest.mark.parametrize(("first", "then"), [(("rocksdb", 2), ("hashmap", 3)), (("hashmap", 3), ("rocksdb", 1))])
def test_a_job_goes_on_from_the_savepoint_it_was_stopped_with(first, then, tmp_path: Path) -> None:
    held = Held(tmp_path, RECORDS // 2, per_second=2_000)  # it does not end before it is stopped
    env = tally.build(RECORDS, held, tmp_path, backend=first[0], parallelism=first[1])
    client = env.execute_async("until stopped")
    while client.get_progress().records_read < RECORDS // 4:
        time.sleep(0.05)  # the job reads at its own pace
    made = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    client.get_job_execution_result().result()
    moved = tmp_path / "elsewhere"
    shutil.move(made, moved)
    shutil.rmtree(tmp_path / "checkpoints")
    env = tally.build(RECORDS, 20_000.0, tmp_path, restore=str(moved), backend=then[0], parallelism=then[1])
    env.execute("goes on")
    assert tally.verify(RECORDS, tmp_path) == []
