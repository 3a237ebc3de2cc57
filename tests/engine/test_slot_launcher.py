"""The Spark job that starts slots: what Spark cannot do is a failure of the attempt, and a start that hangs ends."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.engine.spark.driver_side.cluster import SlotLauncher
from ekorn.errors import DeploymentError, SparkSessionLostError
from ekorn.slot_protocol.slot_config import DriverContact

DRIVER = DriverContact(("127.0.0.1", 1), b"s" * 32, 1.0)


class Context:
    """A Spark context with one job, which ends with an error when it is cancelled.

    Args:
        active: How many tasks of the job run. Without one the job waits for executors.
        stopped: Whether the session is gone.
    """

    def __init__(self, active: int = 1, *, stopped: bool = False) -> None:
        self._active = active
        self._group = ""
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: stopped))
        self.cancelled = threading.Event()
        self.asked = threading.Semaphore(0)  # released when the watch looks at the job
        self.finished = threading.Event()

    def setJobGroup(self, group: str, _description: str) -> None:
        self._group = group

    def parallelize(self, _numbers: list[int], _slices: int) -> Context:
        return self

    def mapPartitions(self, _function: object) -> Context:
        return self

    def persist(self, _level: object) -> Context:
        return self

    def count(self) -> int:
        while not self.finished.wait(0.01):
            if self.cancelled.is_set():
                raise RuntimeError("org.apache.spark.SparkException: Job 0 cancelled\n\tat org.apache.spark.Frame")
        return 1

    def statusTracker(self) -> Context:
        self.asked.release()
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return [0] if group == self._group else []

    def getJobInfo(self, _job: int) -> Any:
        return SimpleNamespace(status="RUNNING", stageIds=[0])

    def getStageInfo(self, _stage: int) -> Any:
        return SimpleNamespace(numActiveTasks=self._active)

    def cancelJobGroup(self, group: str) -> None:
        if group == self._group:
            self.cancelled.set()


def test_a_start_whose_tasks_hang_is_cancelled_and_fails_the_attempt() -> None:
    with pytest.raises(DeploymentError, match=r"could not start 2 slots: .*: Job 0 cancelled$"):
        SlotLauncher(Context(), timeout_s=0.05).launch(DRIVER, [0, 1])


def test_a_start_whose_tasks_wait_for_executors_goes_on_waiting() -> None:
    context = Context(active=0)
    starting = threading.Thread(target=SlotLauncher(context, timeout_s=0.01).launch, args=(DRIVER, [0]))
    starting.start()
    for _ in range(3):
        assert context.asked.acquire(timeout=30)
    context.finished.set()
    starting.join(30)
    assert not starting.is_alive() and not context.cancelled.is_set()


def test_a_start_without_a_session_is_told_from_one_that_can_be_tried_again() -> None:
    with pytest.raises(SparkSessionLostError, match="was stopped"):
        SlotLauncher(Context(stopped=True), timeout_s=0.05).launch(DRIVER, [0])


class Rdd:
    """An RDD whose job succeeds at once."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.times_released = 0

    def mapPartitions(self, _function: object) -> Rdd:
        return self

    def persist(self, _level: object) -> Rdd:
        return self

    def unpersist(self) -> None:
        self.times_released += 1

    def count(self) -> int:
        return len(self.numbers)


class Session(Context):
    """A Spark context that remembers its RDDs."""

    def __init__(self) -> None:
        super().__init__()
        self.rdds: list[Rdd] = []

    def parallelize(self, numbers: list[int], _slices: int) -> Any:
        self.rdds.append(Rdd(numbers))
        return self.rdds[-1]


def test_executors_are_kept_as_long_as_a_slot_runs_beside_them() -> None:
    session = Session()
    launcher = SlotLauncher(session)

    def released() -> list[int]:
        return [rdd.times_released for rdd in session.rdds]

    launcher.launch(DRIVER, [0, 1])
    launcher.launch(DRIVER, [1])
    assert released() == [0, 0], "slot 0 runs where it ran"
    launcher.launch(DRIVER, [1])
    assert released() == [0, 1, 0]
    launcher.launch(DRIVER, [0])
    assert released() == [1, 1, 0, 0]
    launcher.release()
    assert released() == [1, 1, 1, 1]
