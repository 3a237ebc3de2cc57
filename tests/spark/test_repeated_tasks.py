"""An embedded Spark that tries a task again: the task gets the answer of the first one, and nothing restarts."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.spark.processes import python_workers, run_driver

PROGRAM = """
import sys, time
from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment

def slow(n):
    if n == 7:
        print("PAUSE", flush=True)
        time.sleep(3.0)
    return n % 3, n

conf = Configuration()
conf.set_string("spark.master", "local[2,4]")
env = StreamExecutionEnvironment.get_execution_environment(conf).set_parallelism(2)
stream = env.from_collection(range(100)).map(slow).key_by(lambda v: v[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
with stream.execute_and_collect() as rows:  # without checkpoints there is no restart
    found = list(rows)
assert max(found) == (2, sum(range(2, 100, 3))) and len(found) == 100, found
print("EXACT", rows.job_client.get_progress().restarts, flush=True)
"""


def test_a_task_that_spark_tries_again_gets_the_answer_of_the_first_one() -> None:
    driver = run_driver(PROGRAM, stdin=subprocess.DEVNULL)
    try:
        output = ""
        assert driver.stdout is not None
        while "PAUSE" not in output:
            line = driver.stdout.readline()
            assert line, output[-3000:]
            output += line
        for worker in python_workers(driver.pid):  # also the one whose task waits for the slot
            os.kill(worker, signal.SIGKILL)
        output += driver.communicate(timeout=120)[0]
    finally:
        driver.kill()
        driver.wait()
    assert "EXACT 0" in output, output[-3000:]
