"""A job in slot processes of which one is killed at a named step (`ekorn.faults`), as by `kill -9`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn.datastream import DataStream
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import Held, environment, generated, until

RECORDS = 200
# A sink recovers when its job starts, and again after a kill: that one is hit.
COMMIT_STEPS = {
    "sink-commit": "sink-commit:*:1:kill",
    "sink-committed": "sink-committed:*:1:kill",
    "sink-recover": "sink-committed:*:1:kill,sink-recover:*:1:kill",
}


def run_with_kills(
    faults: str, folder: Path, monkeypatch: pytest.MonkeyPatch, sink: Callable[[DataStream], object]
) -> None:
    """Run a job with a sink; see that a slot was killed at each of the named steps."""
    happened = folder / "faults"
    happened.mkdir()
    monkeypatch.setenv("EKORN_FAULT", faults)
    monkeypatch.setenv("EKORN_FAULT_DIR", str(happened))
    env = environment(folder / "checkpoints", parallelism=2, interval_ms=50, restarts=10)
    held = Held(folder, RECORDS // 4)
    sink(generated(env, RECORDS, held).rebalance())
    with on_process_engine():
        client = env.execute_async()
        until(lambda: len(list(happened.iterdir())) == faults.count(",") + 1)
        held.let_go()
        client.get_job_execution_result().result(120)
    assert client.get_progress().restarts >= 1
