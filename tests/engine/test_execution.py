"""Which jobs run continuously: those that do not need epochs, in sessions that can run all of their tasks at once."""

from __future__ import annotations

from typing import Any

import pytest

from tamias.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tamias.engine.execution import reason_for_epochs
from tamias.engine.spark.driver_side.pipelined_job import SESSION_SETTINGS, unfit_session


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_a_streaming_job_needs_no_epochs() -> None:
    env = environment()
    env.from_collection([1, 2]).key_by(lambda v: v).map(lambda v: v).print()
    assert reason_for_epochs(env.job_graph("job")) is None


def test_batch_needs_epochs() -> None:
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1, 2]).print()
    assert reason_for_epochs(env.job_graph("job")) == "the job runs in BATCH mode"


def test_a_loop_needs_epochs() -> None:
    env = environment()
    loop = env.from_collection([1, 2]).iterate(100)
    loop.close_with(loop.map(lambda v: v - 1).filter(lambda v: v > 0))
    loop.print()
    assert "loop" in (reason_for_epochs(env.job_graph("job")) or "")


class Session:
    """A Spark context, as far as it is asked."""

    def __init__(self, version: str, settings: dict[str, str], places: int) -> None:
        self.version = version
        self._settings = settings
        self._places = places
        self._jsc = self

    def getConf(self) -> dict[str, str]:
        return self._settings

    def sc(self) -> Any:
        return self

    def resourceProfileManager(self) -> Any:
        return self

    def defaultResourceProfile(self) -> Any:
        return self

    def maxNumConcurrentTasks(self, profile: Any) -> int:
        return self._places


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (Session("4.3.0", SESSION_SETTINGS, 6), None),
        (Session("5.0.1", SESSION_SETTINGS, 6), None),
        (Session("4.2.9", SESSION_SETTINGS, 6), "Spark has version 4.2.9"),
        (Session("4.3.0", {}, 6), "started without spark.python.udf.pipelined.enabled=true"),
        (
            Session("4.3.0", SESSION_SETTINGS, 5),
            "6 tasks at the same time, and the Spark session has places for 5",
        ),
    ],
)
def test_a_session_serves_a_job_or_the_reason_is_named(session: Session, reason: str | None) -> None:
    found = unfit_session(session, 6)
    assert (found is None) if reason is None else (found is not None and reason in found)
