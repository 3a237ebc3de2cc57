"""Which jobs run continuously: those that do not need epochs, in sessions that can run all of their tasks at once."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.engine.execution import reason_for_epochs
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.driver_side import engine_choice
from ekorn.engine.spark.driver_side.engine_choice import engine_on_spark
from ekorn.engine.spark.driver_side.pipelined_job import (
    SESSION_SETTINGS,
    blob_bytes_for,
    check_session,
    rows_in_flight,
)
from ekorn.engine.spark.driver_side.task_slots import UnfitSession, reserve_task_slots
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
    assert reason_for_epochs(env.job_graph("job")) == "the job runs in BATCH mode (execution.runtime-mode)"


def test_a_loop_needs_epochs() -> None:
    env = environment()
    loop = env.from_collection([1, 2]).iterate(100)
    loop.close_with(loop.map(lambda v: v - 1).filter(lambda v: v > 0))
    loop.print()
    assert "loop" in (reason_for_epochs(env.job_graph("job")) or "")


class Session:
    """A Spark session and its context, as far as they are asked."""

    master = "local[2]"

    def __init__(
        self, version: str, settings: dict[str, str], places: int, fields: tuple[str, ...] = ("dependencies_",)
    ) -> None:
        self.version = version
        rdd = SimpleNamespace(getDeclaredFields=lambda: [SimpleNamespace(getName=name.strip) for name in fields])
        of_java = SimpleNamespace(Class=SimpleNamespace(forName={"org.apache.spark.rdd.RDD": rdd}.__getitem__))
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=of_java))
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
    ("session", "reason", "remedy"),
    [
        (Session("4.3.0", SESSION_SETTINGS, 6), "", ""),
        (Session("5.0.1", SESSION_SETTINGS, 6), "", ""),
        (Session("4.2.9", SESSION_SETTINGS, 6), "Spark has version 4.2.9", "install pyspark 4.3"),
        (Session("4.3.0", {}, 6), "", ""),
        *(
            (Session("4.3.0", {key: "true"}, 6), f"the Spark session has {key}=true", f"start it with {key}=false")
            for key in ("spark.dynamicAllocation.enabled", "spark.speculation")
        ),
        (Session("9.0.0", {}, 6, fields=("deps",)), "Spark 9.0.0 keeps the dependencies of an RDD", "pyspark"),
        (
            Session("4.3.0", SESSION_SETTINGS, 5),
            "6 tasks at the same time, and the Spark session has 5 task slots",
            "spark.master=local[6]",
        ),
    ],
)
def test_a_session_serves_a_job_or_the_reason_and_what_to_set_are_named(
    session: Session, reason: str, remedy: str
) -> None:
    found, advice = "", ""
    try:
        check_session(session)
        reserve_task_slots(session, "job", 6).release()
    except UnfitSession as unfit:
        found, advice = str(unfit), unfit.remedy
    assert bool(found) == bool(reason) and reason in found
    assert bool(advice) == bool(remedy) and remedy in advice


def test_the_places_of_a_job_are_not_given_to_another_until_it_ends() -> None:
    session, other = Session("4.3.0", SESSION_SETTINGS, 8), Session("4.3.0", SESSION_SETTINGS, 8)
    first = reserve_task_slots(session, "first", 6)
    second = reserve_task_slots(session, "second", 2)
    with pytest.raises(UnfitSession, match=r"8 task slots, of which job 'first' holds 6, job 'second' holds 2"):
        reserve_task_slots(session, "third", 1)
    reserve_task_slots(other, "third", 8).release()
    assert (first.left_of(8), second.left_of(8)) == (6, 2), "reactive mode does not ask for what others hold"
    second.release()
    second.release()  # nothing of what others hold
    with pytest.raises(UnfitSession, match="needs 3 tasks"):
        reserve_task_slots(session, "third", 3)
    first.release()
    reserve_task_slots(session, "third", 8).release()


class JavaSession:
    """A session whose Java settings have sizes in bytes."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._jsc = self

    def sc(self) -> Any:
        return self

    def conf(self) -> Any:
        return self

    def getSizeAsBytes(self, key: str, default: str) -> int:
        given = self._settings.get(key, default)
        return int(given.rstrip("km")) << {"k": 10, "m": 20}.get(given[-1], 0)


def test_blobs_are_smaller_where_spark_lets_more_of_them_wait() -> None:
    ours, sparks = rows_in_flight(JavaSession(SESSION_SETTINGS)), rows_in_flight(JavaSession({}))
    assert (ours, sparks) == (8, 1024)
    assert blob_bytes_for(ours, readers=4) == 1 << 20
    assert blob_bytes_for(sparks, readers=4) == 64 << 10
    assert blob_bytes_for(ours, readers=200) * 400 <= 64 << 20, "two rows may wait for each reader"
    assert blob_bytes_for(ours, readers=100_000) == 64 << 10, "smaller blobs would cost more than they save"


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


def test_auto_says_in_one_line_why_a_job_runs_in_epochs_and_what_would_change_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="ekorn")
    old, in_epochs = Session("4.2.9", Settings(SESSION_SETTINGS), 8), object()
    monkeypatch.setattr(engine_choice, "start_with_slots", lambda count, **settings: (settings["session"], None))
    monkeypatch.setattr(engine_choice, "epoch_engine", lambda *arguments, **settings: in_epochs)
    env = environment()
    env.from_collection([1, 2]).print()
    chosen = engine_on_spark(
        env.job_graph("job"),
        "auto",
        {},
        job_name="job",
        job_label="job",
        python=PythonDependencies(),
        heartbeat=Heartbeat(),
        links=LinkSettings(),
        session=old,
    )
    assert chosen is in_epochs
    (line,) = [message for message in caplog.messages if "runs in epochs" in message]
    assert line == (
        "job job runs in epochs: Spark has version 4.2.9; its stages can run at the same time since version 4.3; "
        "to run it continuously, install pyspark 4.3 or newer"
    )
