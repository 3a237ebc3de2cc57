"""Slot processes without Spark: killed, stopped or orphaned slots change no result and leave no process behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from ekorn.common.job_status import JobStatus
from ekorn.datastream.functions import MapFunction, RuntimeContext
from ekorn.errors import ConfigurationError
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import Held, is_running, until
from tests.slot.summing_job import EXPECTED_TOTALS, RECORDS, environment, sums, totals


def added(records) -> dict[int, list[int]]:
    """Return, by key, the numbers that were added one after another, in any order."""
    by_key = {key: sorted(total for k, total in records if k == key) for key in {k for k, _ in records}}
    return {key: sorted(b - a for a, b in itertools.pairwise([0, *found])) for key, found in by_key.items()}


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_results_are_those_of_the_local_engine(parallelism: int, registering: bool) -> None:
    with on_process_engine(registering=registering), sums(environment(parallelism)).execute_and_collect() as records:
        found = sorted(records)
    with on_local_engine(), sums(environment(parallelism)).execute_and_collect() as records:
        expected = sorted(records)
    if parallelism == 1:  # else the order of a key's records depends on where epochs are cut, and so on the load
        assert found == expected
    assert added(found) == added(expected) == {key: list(range(key, RECORDS, 7)) for key in range(7)}
    assert totals(found) == EXPECTED_TOTALS


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_slot_that_is_killed_or_stopped_is_replaced(blow: signal.Signals, registering: bool, tmp_path: Path) -> None:
    env, held = environment(), Held(tmp_path, RECORDS // 8)
    env.enable_checkpointing(50)
    with on_process_engine(registering=registering):
        records = sums(env, held).execute_and_collect()
        client = records.job_client
        until(lambda: client.get_progress().checkpoints_completed > 1)
        victim = client.get_progress().slot_pids[1]
        os.kill(victim, blow)
        held.let_go()
        found = list(records)
    try:
        progress = client.get_progress()
        assert progress.status is JobStatus.FINISHED
        assert progress.restarts >= 1
        assert progress.last_failure is not None and "slot 1" in progress.last_failure
        assert totals(found) == EXPECTED_TOTALS
        assert len(found) == RECORDS
        if registering and blow is signal.SIGSTOP:
            assert is_running(victim)  # the driver cannot kill a slot on another machine
            os.kill(victim, signal.SIGCONT)
        until(lambda: not is_running(victim))  # a slot that was given up must end
    finally:
        if is_running(victim):
            os.kill(victim, signal.SIGKILL)


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
def test_slots_end_with_their_driver(registering: bool) -> None:
    program = f"""
        import time
        from tests.slot.summing_job import environment, sums
        from ekorn.testing.process_engine import on_process_engine
        with on_process_engine(registering={registering}):
            env = environment()
            sums(env, per_second=100).filter(lambda v: False).print()
            client = env.execute_async()
            while not client.get_progress().slot_pids:
                time.sleep(0.02)
            print("PIDS", *client.get_progress().slot_pids, flush=True)
            time.sleep(60)
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert driver.stdout is not None
    try:
        pids = next([int(p) for p in line.split()[1:]] for line in driver.stdout if line.startswith("PIDS"))
        assert all(is_running(pid) for pid in pids)
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
    until(lambda: not any(is_running(pid) for pid in pids))


class Forking(MapFunction):
    """Starts a process that would outlive its slot; a file has its id as its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        child = subprocess.Popen(["sleep", "600"])
        (self._folder / str(child.pid)).touch()

    def map(self, value: Any) -> Any:
        return value


def forked(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir()]


@pytest.mark.parametrize("how", ["cancelled", "slot killed", "hung"])
def test_a_process_that_a_function_forked_ends_with_its_slot(tmp_path: Path, how: str) -> None:
    (folder := tmp_path / "forked").mkdir()
    env = environment(1, timeout_ms=1_000 if how == "hung" else 60_000)
    sums(env, per_second=100).map(Forking(folder)).filter(lambda v: False).print()
    try:
        with on_process_engine():
            client = env.execute_async()
            until(lambda: bool(forked(folder)) and bool(client.get_progress().slot_pids))
            children = forked(folder)
            assert all(is_running(pid) for pid in children)
            if how != "cancelled":
                os.kill(client.get_progress().slot_pids[0], signal.SIGKILL if how == "slot killed" else signal.SIGSTOP)
                until(lambda: not any(is_running(pid) for pid in children))
            client.cancel().result()
        until(lambda: not any(is_running(pid) for pid in forked(folder)))
    finally:
        for pid in forked(folder):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
def test_a_process_that_a_function_forked_ends_with_its_driver(tmp_path: Path, registering: bool) -> None:
    program = f"""
        import pathlib, time
        from tests.slot.summing_job import environment, sums
        from tests.slot.test_slot_processes import Forking
        from ekorn.testing.process_engine import on_process_engine
        with on_process_engine(registering={registering}):
            env = environment(1)
            sums(env, per_second=100).map(Forking(pathlib.Path({str(tmp_path)!r}))).filter(lambda v: False).print()
            env.execute()
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    driver = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], env=os.environ | {"PYTHONPATH": path})
    try:
        until(lambda: bool(forked(tmp_path)))
    finally:
        driver.kill()
        driver.wait()
    try:
        until(lambda: not any(is_running(pid) for pid in forked(tmp_path)))
    finally:
        for pid in forked(tmp_path):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def hang(value):
    time.sleep(3600)
    return value


def test_a_job_whose_code_hangs_can_be_cancelled() -> None:
    env = environment(1, timeout_ms=60_000)
    env.from_collection([1]).map(hang).print()
    with on_process_engine():
        client = env.execute_async()
        until(lambda: bool(client.get_progress().slot_pids))
        pids = client.get_progress().slot_pids
        client.cancel().result()
        until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
    until(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.parametrize(("interval_ms", "timeout_ms"), [(0, 100), (100, 100), (200, 100)])
def test_a_heartbeat_interval_that_cannot_work_is_refused(interval_ms: int, timeout_ms: int) -> None:
    env = environment(heartbeat_ms=interval_ms, timeout_ms=timeout_ms)
    env.from_collection([1]).print()
    with on_process_engine(), pytest.raises(ConfigurationError, match=r"heartbeat\.timeout"):
        env.execute()
