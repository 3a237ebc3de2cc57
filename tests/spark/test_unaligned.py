"""Unaligned checkpoints on Spark: they complete under back-pressure, and nothing is lost or doubled after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark import tally
from tests.spark.processes import run_driver, slot_processes

RECORDS = 30_000

DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from ekorn.checkpoint.restore_point import resolve
from ekorn.common import JobStatus
from tests.live_jobs import until
from tests.spark import tally

folder, records = Path(sys.argv[1]), int(sys.argv[2])
(folder / "slow").touch()


def start():
    # Every record takes a millisecond, and all of them are read at once: an aligned mark takes half a minute to pass.
    env = tally.build(records, 1e9, folder, execution="continuous", held_up_by=folder / "slow", interval_ms=500)
    env.get_checkpoint_config().enable_unaligned_checkpoints()
    return env.execute_async()


def two_more_checkpoints(client):
    seen = client.get_progress().checkpoints_completed
    until(lambda: client.get_progress().checkpoints_completed > seen + 1)


client = start()
until(lambda: client.get_progress().records_read == records)
two_more_checkpoints(client)
os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
until(lambda: client.get_progress().restarts == 1)
two_more_checkpoints(client)
client.cancel().result()
until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
path = client.get_progress().last_checkpoint_path
operators = resolve(path).metadata.operators
in_flight = sum(part.size_bytes for operator in operators for part in operator.in_flight if part is not None)
written = sum(len(part.read_text().splitlines()) for part in (folder / "out").rglob("part-*"))
(folder / "slow").unlink()
tally.build(records, 1e9, folder, parallelism=3, restore=path, execution="continuous").execute()
print("FOUND", json.dumps({"in flight": in_flight, "written": written}), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unaligned")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, int]:
    driver = run_driver(DRIVER, str(folder), str(RECORDS))
    try:
        output, _ = driver.communicate(timeout=200)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    answer: dict[str, int] = json.loads(answers[0].removeprefix("FOUND "))
    return answer


def test_checkpoints_complete_though_their_records_are_not_processed(found: dict[str, int]) -> None:
    assert found["in flight"] > 0
    assert found["written"] < RECORDS


def test_nothing_is_lost_or_doubled_after_a_kill_and_at_another_parallelism(
    found: dict[str, int], folder: Path
) -> None:
    assert tally.verify(RECORDS, folder) == []
    assert slot_processes() == []
