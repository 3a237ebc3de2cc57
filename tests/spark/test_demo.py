"""The program of `make demo`, shortened: a slot is killed, and the totals are exact."""

from __future__ import annotations

import subprocess
import sys

from tests.spark.processes import ROOT


def test_the_demo_kills_a_slot_and_counts_every_order_once() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "live_orders.py"), "--seconds", "6", "--rate", "5000"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "incubator modules" not in done.stderr
    assert "kill -9" in done.stdout and "1 restart(s)" in done.stdout
    assert "0 orders lost, 0 counted twice, 0 of 500 customers with a wrong total" in done.stdout
