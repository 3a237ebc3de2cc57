"""Programs that were recorded on PyFlink give the same on Spark, on both engines.

Other tests run all of them without Spark. Here records cross Spark's shuffle and its tasks, and functions and classes
reach slots that are processes of their own.
"""

from __future__ import annotations

import json

import pytest

from tests.conformance.recorded_runs import like_pyflink
from tests.spark.processes import run_driver

DRIVER = "import runpy, sys; runpy.run_module('tests.spark.recorded_programs', run_name='__main__', alter_sys=True)"
ENGINE = {"continuous": "ContinuousSlotEngine", "epochs": "EpochSlotEngine"}


def run(execution: str, names: list[str], timeout_s: float) -> tuple[dict[str, int], list[list[str]]]:
    """Run programs in one driver; return how many jobs each engine ran, and what differs from PyFlink."""
    driver = run_driver(DRIVER, execution, *names)
    try:
        said, _ = driver.communicate(timeout=timeout_s)
    finally:
        driver.kill()
    assert driver.returncode == 0, said[-4000:]
    lines = [line.partition(" ") for line in said.splitlines()]
    (engines,) = [json.loads(rest) for kind, _, rest in lines if kind == "ENGINES"]
    return engines, [json.loads(rest) for kind, _, rest in lines if kind == "DIFFERENT"]


def test_some_programs_give_what_pyflink_gave() -> None:
    engines, different = run("continuous", like_pyflink()[7::40], 200)
    assert different == []
    assert engines["ContinuousSlotEngine"] >= 8


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("execution", ["continuous", "epochs"])
def test_all_programs_give_what_pyflink_gave(execution: str) -> None:
    names = like_pyflink()
    engines, different = run(execution, names, 3_500)
    assert different == []
    assert engines[ENGINE[execution]] >= 0.7 * len(names), "the others fail while they are built, or need epochs"
