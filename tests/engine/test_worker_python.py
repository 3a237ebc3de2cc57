"""The comparison of the driver's Python with that of Spark's workers, and of a session's version with PySpark's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ekorn.engine.spark.driver_side.own_session import differences, version_problem
from ekorn.engine.spark.driver_side.worker_python import difference
from ekorn.engine.spark.task_side.python_facts import PythonFacts, python_facts
from ekorn.errors import WorkerPythonError, may_be_retried

DRIVER = PythonFacts("/home/ada/.venv/bin/python", "3.11.7", "0.1.0", "3.1.2", 5)


@pytest.mark.parametrize(
    ("worker", "problem"),
    [
        (replace(DRIVER, executable="/usr/bin/python3", version="3.11.2", cloudpickle="3.0.0"), None),
        (replace(DRIVER, version="3.12.1"), "the versions differ"),
        (replace(DRIVER, version="3.1.7"), "the versions differ"),
        (replace(DRIVER, ekorn="0.0.9"), "ekorn is 0.0.9 there, and 0.1.0 in the driver"),
        (replace(DRIVER, cloudpickle=None), "cloudpickle cannot be imported there"),
        (replace(DRIVER, pickle_protocol=4), "the pickle protocol is 4 there, and 5 in the driver"),
    ],
)
def test_a_worker_s_python_must_be_able_to_run_the_driver_s_tasks(worker: PythonFacts, problem: str | None) -> None:
    assert difference(DRIVER, worker) == problem


def test_this_python_works_with_itself() -> None:
    assert difference(python_facts(), python_facts()) is None


def test_no_restart_helps_a_worker_with_the_wrong_python() -> None:
    assert not may_be_retried(
        WorkerPythonError("/usr/bin/python3", "/home/ada/.venv/bin/python", "the versions differ")
    )


@pytest.mark.parametrize(
    ("spark", "pyspark", "said"),
    [
        ("4.1.0", "4.1.1", None),
        ("4.3.0-SNAPSHOT", "4.3.0.dev0", None),
        ("3.5.4", "4.3.0", "jobs need 4.1 or newer"),
        ("4.1.1", "4.3.0", "Spark 4.1.1, but the driver's package PySpark has version 4.3.0"),
    ],
)
def test_a_session_of_another_spark_is_refused(spark: str, pyspark: str, said: str | None) -> None:
    found = version_problem(spark, pyspark)
    assert (found is None) if said is None else (said in str(found))


def test_a_session_s_settings_are_judged_by_where_it_runs() -> None:
    ours = {
        "spark.authenticate": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.ui.enabled": "false",
    }
    assert differences(ours, "local[2]") == []
    released = {"spark.dynamicAllocation.cachedExecutorIdleTimeout": "60s", "spark.task.reaper.enabled": "true"}
    (line,) = differences(ours | released, "spark://host:7077")
    assert line.startswith("spark.dynamicAllocation.cachedExecutorIdleTimeout=60s: ")
