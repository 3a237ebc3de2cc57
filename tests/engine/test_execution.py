"""Which jobs run continuously: those that do not need epochs, in sessions that can run all of their tasks at once."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tamias.config.link_settings import LinkSettings
from tamias.config.python_dependencies import PythonDependencies
from tamias.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tamias.engine.execution import reason_for_epochs
from tamias.engine.slots.slot_handle import Heartbeat
from tamias.engine.spark.driver_side.engine_choice import engine_on_spark
from tamias.engine.spark.driver_side.pipelined_job import SESSION_SETTINGS, check_session
from tamias.engine.spark.driver_side.task_places import UnfitSession, reserve_places
from tests.live_jobs import is_running, parent_of, until


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
    """A Spark session and its context, as far as they are asked."""

    master = "local[2]"

    def __init__(self, version: str, settings: dict[str, str], places: int) -> None:
        self.version = version
        self._settings = settings
        self._places = places
        self._jsc = self.sparkContext = self
        self.applicationId = f"session-{id(self)}"

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
    found = None
    try:
        check_session(session)
        reserve_places(session, "job", 6).release()
    except UnfitSession as unfit:
        found = str(unfit)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_the_places_of_a_job_are_not_given_to_another_until_it_ends() -> None:
    session, other = Session("4.3.0", SESSION_SETTINGS, 8), Session("4.3.0", SESSION_SETTINGS, 8)
    first = reserve_places(session, "first", 6)
    second = reserve_places(session, "second", 2)
    with pytest.raises(UnfitSession, match=r"places for 8, of which job 'first' holds 6, job 'second' holds 2"):
        reserve_places(session, "third", 1)
    reserve_places(other, "third", 8).release()
    second.release()
    second.release()  # nothing of what others hold
    with pytest.raises(UnfitSession, match="needs 3 tasks"):
        reserve_places(session, "third", 3)
    first.release()
    reserve_places(session, "third", 8).release()


class Settings(dict[str, str]):
    def getAll(self) -> list[tuple[str, str]]:
        return list(self.items())


class Broken(Session):
    """A session that fails when it is asked for its places."""

    def maxNumConcurrentTasks(self, profile: Any) -> int:
        raise RuntimeError("the JVM is gone")


def test_no_slot_is_left_if_the_session_cannot_be_asked() -> None:
    env = environment()
    env.from_collection([1, 2]).print()
    broken = Broken("4.3.0", Settings(SESSION_SETTINGS), 8)
    before = children()
    with pytest.raises(RuntimeError, match="the JVM is gone"):
        engine_on_spark(
            env.job_graph("job"),
            "continuous",
            {},
            job_name="job",
            job_label="job",
            python=PythonDependencies(),
            heartbeat=Heartbeat(),
            links=LinkSettings(),
            session=broken,
        )
    until(lambda: children() == before)


def children() -> set[int]:
    """Return the child processes of this one that run."""
    found = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid for pid in found if parent_of(pid) == os.getpid() and is_running(pid)}
