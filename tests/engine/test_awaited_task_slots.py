"""An attempt of a continuous job on Spark waits for the task slots that a lost executor has taken away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ekorn.engine.protocol import Failure
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.driver_side.job_group import SparkJobGroup
from ekorn.engine.spark.driver_side.spark_flows import SparkFlows
from ekorn.engine.spark.driver_side.task_slots import reserve_task_slots, task_count
from ekorn.engine.spark.driver_side.transport_layout import TransportShuffle
from ekorn.engine.spark.task_side.transport_tasks import OutletTask
from ekorn.errors import DeploymentError
from ekorn.testing.local_slots import InProcessSlots
from tests.live_jobs import until
from tests.slot.small_job import deployment, graph, summing

_REFUSAL = "[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] SparkException: 4 tasks and 3 slots"
TASKS = 2  # of the job: its source has one, and so has its sum


class Session:
    """A Spark session whose cluster loses and regains task slots, as far as the engine asks it."""

    master = "spark://cluster:7077"

    def __init__(self, task_slots: int) -> None:
        self.task_slots = task_slots
        self.applicationId = f"cluster-{id(self)}"
        self._jsc = self

    def sc(self) -> Any:
        return self

    def conf(self) -> Any:
        return self

    def getSizeAsBytes(self, key: str, default: str) -> int:
        return 4096

    def resourceProfileManager(self) -> Any:
        return self

    def defaultResourceProfile(self) -> Any:
        return self

    def maxNumConcurrentTasks(self, profile: Any) -> int:
        return self.task_slots

    def statusTracker(self) -> Any:
        return self

    def isStopped(self) -> bool:
        return False

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return []


class Flows(SparkFlows):
    """Notes how many task slots the session has when Spark is to run the tasks of an attempt."""

    def note(self, session: Session) -> list[int]:
        self._session, self._started = session, list[int]()
        return self._started

    def start(self, region: int, attempt: int) -> None:
        self._started.append(self._session.task_slots)

    def run_region(self, errors: list[str], *, is_set_aside: bool = False) -> Exception | None:
        """Run a Spark job, which fails with each of the errors first; return why the region ends, if it does."""
        self._errors = errors
        failed: list[Exception] = []
        self.on_failed = lambda error, subtasks: failed.append(error)
        self._flows[0] = [] if is_set_aside else [threading.current_thread()]
        self._run_flow(0, 1, TransportShuffle(OutletTask((), {}, b"", 1), None, "numbers"))
        del self._flows[0]
        return failed[0] if failed else None

    def _run_job(self, region: int, shuffle: TransportShuffle, description: str) -> None:
        if self._errors:
            raise RuntimeError(self._errors.pop(0))


class Attempts:
    """A job whose attempts start on a session; `jobs` has the task slots that the session had at the start of each."""

    def __init__(self, log: pytest.LogCaptureFixture, task_slots_s: float) -> None:
        self._log = log
        self.session = session = Session(4)
        self.pool = InProcessSlots(1)
        self._graph = graph(summing)
        assert task_count(self._graph) == TASKS
        calls, reserved = SlotCalls(self.pool), reserve_task_slots(session, "job", TASKS)
        jobs = SparkJobGroup(session, "job", calls, reserved)
        self.flows = Flows(jobs, calls, reserved, task_slots_s)
        self.engine = ContinuousSlotEngine(self._graph, calls, jobs, self.flows, Heartbeat().stall_timeout_s)
        self.jobs = self.flows.note(session)
        self._deploying: threading.Thread | None = None
        self._results: list[Failure | None] = []

    def deploy(self, attempt: int) -> None:
        """Begin an attempt on another thread."""

        def run() -> None:
            self._results.append(self.engine.deploy(deployment(self._graph, attempt)))

        self._deploying = threading.Thread(target=run, daemon=True)
        self._deploying.start()

    @property
    def waits(self) -> bool:
        """Whether the attempt says that it waits; asked until it does, or has not waited."""
        assert self._deploying is not None
        until(lambda: bool(self.said) or not self._is_deploying)
        return self._is_deploying

    @property
    def _is_deploying(self) -> bool:
        return self._deploying is not None and self._deploying.is_alive()

    @property
    def said(self) -> list[str]:
        return [line for line in self._log.messages if "waits up to" in line]

    def result(self) -> Failure | None:
        """Return what became of the attempt."""
        assert self._deploying is not None
        self._deploying.join(30)
        return self._results.pop()


Begin = Callable[..., Attempts]


@pytest.fixture
def begin(caplog: pytest.LogCaptureFixture) -> Iterator[Begin]:
    """Begin a job, with its first attempt."""
    caplog.set_level(logging.WARNING, logger="ekorn")
    begun: list[Attempts] = []

    def start(task_slots_s: float = 300.0) -> Attempts:
        job = Attempts(caplog, task_slots_s)
        begun.append(job)
        job.deploy(0)
        assert job.result() is None
        assert job.jobs == [4]
        return job

    yield start
    for job in begun:
        job.engine.cancel_epoch()
        job.engine.shutdown()


def test_an_attempt_starts_when_the_executor_has_been_replaced(begin: Begin) -> None:
    job = begin()
    job.session.task_slots = 1
    job.deploy(1)
    assert job.waits
    assert job.jobs == [4], "Spark refuses a job that has too few task slots"
    job.session.task_slots = 2
    assert job.result() is None
    assert job.jobs == [4, 2]
    (line,) = job.said
    assert line == (
        "job job waits up to 300 s for task slots of Spark: "
        "the job needs 2 tasks at the same time, and the Spark session has 1 task slots"
    )


def test_a_spark_job_that_is_refused_for_lack_of_places_is_tried_until_they_come(begin: Begin) -> None:
    job = begin()
    assert job.flows.run_region([_REFUSAL, _REFUSAL]) is None
    (line,) = job.said
    assert "waits up to 300 s for task slots of Spark" in line and "INSUFFICIENT_SLOT" in line


@pytest.mark.parametrize(("error", "task_slots_s"), [(_REFUSAL, 0.0), ("a task has failed", 300.0)])
def test_a_spark_job_that_fails_otherwise_or_is_refused_too_long_ends_its_region(
    begin: Begin, error: str, task_slots_s: float
) -> None:
    job = begin(task_slots_s=task_slots_s)
    failed = job.flows.run_region([error])
    assert failed is not None and error in str(failed)


def test_the_refused_job_of_a_region_that_was_set_aside_is_not_tried_again(begin: Begin) -> None:
    job = begin()
    errors = [_REFUSAL, "never tried"]
    assert job.flows.run_region(errors, is_set_aside=True) is None
    assert errors == ["never tried"]


def test_an_attempt_does_not_take_the_places_that_another_job_holds(begin: Begin) -> None:
    job = begin()
    other = reserve_task_slots(job.session, "other", 2)
    job.session.task_slots = 3
    job.deploy(1)
    assert job.waits
    assert "of which job 'other' holds 2" in job.said[0]
    other.release()
    assert job.result() is None
    assert job.jobs == [4, 3]


def test_an_attempt_fails_if_the_places_do_not_come(begin: Begin) -> None:
    job = begin(task_slots_s=0.05)
    job.session.task_slots = 1
    job.deploy(1)
    failure = job.result()
    assert failure is not None and isinstance(failure.error, DeploymentError)
    assert "needs 2 tasks at the same time, and the Spark session has 1 task slots" in str(failure.error)
    assert job.jobs == [4]


def test_a_job_can_be_cancelled_while_an_attempt_waits(begin: Begin) -> None:
    job = begin()
    job.session.task_slots = 1
    job.deploy(1)
    assert job.waits
    job.engine.cancel_epoch()
    failure = job.result()
    assert failure is not None and "cancelled" in str(failure.error)
    assert job.jobs == [4]
