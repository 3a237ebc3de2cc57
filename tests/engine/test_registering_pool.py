"""Slots that register with the driver: none stays behind after a failed start, or after a driver that vanished."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ekorn
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.task_side.launch_slots import launch_slots
from ekorn.errors import DeploymentError
from ekorn.links.link import connect
from ekorn.slot_protocol.slot_config import Registration, Welcome
from ekorn.types.by_value import dumps
from tests.live_jobs import is_running, until
from tests.spark.processes import listening_sockets


@pytest.fixture
def pids(monkeypatch):
    """The process ids of all slots that are launched; they are killed when the test ends."""
    started = []
    original = subprocess.Popen

    def popen(*args, **options):
        process = original(*args, **options)
        started.append(process)
        return process

    monkeypatch.setattr("ekorn.engine.spark.task_side.launch_slots.subprocess.Popen", popen)
    yield started
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait()


def run(driver, numbers):
    for _ in launch_slots(driver, numbers):
        pass


def pool_of(count, launch=run, **more):
    return RegisteringSlotPool(count, "127.0.0.1", launch, Heartbeat(), **more)


def test_a_failed_start_ends_the_slots_that_registered(pids):
    missing_one = [True]

    def launch(driver, numbers):
        run(driver, numbers[:-1] if missing_one else numbers)
        # A slot registers when it listens; the machine may be slow.
        until(lambda: all(slot.poll() is not None or listening_sockets(slot.pid) for slot in pids))

    pool = pool_of(2, launch, register_s=3.0)
    try:
        for _ in range(2):
            with pytest.raises(DeploymentError, match="only 1 of 2 slots registered"):
                pool.ensure()
        assert len(pids) == 2
        until(lambda: all(process.poll() is not None for process in pids))
        missing_one.clear()
        assert pool.ensure() == [0, 1]
    finally:
        pool.shutdown()
    until(lambda: all(process.poll() is not None for process in pids))


def test_the_log_of_a_slot_is_readable_for_this_user_alone(pids, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pool = pool_of(1)
    try:
        pool.ensure()
        (log,) = tmp_path.glob("ekorn-*/slot.log")
        assert [path.stat().st_mode & 0o777 for path in (log.parent, log)] == [0o700, 0o600]
    finally:
        pool.shutdown()


def test_a_slot_of_a_failed_start_that_registers_late_is_refused():
    contacts = []
    pool = pool_of(1, lambda driver, numbers: contacts.append(driver), register_s=0.01)
    try:
        for _ in range(2):
            with pytest.raises(DeploymentError, match="only 0 of 1"):
                pool.ensure()
        late = connect(pool.address, pool.secret)
        late.send(dumps(Registration(0, ("127.0.0.1", 1), "host", 1, contacts[0].generation)))
        late.settimeout(30.0)
        assert pickle.loads(late.receive()) == Welcome(None)
        with pytest.raises((EOFError, ConnectionResetError)):
            late.receive()
        late.close()
        assert pool.waiting_count == 0
    finally:
        pool.shutdown()


def test_a_slot_that_spark_started_twice_runs_once(pids):
    """Spark runs a task again that failed, or whose speculative copy it starts: both start the slot."""

    def twice(driver, numbers):
        run(driver, numbers)
        run(driver, numbers)

    pool = pool_of(2, twice)
    try:
        assert pool.ensure() == [0, 1]
        assert [slot.number for slot in pool.slots] == [0, 1]
        mine = {slot.process.pid for slot in pool.slots}
        until(lambda: {process.pid for process in pids if process.poll() is None} == mine)
        victim = pool.slots[1].process.pid
        os.kill(victim, signal.SIGKILL)
        until(lambda: not pool.slots[1].process.alive)
        assert pool.ensure() == [1]
        assert mine - {victim} == {pool.slots[0].process.pid}, "the other slot goes on"
    finally:
        pool.shutdown()
    until(lambda: all(process.poll() is not None for process in pids))


def test_the_folder_of_a_killed_slot_is_removed_by_the_next_slot_on_the_machine(pids, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pool = pool_of(2)
    try:
        pool.ensure()
        before = set(tmp_path.glob("ekorn-slot-*/"))
        assert len(before) == 2
        (victim,) = (process for process in pids if process.pid == pool.slots[0].process.pid)
        victim.kill()
        victim.wait()
        assert set(tmp_path.glob("ekorn-slot-*/")) == before, "a killed slot leaves its folder"
        until(lambda: not pool.slots[0].process.alive)
        pool.ensure()
        after = set(tmp_path.glob("ekorn-slot-*/"))
        assert len(after) == 2 and len(after & before) == 1
    finally:
        pool.shutdown()
    until(lambda: all(process.poll() is not None for process in pids))
    assert list(tmp_path.iterdir()) == []


def test_a_slot_ends_with_the_executor_beside_which_it_runs():
    executor = subprocess.Popen(["sleep", "1000"])
    pool = pool_of(1, lambda driver, numbers: list(launch_slots(driver, numbers, executor.pid)))
    try:
        pool.ensure()
        pid = pool.slots[0].process.pid
        assert is_running(pid)
        executor.kill()
        executor.wait()
        until(lambda: not is_running(pid))
    finally:
        executor.kill()
        executor.wait()
        pool.shutdown()


def test_a_slot_ends_when_it_hears_nothing_of_its_driver():
    """A stopped driver keeps its connections open and says nothing, as a host that vanished does."""
    source = Path(ekorn.__file__).parents[1]
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(source)}
    )
    assert driver.stdout is not None
    try:
        pid = int(driver.stdout.readline())
        assert is_running(pid)
        driver.send_signal(signal.SIGSTOP)
        until(lambda: not is_running(pid))
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()


DRIVER = """
import time
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.task_side.launch_slots import launch_slots
pool = RegisteringSlotPool(1, "127.0.0.1", lambda d, n: list(launch_slots(d, n)), Heartbeat(0.2, 3.0))
pool.ensure()
time.sleep(4)  # longer than the timeout: heartbeats keep the slot alive
print(pool.slots[0].process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("in_launch", [True, False])
def test_a_restart_does_not_wait_for_the_slots_of_a_rescale(pids, in_launch):
    launched = threading.Event()

    def launch(driver, numbers):
        if numbers == [0]:
            run(driver, numbers)
        else:
            launched.set()
            if in_launch:
                room.wait(60)  # Spark waits for executors

    def prepare():
        with contextlib.suppress(DeploymentError):  # no slot registers
            pool.prepare(2)

    pool = pool_of(1, launch, register_s=60.0)
    room = threading.Event()
    try:
        assert pool.ensure() == [0]
        rescale = threading.Thread(target=prepare, daemon=True)
        rescale.start()
        assert launched.wait(60)
        assert pool.ensure() == []
        (lost,) = pids
        lost.kill()
        until(lambda: not pool.slots[0].process.alive)
        assert pool.ensure() == [0], "a slot that was lost is replaced, too"
        assert rescale.is_alive(), "the rescale still waits"
    finally:
        room.set()
        pool.shutdown()
