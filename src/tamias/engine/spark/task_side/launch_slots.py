"""Runs in Spark's Python worker on an executor: starts slot processes there, which then register with the driver.

`testing/process_engine.py` calls it in the driver instead, to start slots on one machine as a cluster would.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator

from tamias.slot.slot_config import DriverContact, SlotConfig
from tamias.storage.private_folder import create_private_file


def launch_slots(driver: DriverContact, numbers: Iterable[int]) -> Iterator[int]:
    """Start a process for each slot number. The processes outlive the caller."""
    for number in numbers:
        _launch(driver, number)
        yield number


def _launch(driver: DriverContact, number: int) -> None:
    folder = tempfile.mkdtemp(prefix="tamias-")
    log_file = os.path.join(folder, "slot.log")
    create_private_file(log_file)
    config = SlotConfig(
        slot=number,
        address=("", 0),
        secret=driver.secret,
        folder=folder,
        python_path=list(sys.path),
        heartbeat_s=driver.heartbeat_s,
        log_file=log_file,
        driver=driver.address,
        generation=driver.generation,
        driver_timeout_s=driver.timeout_s,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tamias.slot.slot_main"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        start_new_session=True,
    )
    data = pickle.dumps(config)
    assert process.stdin is not None
    process.stdin.write(len(data).to_bytes(8, "little") + data)
    process.stdin.close()
