"""Half a job: run until a savepoint, or from a savepoint to the end.

python -m tests.matrix.exchange write FOLDER BACKEND
python -m tests.matrix.exchange restore FOLDER BACKEND
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from tests.spark import tally

RECORDS = 6_000
# Longer than an epoch on a busy machine: below that, epochs shrink to a record each (driver/pacing.py), and the job
# takes minutes.
INTERVAL_MS = 2_000


def write(folder: Path, backend: str) -> None:
    """Run the job on Spark and stop it with a savepoint, `folder/savepoint`, when a part of the records was read."""
    client = tally.build(
        RECORDS, 2_000.0, folder, backend=backend, parallelism=2, interval_ms=INTERVAL_MS
    ).execute_async("until stopped")
    while client.get_progress().records_read < RECORDS // 4:
        time.sleep(0.05)  # the job reads at its own pace
    savepoint = client.stop_with_savepoint(False, str(folder / "savepoints")).result()
    client.get_job_execution_result().result()
    shutil.move(savepoint, folder / "savepoint")


def restore(folder: Path, backend: str) -> None:
    """Run the job from the savepoint to its end, at another parallelism, and check every line it has written."""
    savepoint = str(folder / "savepoint")
    tally.build(
        RECORDS, 50_000.0, folder, backend=backend, parallelism=3, interval_ms=INTERVAL_MS, restore=savepoint
    ).execute("goes on")
    wrong = tally.verify(RECORDS, folder)
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    _, step, where, state_backend = sys.argv
    {"write": write, "restore": restore}[step](Path(where), state_backend)
