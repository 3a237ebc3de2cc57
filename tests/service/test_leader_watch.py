"""The end of a job beside a change of the leader: no order of their steps lets the job be run a second time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from ekorn.checkpoint.driver_process import Driver
from ekorn.driver.job_outcome import JobOutcome
from ekorn.errors import Fenced
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.cluster.leader_watch import LeaderWatch
from ekorn.service.cluster.leadership import look, try_to_lead
from ekorn.service.cluster.shared_jobs import outcome_path
from ekorn.storage.memory import MemoryFiles
from tests.live_jobs import process_state, until

JOB, RUN = "00ff", "1-1"


class Interrupted(MemoryFiles):
    """Files on which another process does something just before one of the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.at: int | None = None
        self.other: Any = None

    def _step(self) -> None:
        if self.at == self.steps:
            self.at = None  # before the call: what the other does are no steps
            self.other()
        elif self.at is not None:
            self.steps += 1

    def read(self, path: str) -> bytes:
        self._step()
        return super().read(path)

    def replace(self, path: str, data: bytes) -> None:
        self._step()
        super().replace(path, data)


def lead(store: MemoryFiles, name: str) -> None:
    led = try_to_lead(store, Driver(name, 1, "1", name), look(store), "cluster", now_ms=0, lease_s=9.0)
    assert led is not None


def watch_of(store: MemoryFiles, name: str, ends: list[str]) -> LeaderWatch:
    found = {"storage": "", "cluster": "cluster", "term": 1, "token": name, "lease_s": 9.0, "run": RUN}
    return LeaderWatch(found, ends.append, store)


@pytest.mark.parametrize("step", range(4))
def test_a_job_that_ends_as_the_leader_changes_is_known_to_have_ended_or_keeps_its_checkpoints(step: int) -> None:
    store = Interrupted()
    lead(store, "a")
    watch = watch_of(store, "a", [])
    seen: list[str] = []

    def next_leader() -> None:
        lead(store, "b")  # it claims, then looks
        if store.exists(outcome_path(JOB, RUN)):
            seen.append(json.loads(store.read(outcome_path(JOB, RUN)))["status"])

    store.at, store.other = step, next_leader
    keeps = False
    try:
        watch.note(JobOutcome(JOB, JobStatus.FINISHED, None))
    except Fenced:
        keeps = True  # `JobLoop` ends as if it were suspended
    if store.at is not None:  # there are fewer steps: the leader changes afterwards
        store.at = None
        next_leader()
    assert keeps or seen == ["FINISHED"]


def test_the_end_of_a_job_under_its_own_leader_is_noted() -> None:
    store = MemoryFiles()
    lead(store, "a")
    watch_of(store, "a", []).note(JobOutcome(JOB, JobStatus.FINISHED, "savepoint-1"))
    assert json.loads(store.read(outcome_path(JOB, RUN))) == {"status": "FINISHED", "savepoint": "savepoint-1"}


class Storage(MemoryFiles):
    """Files that count how often the leader was looked for, and may fail or hang."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.error: OSError | None = None
        self.answers = threading.Event()
        self.answers.set()

    def read(self, path: str) -> bytes:
        self.looks += 1
        self.answers.wait(60)
        if self.error is not None:
            raise self.error
        return super().read(path)


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that a watch sees. It asks a hundred times a second for the leader, whose lease is nine seconds."""
    clock = [1_000.0]
    monkeypatch.setattr("ekorn.service.cluster.leader_watch.elapsed_s", lambda: clock[0])
    monkeypatch.setattr("ekorn.service.cluster.leader_watch.RENEWALS_PER_LEASE", 900)
    return clock


def look_more(store: Storage) -> None:
    """Wait until the watch has asked and looked at the answers a few times more."""
    seen = store.looks
    until(lambda: store.looks > seen + 9)


def test_a_driver_ends_when_another_service_leads(now_s: list[float]) -> None:
    store, ends = Storage(), list[str]()
    lead(store, "a")
    watch_of(store, "a", ends).start()
    look_more(store)
    assert ends == []
    lead(store, "b")
    until(lambda: ends)
    assert ends == ["another service leads"]


def test_a_driver_whose_leader_is_replaced_already_does_not_start(now_s: list[float]) -> None:
    store, ends = Storage(), list[str]()
    lead(store, "a")
    lead(store, "b")
    with pytest.raises(Fenced):
        watch_of(store, "a", ends).start()
    assert ends == []


def test_a_driver_outlives_a_storage_that_fails_for_less_than_a_lease(now_s: list[float]) -> None:
    store, ends = Storage(), list[str]()
    lead(store, "a")
    watch = watch_of(store, "a", ends)
    watch.start()
    for _ in range(3):  # each time it answers, the lease counts from there
        store.error = OSError("no route")
        now_s[0] += 9.0
        look_more(store)
        store.error = None
        look_more(store)
    assert ends == []
    store.error = OSError("no route")
    look_more(store)
    now_s[0] += 9.1
    until(lambda: ends)
    assert ends == ["the storage of the cluster has not answered for the time of a lease: no route"]


def test_a_driver_ends_while_the_storage_hangs() -> None:
    store, ends = Storage(), list[str]()
    lead(store, "a")
    found = {"storage": "", "cluster": "cluster", "term": 1, "token": "a", "lease_s": 0.3, "run": RUN}
    watch = LeaderWatch(found, ends.append, store)
    watch.start()
    store.answers.clear()
    until(lambda: ends)
    assert ends == ["the storage of the cluster has not answered for the time of a lease"]
    store.answers.set()


def test_a_driver_that_is_about_to_end_is_not_watched_any_more(now_s: list[float]) -> None:
    store, ends = Storage(), list[str]()
    lead(store, "a")
    before = {thread for thread in threading.enumerate() if thread.name == "ekorn-leader-watch"}
    watch = watch_of(store, "a", ends)
    watch.start()
    (thread,) = {thread for thread in threading.enumerate() if thread.name == "ekorn-leader-watch"} - before
    watch.close()
    thread.join(60)
    assert not thread.is_alive()
    lead(store, "b")
    assert ends == []


@pytest.mark.parametrize("own_group", [True, False])
def test_a_driver_ends_with_the_processes_of_its_group_if_the_group_is_its_own(own_group: bool) -> None:
    child = "from subprocess import *; p = Popen(['sleep', '600'], stdout=DEVNULL, stderr=DEVNULL)"
    end = "from ekorn.service.cluster.leader_watch import end_this_process; end_this_process('on purpose')"
    program = [sys.executable, "-c", f"{child}; print(p.pid, flush=True); {end}"]
    if not own_group:  # behind a shell that leads the group
        program = ["sh", "-c", 'trap : TERM; "$@"; exit 7', "sh", *program]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as driver:
        assert driver.stdout is not None and driver.stderr is not None
        sleeper = int(driver.stdout.readline())
        code = driver.wait(60)
        assert b"this driver ends: on purpose" in driver.stderr.read()
    if own_group:
        assert code == -signal.SIGKILL
        until(lambda: process_state(sleeper) in "ZX")
    else:
        assert code == 7
        assert process_state(sleeper) not in "ZX"
        os.kill(sleeper, signal.SIGKILL)
