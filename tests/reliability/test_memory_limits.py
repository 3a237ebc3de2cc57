"""A slot whose control group has too little memory: the kernel kills it, and the job restarts and is exact."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ekorn.datastream.functions import MapFunction
from ekorn.testing.process_engine import on_process_engine
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import environment, expected_tally, generated, tallied

RECORDS, KEYS = 1_500, 7
LIMIT_BYTES = 256 << 20
_ROOT = Path("/sys/fs/cgroup")


@pytest.fixture
def small_group() -> Iterator[Path]:
    """Return a control group of little memory, without swap. Its name is that of this process."""
    parent = _ROOT if (_ROOT / "cgroup.controllers").exists() else _ROOT / "memory"
    limit = "memory.max" if parent == _ROOT else "memory.limit_in_bytes"
    group = parent / f"ekorn-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT_BYTES))
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"this machine permits no control group with a limit of memory: {error}")
    yield group
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:  # the kernel still counts pages of the process that it has killed
            time.sleep(0.1)


class Greedy(MapFunction):
    """Enters the control group in its first attempt, and asks for four times its memory."""

    def __init__(self, group: Path) -> None:
        self.group = group

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == 700 and self.attempt == 0:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
            bytearray(b"x") * (4 * LIMIT_BYTES)
            raise AssertionError("the kernel has not enforced the limit")
        return value


def test_a_slot_that_the_kernel_kills_for_its_memory_costs_a_restart_and_no_record(
    small_group: Path, tmp_path: Path
) -> None:
    env = environment(tmp_path, parallelism=2, restarts=3)
    numbers = generated(env, RECORDS, per_second=3_000).map(Greedy(small_group)).uid("greedy").set_parallelism(1)
    with on_process_engine(), noted_handles() as handles:
        found = list(tallied(numbers, KEYS).execute_and_collect())
    assert sorted(found) == sorted(expected_tally(RECORDS, KEYS))
    assert handles[0].progress().restarts == 1
    (failure,) = handles[0].view.statistics.failures.failures
    assert "killed by signal 9" in failure.trace
