"""Regions of a job that runs continuously on Spark: the slot of one is killed, and the other does not notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark import apart, tally
from tests.spark.processes import run_driver, slot_processes

RECORDS = 3_000

DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from tests.live_jobs import Held
from tests.spark import apart

folder, records = Path(sys.argv[1]), int(sys.argv[2])
source = Held(folder, records, per_second=50)  # a minute of records, so that no region ends before the restart
client = apart.build(records, source, folder).execute_async()
while client.get_progress().checkpoints_completed < 2:
    time.sleep(0.02)
os.kill(client.get_progress().slot_pids[0], signal.SIGKILL)
while client.get_progress().restarts < 1:
    time.sleep(0.005)
found = {"at the failure": apart.given(folder, "b").times.total()}
while client.get_progress().attempt < 1:
    found["before the restart"] = apart.given(folder, "b").times.total()
    time.sleep(0.01)
source.let_go()
client.get_job_execution_result().result()
found["restarts"] = client.get_progress().restarts
print("FOUND", json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("regions")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    driver = run_driver(DRIVER, str(folder), str(RECORDS))
    try:
        output, _ = driver.communicate(timeout=150)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    answer: dict[str, Any] = json.loads(answers[0].removeprefix("FOUND "))
    return answer


def test_the_region_of_a_killed_slot_restarts_and_the_other_one_goes_on(found: dict[str, Any], folder: Path) -> None:
    assert found["restarts"] == 1
    assert apart.given(folder, "a").attempts == {0, 1}
    going_on = apart.given(folder, "b")
    assert going_on.attempts == {0}
    assert set(going_on.times.values()) == {1}, "no record was processed twice"


def test_the_other_region_processes_records_while_the_failed_one_waits(found: dict[str, Any]) -> None:
    assert found["before the restart"] > found["at the failure"]


def test_the_output_of_both_regions_is_exact(found: dict[str, Any], folder: Path) -> None:
    for name in apart.NAMES:
        assert tally.verify(RECORDS, folder / name) == []


def test_no_slot_is_left(found: dict[str, Any]) -> None:
    assert slot_processes() == []
