"""How many task slots a session of ours starts with, and what it has if Spark's scheduler is not the one we know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.driver_side import engine_choice, task_slots
from ekorn.engine.spark.driver_side.more_task_slots import add_task_slots
from ekorn.engine.spark.driver_side.task_slots import UnfitSession, reserve_task_slots, task_slots_for


def test_only_a_job_that_may_run_continuously_starts_spark_with_more_task_slots_than_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Started(Exception):
        pass

    def start(count: int, **settings: Any) -> Any:
        raise Started(settings["task_slots"])

    monkeypatch.setattr(engine_choice, "start_with_slots", start)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(20)
    env.from_sequence(1, 10).key_by(lambda n: n).map(lambda n: n).print()
    asked = {}
    for execution in ("epochs", "continuous", "auto"):
        with pytest.raises(Started) as started:
            engine_choice.engine_on_spark(
                env.job_graph("job"),
                execution,
                {},
                job_name="job",
                job_label="job",
                python=PythonDependencies(),
                heartbeat=Heartbeat(),
                links=LinkSettings(),
                session=None,
            )
        asked[execution] = started.value.args[0]
    assert asked["epochs"] is None
    assert asked["continuous"] == asked["auto"] >= 2 * 40, "other jobs go on beside it"


class OurSession:
    """A session of ours with a scheduler that keeps its task slots in a place of its own."""

    applicationId = "our session"

    def __init__(self, total: int) -> None:
        self._jsc = self
        self._total = total
        lookup = SimpleNamespace(forName=self._unknown)
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(Class=lookup)))

    def _unknown(self, name: str) -> Any:
        raise Py4JError(f"no field in {name}")

    def sc(self) -> Any:
        return self

    def schedulerBackend(self) -> Any:
        return self

    def resourceProfileManager(self) -> Any:
        return self

    def defaultResourceProfile(self) -> Any:
        return self

    def totalCores(self) -> int:
        return self._total

    def maxNumConcurrentTasks(self, profile: Any) -> int:
        return self._total


def test_a_job_that_grows_within_its_session_gets_no_new_task_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []
    session = OurSession(4)

    def add(context: Any, count: int) -> int:
        added.append(count)
        return session.totalCores() + count

    monkeypatch.setattr(task_slots, "is_sized_by_us", lambda context: True)
    monkeypatch.setattr(task_slots, "add_task_slots", add)
    reserved = reserve_task_slots(session, "job", 2)
    reserved.resize(session, 4)  # reactive mode takes all that there are
    assert added == []
    reserved.resize(session, 5)
    assert added == [task_slots_for(5) - 4]
    added.clear()
    reserved.resize(session, 2)
    other = reserve_task_slots(session, "other", 2)  # it would leave none to a job in epochs
    assert added == [task_slots_for(4) - 4]
    other.release()
    reserved.release()


def test_a_job_is_refused_if_sparks_scheduler_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_slots, "is_sized_by_us", lambda context: True)
    session = OurSession(4)
    assert add_task_slots(session, task_slots_for(6)) == 4
    with pytest.raises(UnfitSession, match="needs 6 tasks at the same time, and the Spark session has 4 task slots"):
        reserve_task_slots(session, "job", 6)
    reserve_task_slots(session, "job", 4).release()
