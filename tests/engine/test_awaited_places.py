"""An attempt of a continuous job on Spark waits for the places that a lost executor has taken away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tamias.engine.protocol import Failure
from tamias.engine.slots.slot_handle import Heartbeat
from tamias.engine.spark.driver_side import continuous_spark_engine
from tamias.engine.spark.driver_side.continuous_spark_engine import ContinuousSparkEngine
from tamias.engine.spark.driver_side.task_places import reserve_places, task_count
from tamias.errors import DeploymentError
from tamias.testing.local_slots import InProcessSlots
from tests.live_jobs import until
from tests.slot.small_job import deployment, graph, summing

TASKS = 2  # of the job: its source has one, and so has its sum


class Session:
    """A Spark session whose cluster loses and regains places, as far as the engine asks it."""

    master = "spark://cluster:7077"

    def __init__(self, places: int) -> None:
        self.places = places
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
        return self.places


class Slots(InProcessSlots):
    """Slots whose start may be watched."""

    on_ensure: Callable[[], None] = staticmethod(lambda: None)

    def ensure(self) -> list[int]:
        self.on_ensure()
        return super().ensure()


class Attempts:
    """A job whose attempts start on a session; `jobs` has the places that the session had at the start of each."""

    def __init__(self, session: Session, log: pytest.LogCaptureFixture) -> None:
        self.session, self._log = session, log
        self.jobs: list[int] = []
        self.pool = Slots(1)
        self._graph = graph(summing)
        assert task_count(self._graph) == TASKS
        self.engine = ContinuousSparkEngine(
            self._graph,
            session,
            self.pool,
            job_label="job",
            heartbeat=Heartbeat(),
            places=reserve_places(session, "job", TASKS),
        )
        self._deploying: threading.Thread | None = None
        self._results: list[Failure | None] = []

    def run_pipelined(self, context: Session, *_arguments: Any, **_settings: Any) -> None:
        self.jobs.append(context.places)

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


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Attempts]:
    caplog.set_level(logging.WARNING, logger="tamias")
    attempts = Attempts(Session(4), caplog)
    monkeypatch.setattr(continuous_spark_engine, "run_pipelined", attempts.run_pipelined)
    monkeypatch.setattr(continuous_spark_engine, "active_tasks", lambda context, group: 0)
    attempts.deploy(0)
    assert attempts.result() is None
    until(lambda: attempts.jobs == [4])
    yield attempts
    attempts.engine.cancel_epoch()
    attempts.engine.shutdown()


def test_an_attempt_starts_when_the_executor_has_been_replaced(job: Attempts) -> None:
    job.session.places = 1
    job.deploy(1)
    assert job.waits
    assert job.jobs == [4], "Spark refuses a job that has too few places"
    job.session.places = 2
    assert job.result() is None
    until(lambda: job.jobs == [4, 2])
    (line,) = job.said
    assert line == (
        "job job waits up to 300 s for places of Spark: "
        "the job needs 2 tasks at the same time, and the Spark session has places for 1"
    )


def test_an_attempt_waits_although_the_loss_is_noticed_after_the_start_of_its_slots(job: Attempts) -> None:
    job.pool.on_ensure = lambda: setattr(job.session, "places", 0)
    job.deploy(1)
    assert job.waits
    job.session.places = 4
    assert job.result() is None
    until(lambda: job.jobs == [4, 4])


def test_an_attempt_does_not_take_the_places_that_another_job_holds(job: Attempts) -> None:
    other = reserve_places(job.session, "other", 2)
    job.session.places = 3
    job.deploy(1)
    assert job.waits
    assert "of which job 'other' holds 2" in job.said[0]
    other.release()
    assert job.result() is None
    until(lambda: job.jobs == [4, 3])


def test_an_attempt_fails_if_the_places_do_not_come(job: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuous_spark_engine, "_PLACES_S", 0.05)
    job.session.places = 1
    job.deploy(1)
    failure = job.result()
    assert failure is not None and isinstance(failure.error, DeploymentError)
    assert "needs 2 tasks at the same time, and the Spark session has places for 1" in str(failure.error)
    assert job.jobs == [4]


def test_a_job_can_be_cancelled_while_an_attempt_waits(job: Attempts) -> None:
    job.session.places = 1
    job.deploy(1)
    assert job.waits
    job.engine.cancel_epoch()
    failure = job.result()
    assert failure is not None and "cancelled" in str(failure.error)
    assert job.jobs == [4]
