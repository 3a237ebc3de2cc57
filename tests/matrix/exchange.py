"""Half a job: run until a savepoint, or from savepoints to the end, each in a job of its own on one Spark session.

python -m tests.matrix.exchange write FOLDER BACKEND
python -m tests.matrix.exchange restore FOLDER BACKEND [FOLDER BACKEND ...]
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from tests.spark import tally

RECORDS = 6_000
# Longer than an epoch on a busy machine: below that, epochs shrink to a record each (`pacing.py`), and the job
# takes minutes.
INTERVAL_MS = 2_000
RESTORED = "RESTORED"  # printed with the folder of every savepoint whose job ended with the right output


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


def restore(folder: Path, backend: str) -> list[str]:
    """Run the job from the savepoint to its end, at another parallelism; return what is wrong with its output.

    Afterwards the folder is as it was, and other versions restore the same savepoint. The sink's state names its part
    files by absolute path, so every restore must find them in the same place.
    """
    kept = folder.with_name(f"{folder.name}-kept")
    shutil.copytree(folder, kept)
    savepoint = str(folder / "savepoint")
    try:
        tally.build(
            RECORDS, 50_000.0, folder, backend=backend, parallelism=3, interval_ms=INTERVAL_MS, restore=savepoint
        ).execute("goes on")
        return tally.verify(RECORDS, folder)
    finally:
        shutil.rmtree(folder)
        kept.rename(folder)


def restore_all(savepoints: list[tuple[str, str]]) -> int:
    """Restore every savepoint and say which succeeded; return 1 if one did not."""
    failed = 0
    for folder, backend in savepoints:
        try:
            wrong = restore(Path(folder), backend)
        except Exception as error:  # the other savepoints are tried too
            wrong = [f"{type(error).__name__}: {error}"]
        failed += bool(wrong)
        print("\n".join([f"FAILED {folder}", *wrong]) if wrong else f"{RESTORED} {folder}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    _, step, *given = sys.argv
    pairs = list(zip(given[::2], given[1::2], strict=True))
    if step == "restore":
        sys.exit(restore_all(pairs))
    for place, state_backend in pairs:
        write(Path(place), state_backend)
