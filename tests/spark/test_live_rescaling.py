"""Jobs on Spark are rescaled while they run, in epochs and continuously."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark import tally
from tests.spark.processes import run_driver

RECORDS = 6_000
TASKS_OF_A_SLOT = 2  # one takes the output of the source, one brings the input of the sum

DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from pyspark import SparkContext
from ekorn.errors import RescaleError
from tests.live_jobs import Held
from tests.spark import tally

folder, records, executions, killed = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4]


def wait_for(client, count):
    while client.get_progress().records_read < count:
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()  # raises why
            raise SystemExit("the job has ended too soon")
        time.sleep(0.02)


def tasks_of_workers():
    # The number of tasks of each Spark job that started Python workers.
    jobs = SparkContext.getOrCreate()._jsc.sc().statusStore().jobsList(None)
    listed = [jobs.apply(number) for number in range(jobs.size())]
    return [job.numTasks() for job in listed if "workers for a rescale" in str(job.description())]


for execution in executions:
    held = Held(folder / execution, records - 1, per_second=200)
    client = tally.build(records, held, folder / execution, execution=execution, parallelism=1).execute_async()
    job_id, found = client.get_job_id(), {}
    wait_for(client, 200)
    first = client.get_progress().slot_pids
    if killed:
        os.environ["EKORN_FAULT"] = killed  # of slots that start from now on
    try:
        found["up"] = client.rescale(3).result()
    except RescaleError as error:
        found["refused"] = str(error)
    os.environ.pop("EKORN_FAULT", None)
    found["slots"] = len(client.get_progress().slot_pids)
    found["first stays"] = client.get_progress().slot_pids[:1] == first
    try:
        client.rescale(10_000).result()
    except RescaleError as error:
        found["too many"] = str(error)
    wait_for(client, client.get_progress().records_read + 200)
    found["down"] = client.rescale(2).result()
    held.let_go()
    found["same job"] = client.get_job_id() == job_id
    client.get_job_execution_result().result()
    found["restarts"] = client.get_progress().restarts
    found["workers"] = tasks_of_workers()
    print("FOUND " + json.dumps({execution: found}))
"""


def driven(folder: Path, executions: str, killed: str = "") -> dict[str, dict[str, object]]:
    driver = run_driver(DRIVER, str(folder), str(RECORDS), executions, killed)
    try:
        said, _ = driver.communicate(timeout=150)
    finally:
        driver.kill()
    assert driver.returncode == 0, said[-4000:]
    found: dict[str, dict[str, object]] = {}
    for line in said.splitlines():
        if line.startswith("FOUND "):
            found |= json.loads(line[6:])
    return found


@pytest.mark.parametrize("execution", ["epochs", pytest.param("continuous", marks=pytest.mark.soak)])
def test_job_goes_on_at_other_parallelisms_and_loses_nothing(tmp_path: Path, execution: str) -> None:
    found = driven(tmp_path, execution)[execution]
    assert "chk-" in str(found["up"])
    assert "chk-" in str(found["down"])
    assert (found["slots"], found["first stays"]) == (3, True)
    assert "above its max parallelism" in str(found["too many"])
    assert (found["same job"], found["restarts"]) == (True, 0)
    assert tally.verify(RECORDS, tmp_path / execution) == []
    if execution == "continuous":  # before the switch, for the tasks of two more subtasks of each level
        workers = found["workers"]
        assert isinstance(workers, list) and set(workers) == {2 * TASKS_OF_A_SLOT}, "the switch would wait for them"


@pytest.mark.soak
@pytest.mark.parametrize("execution", ["epochs", "continuous"])
def test_slot_that_is_killed_during_the_switch_costs_no_record(tmp_path: Path, execution: str) -> None:
    """A slot that was started for the new parallelism dies when it restores its state: the job goes back."""
    found = driven(tmp_path, execution, "restore:1:1:kill")
    assert "it was rolled back" in str(found[execution]["refused"])
    assert "chk-" in str(found[execution]["down"])
    assert tally.verify(RECORDS, tmp_path / execution) == []
