"""Queries of jobs on Spark: during `kill -9` of a slot and after rescaling, answered right or refused."""

from __future__ import annotations

import json

import pytest

from tests.spark.processes import run_driver

DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from ekorn.queryable import QueryableStateClient
from tests.live_jobs import until
from tests.queryable.asked_jobs import Asking, build

folder, execution = Path(sys.argv[1]), sys.argv[2]


def start(client):
    at = client.get_queryable_state_address()
    asked = QueryableStateClient(at.host, at.port, at.token)
    asking = Asking(asked, client.get_job_id())
    asking.start()
    return asked, asking


keys = {"ekorn__execution": execution, "state__backend": "rocksdb" if execution == "epochs" else "hashmap"}
client = build(10**9, 2_000, folder / execution, parallelism=2, **keys).execute_async()
asked, asking = start(client)
until(asking.all_known.is_set)
covered = client.get_progress().checkpoints_completed + 2
until(lambda: client.get_progress().checkpoints_completed >= covered)
asking.must_be_known = True
before = client.get_progress().restarts
os.kill(client.get_progress().slot_pids[0], signal.SIGKILL)
until(lambda: client.get_progress().restarts > before)
answers = asking.answers
until(lambda: asking.answers > answers + 3)
path = client.stop_with_savepoint(False, str(folder / "savepoints")).result()
asking.stop()
asked.shutdown()
again = build(10**9, 2_000, folder / execution, parallelism=1, restore=path, **keys).execute_async()
asked, rescaled = start(again)
rescaled.must_be_known = True
until(lambda: rescaled.answers > 3)
rescaled.stop()
asked.shutdown()
again.cancel().result()
found = {
    "answers": asking.answers, "refusals": asking.refusals, "wrong": [repr(each) for each in asking.wrong],
    "rescaled": rescaled.answers, "wrong rescaled": [repr(each) for each in rescaled.wrong],
}
print("FOUND " + json.dumps(found), flush=True)
"""


@pytest.mark.parametrize("execution", ["epochs", pytest.param("continuous", marks=pytest.mark.soak)])
def test_queries_during_a_kill_and_after_rescaling_are_right_or_refused(execution, tmp_path):
    driver = run_driver(DRIVER, str(tmp_path), execution)
    try:
        output, _ = driver.communicate(timeout=240)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    seen = json.loads(answers[0].removeprefix("FOUND "))
    assert seen["wrong"] == [] and seen["wrong rescaled"] == []
    assert seen["answers"] > 5 and seen["rescaled"] > 3
