"""A driver whose Java process is killed: the job ends with an error at once, and the next driver continues it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.live_jobs import until
from tests.spark import tally
from tests.spark.processes import descendants, is_slot, java_of, run_driver, slots_end

RECORDS = 2_000

# The restart strategy would never give up. No restart can help: a driver cannot start a second Java process.
DRIVER = """
import sys
from pathlib import Path
from ekorn.common import RestartStrategies
from tests.spark import tally

folder, restore = sys.argv[1:]
env = tally.build(2_000, 500, Path(folder), restore=restore or None)
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000_000, 10))
client = env.execute_async("tally")
try:
    client.get_job_execution_result().result()
finally:
    print("RESTARTS", client.get_progress().restarts, flush=True)
"""


def completed(folder: Path) -> list[Path]:
    done = [path.parent for path in (folder / "checkpoints").glob("*/chk-*/_metadata")]
    return sorted(done, key=lambda path: int(path.name.removeprefix("chk-")))


def test_a_driver_that_lost_its_java_process_ends_at_once_and_the_next_one_continues(tmp_path: Path) -> None:
    driver = run_driver(DRIVER, str(tmp_path), "")
    try:
        until(lambda: completed(tmp_path), within_s=120)
        (java,) = java_of(driver.pid)
        slots = [pid for pid in descendants(driver.pid) if is_slot(pid)]
        os.kill(java, signal.SIGKILL)
        output, _ = driver.communicate(timeout=60)
    finally:
        driver.kill()
    assert driver.returncode == 1
    assert "RESTARTS 0" in output, output[-3000:]
    assert "the driver has lost its Spark session: its Java process has ended" in output, output[-3000:]
    assert len(slots) == 2 and slots_end(slots)
    following = run_driver(DRIVER, str(tmp_path), str(completed(tmp_path)[-1]))
    output, _ = following.communicate(timeout=120)
    assert following.returncode == 0, output[-3000:]
    assert tally.verify(RECORDS, tmp_path) == []
