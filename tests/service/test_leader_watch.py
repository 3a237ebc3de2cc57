"""The end of a job beside a change of the leader: no order of their steps lets the job be run a second time."""

from __future__ import annotations

import json
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
