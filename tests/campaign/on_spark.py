"""What a campaign on Spark has besides drivers and slots: Java processes, Python workers, a cluster with executors."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from ekorn.errors import SparkSessionLostError
from tests.campaign.driver_life import Driver
from tests.campaign.schedules import Act
from tests.live_jobs import process_state
from tests.spark.processes import descendants, executors, is_slot, java_of, python_workers
from tests.spark.standalone_cluster import Cluster

PER_SECOND = 250  # less than without Spark: an epoch takes longer
STALL_TIMEOUT_MS = 8_000  # longer than Spark takes to start its first Python worker
MARKS = "EKORN_FAULT_DIR"  # a variable that every process of a campaign has, with a folder of its own


class SparkProcesses:
    """The processes of Spark in one campaign: of an embedded Spark, or of a cluster that is started for it.

    Where jobs run continuously, every task has a place of its own.
    """

    def __init__(
        self, folder: Path, marks: Path, chance: random.Random, *, on_cluster: bool, continuously: bool
    ) -> None:
        self.without_java: set[Driver] = set()  # drivers whose Java process was killed
        self._marks = marks
        self._chance = chance
        self._cluster: Cluster | None = None
        if on_cluster:
            (folder / "cluster").mkdir()
            self._cluster = Cluster(folder / "cluster", cores=32 if continuously else 2)
        self._master = self._cluster.master if self._cluster is not None else f"local[{32 if continuously else 2}]"

    def settings(self) -> dict[str, Any]:
        """Return the settings of every driver."""
        return {"per_second": PER_SECOND, "master": self._master, "stall_timeout_ms": STALL_TIMEOUT_MS}

    def perform(self, act: Act, driver: Driver) -> bool:
        """Perform an act against Spark; return whether it had an effect."""
        match act.what:
            case "kill-worker":
                return bool(send(one_of(self._workers(driver), self._chance), signal.SIGKILL))
            case "stop-workers":
                return self._stop_workers(driver)
            case "kill-java":
                return self._kill_java(driver)
            case "kill-executor":
                return self._kill_executor(with_slots=act.detail == "with-slots")
            case _:
                raise AssertionError(act.what)

    def _executors(self) -> list[int]:
        return executors(MARKS, str(self._marks))

    def _workers(self, driver: Driver) -> list[int]:
        roots = self._executors() if self._cluster is not None else [driver.pid]
        return [pid for root in roots for pid in python_workers(root)]

    def _stop_workers(self, driver: Driver) -> bool:
        """Stop Spark's Python workers until the job has restarted; return False if the job ended before."""
        before = driver.progress.get("restarts", 0)
        stopped = send(self._workers(driver), signal.SIGSTOP)
        restarted = bool(stopped) and driver.until(lambda d: d.progress.get("restarts", 0) > before)
        send([pid for pid in stopped if process_state(pid) == "T"], signal.SIGCONT)
        return restarted

    def _kill_java(self, driver: Driver) -> bool:
        """Kill the driver's Java process; the driver must end by itself, with an error."""
        if not send(java_of(driver.pid), signal.SIGKILL):
            return False
        self.without_java.add(driver)
        driver.until(lambda d: False)
        return driver.done is None

    def _kill_executor(self, *, with_slots: bool) -> bool:
        victims = one_of(self._executors(), self._chance)
        if with_slots:
            victims += [pid for victim in victims for pid in descendants(victim) if is_slot(pid)]
        return bool(send(victims, signal.SIGKILL))

    def has_lost_java(self, driver: Driver) -> bool:
        """Return whether a driver failed because its Java process was killed, and said so."""
        return driver in self.without_java and driver.failed_with(SparkSessionLostError)

    def stop(self) -> None:
        """Stop the cluster."""
        if self._cluster is not None:
            self._cluster.stop()


def one_of(pids: list[int], chance: random.Random) -> list[int]:
    """Return one of the processes, or none if there is none."""
    return [chance.choice(sorted(pids))] if pids else []


def send(pids: list[int], sign: signal.Signals) -> list[int]:
    """Send a signal to processes; return those that were still there."""
    reached = []
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
            reached.append(pid)
    return reached
