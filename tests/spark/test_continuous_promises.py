"""What a continuous job promises, on Spark: the jobs of `continuous_jobs.py`, one after another in one session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.spark import continuous_jobs
from tests.spark.continuous_jobs import QUICK, SLOW
from tests.spark.processes import run_driver, slot_processes

pytestmark = pytest.mark.soak  # minutes: CI has half an hour for everything, and twins of these tests without Spark

DRIVER = """
import json, sys, tempfile
from functools import partial
from pathlib import Path
from ekorn.datastream import CheckpointingMode
from tests.spark import continuous_jobs as jobs

runs = {
    "service": jobs.slow_service,
    "group": jobs.alignment_group,
    "state": jobs.operator_state,
    "finished": jobs.finished_source,
    "exactly once": partial(jobs.ahead, mode=CheckpointingMode.EXACTLY_ONCE),
    "at least once": partial(jobs.ahead, mode=CheckpointingMode.AT_LEAST_ONCE),
    "clocks": jobs.clocks,
    "several": jobs.several_checkpoints,
}
found = {}
for name, run in runs.items():
    folder = Path(sys.argv[1], name.replace(" ", "-"))
    folder.mkdir()
    found[name] = run(folder)
    print("DONE", name, found[name], flush=True)
print("FOUND", json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    driver = run_driver(DRIVER, str(tmp_path_factory.mktemp("promises")))
    try:
        output, _ = driver.communicate(timeout=600)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    answer: dict[str, Any] = json.loads(answers[0].removeprefix("FOUND "))
    return answer


def test_a_slow_service_delays_no_other_pipeline_of_its_slot(found: dict[str, Any]) -> None:
    assert found["service"] == {"asked while held": 2, "asked": 20}


def test_a_source_too_far_ahead_of_its_group_waits_and_reads_on(found: dict[str, Any]) -> None:
    assert found["group"]["went on"]


def test_operator_state_is_restored_at_another_parallelism(found: dict[str, Any]) -> None:
    continuous_jobs.verify_operator_state(found["state"])


def test_a_finished_source_is_not_read_again_and_listeners_hear_of_checkpoints(found: dict[str, Any]) -> None:
    continuous_jobs.verify_finished_source(found["finished"])


def test_what_is_ahead_waits_on_disk_beyond_the_bound_and_every_subtask_says_how_long(found: dict[str, Any]) -> None:
    once = found["exactly once"]
    assert once["counted"] == QUICK + SLOW
    assert once["restarts"] >= 1
    for figure in ("held", "aligned ms"):
        assert len(once[figure]) == 2 and min(once[figure]) > 0, once


def test_at_least_once_counts_what_was_ahead_twice_after_a_failure(found: dict[str, Any]) -> None:
    assert found["at least once"]["restarts"] >= 1
    assert found["at least once"]["counted"] > QUICK + SLOW


def test_timers_and_periodic_watermarks_do_not_wait_for_the_end_of_an_epoch(found: dict[str, Any]) -> None:
    clocks = found["clocks"]
    assert clocks["fired"] == ["event", "processing"]
    assert clocks["emitted"] > 2 * clocks["epochs"], "every 20 ms, between marks every 200 ms"


def test_a_slot_that_is_killed_while_two_checkpoints_are_on_their_way_costs_no_record(found: dict[str, Any]) -> None:
    assert found["several"]["wrong"] == []
    assert found["several"]["restarts"] >= 1


def test_no_slot_is_left(found: dict[str, Any]) -> None:
    assert slot_processes() == []
