"""Schedules of faults for services that stand by for each other: everything that a seed decides, and its play."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from ekorn.common import JobStatus
from ekorn.web.http_client import RefusedRequest
from tests.live_jobs import is_running, until
from tests.service.cluster import Cluster, Node, bring_disk_back, committed, lose_disk, misses, submit_counted

ACTS = (
    "kill-leader",  # and start it again
    "stop-leader",  # until another one leads, and for a while more
    "pause-leader",  # for less or more than the lease
    "end-leader",  # in order, and start it again
    "lose-disk",  # for less or more than the lease
    "kill-driver",
    "freeze-driver",  # stop the driver, kill its leader, let the driver go on beside the next one
    "kill-standby",  # and start it again
)
RECORDS, PER_SECOND = 1500, 300
ENOUGH_S = 240.0
NO_LEADER = 503


@dataclass(frozen=True)
class Act:
    """A fault, when the job has committed so many lines, with a duration in leases for those that last."""

    what: str
    after: int
    leases: float


@dataclass(frozen=True)
class HaSchedule:
    """The faults of one seed."""

    seed: int
    acts: tuple[Act, ...]


def ha_schedule(seed: int) -> HaSchedule:
    """Return the schedule of a seed; the same seed always means the same schedule."""
    chance = random.Random(seed)
    first = ACTS[seed % len(ACTS)]  # every act is the first one of some schedule
    what = [first, *chance.choices(ACTS, k=chance.randint(0, 2))]
    marks = sorted(chance.randrange(1, RECORDS * 2 // 3) for _ in what)
    acts = (Act(each, after, chance.choice((0.2, 0.6, 1.1, 1.6))) for each, after in zip(what, marks, strict=True))
    return HaSchedule(seed, tuple(acts))


def play(schedule: HaSchedule, cluster: Cluster, folder: Path) -> None:
    """Play a schedule on a cluster that runs; check that the output of the job is complete, and nothing twice."""
    for node in cluster.nodes:
        if not node.is_up:
            node.start()
    cluster.leader()
    job, out = submit_counted(cluster, folder, f"job{schedule.seed}", records=RECORDS, per_second=PER_SECOND)
    limit_s = time.monotonic() + ENOUGH_S
    for act in schedule.acts:
        while committed(out) < act.after and not _is_over(cluster, job):
            assert time.monotonic() < limit_s, schedule
            time.sleep(0.05)
        _perform(act, cluster, job)
    until(lambda: _is_over(cluster, job), limit_s - time.monotonic())
    status = cluster.client().job(job).get_job_status().result()
    assert status is JobStatus.FINISHED, (schedule, status, cluster.client().jobs()[-1]["why"])
    assert misses(out, RECORDS) == "", schedule
    until(lambda: all(node.own_view()["leader"] is not None for node in cluster.nodes if node.is_up))


def _is_over(cluster: Cluster, job: str) -> bool:
    try:
        return cluster.client().job(job).get_job_status().result().is_terminal_state()
    except RefusedRequest as refused:
        if refused.status == NO_LEADER:  # a leader that gets no processor for half of its lease stops leading
            return False
        raise


def _perform(act: Act, cluster: Cluster, job: str) -> None:
    lease_s = cluster.lease_ms / 1000
    leader = cluster.leader()
    match act.what:
        case "kill-leader" | "end-leader":
            leader.signal(signal.SIGKILL if act.what == "kill-leader" else signal.SIGTERM)
            time.sleep(act.leases * lease_s)
            leader.start()
        case "kill-standby":
            standby = next(node for node in cluster.nodes if node is not leader)
            standby.signal(signal.SIGKILL)
            time.sleep(act.leases * lease_s)
            standby.start()
        case "stop-leader":
            leader.signal(signal.SIGSTOP)
            cluster.leader()
            time.sleep(act.leases * lease_s)
            leader.signal(signal.SIGCONT)
        case "pause-leader":
            leader.signal(signal.SIGSTOP)
            time.sleep(act.leases * lease_s)
            leader.signal(signal.SIGCONT)
        case "lose-disk":
            away = lose_disk(cluster)
            time.sleep(act.leases * lease_s)
            bring_disk_back(cluster, away)
        case "kill-driver":
            pid = _driver(leader, job)
            if pid:
                os.killpg(pid, signal.SIGKILL)
        case "freeze-driver":
            _freeze_driver(act, cluster, leader, job)
        case _:
            raise AssertionError(act.what)
    cluster.leader()


def _freeze_driver(act: Act, cluster: Cluster, leader: Node, job: str) -> None:
    pid = _driver(leader, job)
    if pid:
        os.kill(pid, signal.SIGSTOP)
    leader.signal(signal.SIGKILL)
    cluster.leader()
    time.sleep(act.leases * cluster.lease_ms / 1000)
    if pid and is_running(pid):
        os.kill(pid, signal.SIGCONT)
        until(lambda: not is_running(pid))
    leader.start()


def _driver(leader: Node, job: str) -> int:
    """Return the process of the job's driver; 0 if it has none now."""
    records = leader.web(patience_s=30).get("/service/jobs")["jobs"]
    pid: int = next((each["pid"] for each in records if each["id"] == job and each["phase"] == "STARTED"), 0)
    return pid
