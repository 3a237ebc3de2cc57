"""Ctrl-C on Spark: one line, no process left behind, and the job is resumed without a path."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.program.endless import started, wait_for_checkpoint
from tests.spark.processes import slot_processes


def test_ctrl_c_ends_the_job_in_one_line_and_resuming_continues_it(tmp_path: Path) -> None:
    before = set(slot_processes())
    process = started(tmp_path, spark=True)
    seen = wait_for_checkpoint(tmp_path / "checkpoints", process, set())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    start, end = said.splitlines()
    assert start.startswith("job 'endless' (") and " starts on embedded Spark " in start
    assert end.startswith("ekorn: Ctrl-C ended job 'endless'; to resume it: ekorn run --resume ")
    assert set(slot_processes()) <= before

    seen |= set((tmp_path / "checkpoints").glob("*/chk-*/_metadata"))
    process = started(tmp_path, "--resume", spark=True)
    wait_for_checkpoint(tmp_path / "checkpoints", process, seen)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1
