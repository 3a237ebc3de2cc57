"""Ten million keys are written to a savepoint and read back in parallel, in memory that does not grow with them."""

from __future__ import annotations

import json

import pytest

from tests.spark.processes import run_driver

DRIVER = "import sys; from tests.spark.many_keys import main; main(int(sys.argv[1]), sys.argv[2])"


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("keys", [1_000_000, 10_000_000])
def test_many_keys_are_written_and_read_in_bounded_memory(keys, tmp_path):
    driver = run_driver(DRIVER, str(keys), str(tmp_path / "savepoint"))
    try:
        output, _ = driver.communicate(timeout=7000)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    assert json.loads(answers[0].removeprefix("FOUND "))["peak_mib"] < 1500, "the same bound for both numbers of keys"
