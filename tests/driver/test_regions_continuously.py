"""Where jobs run continuously, a failure restarts its region while the other regions go on, and all output is exact."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from typing import Any

import pytest

from ekorn.common import Configuration, RestartStrategies, WatermarkStrategy
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.engine.protocol import EpochResult
from ekorn.functions.sink_contract import SinkFunction, TwoPhaseCommitSinkFunction
from ekorn.functions.state.checkpointed import CheckpointListener
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.regions import regions
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.testing.scripted import (
    ContinuousScriptedEngine,
    Crash,
    Run,
    Script,
    ScriptedSource,
    run_scripted,
    split_evenly,
)
from tests.driver.savepoint_programs import Count

NAMES = ("a", "b", "c")
RECORDS = list(range(24))
MODULUS = 3
EXPECTED = Counter((n % MODULUS, n // MODULUS + 1) for n in RECORDS)

SEEN: list[tuple[str, Any]] = []  # what sinks without transactions were given, over all attempts
COMMITTED: dict[int, tuple[str, list[Any]]] = {}  # by transaction
AHEAD: dict[str, set[Any]] = {}  # the records at which each pipeline still fails
HEARD: list[tuple[str, int, int]] = []  # pipeline, attempt, aborted checkpoint
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def a_new_world(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="ekorn")
    SEEN.clear()
    COMMITTED.clear()
    AHEAD.clear()
    HEARD.clear()


class Note(SinkFunction):
    def __init__(self, name):
        self.name = name

    def invoke(self, value, context):
        SEEN.append((self.name, value))


class Till(TwoPhaseCommitSinkFunction):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def begin_transaction(self):
        return [next(NUMBERS), []]

    def invoke(self, transaction, value, context):  # type: ignore[override]
        transaction[1].append(value)

    def pre_commit(self, transaction):
        pass

    def commit(self, transaction):
        COMMITTED.setdefault(transaction[0], (self.name, list(transaction[1])))

    def abort(self, transaction):
        pass


class Stumble(MapFunction):
    """Fails on some records the first time they arrive, and now and then when it is opened."""

    def __init__(self, name):
        self.name = name

    def open(self, runtime_context):
        if runtime_context.get_attempt_number() > 0:
            SEEN.append(("opened again", self.name))
            self.map("opened again")

    def map(self, value):
        ahead = AHEAD.get(self.name, set())
        if value in ahead:
            ahead.remove(value)
            raise RuntimeError(f"{self.name} stumbled over {value}")
        return value


def environment(delay_ms: int = 0, parallelism: int = 2, **keys: Any) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(f"execution.checkpointing.{key.replace('_', '-')}", str(value).lower())
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(9, delay_ms))
    return env


def pipelines(env: StreamExecutionEnvironment, *, apart: bool = True) -> list[DataStream]:
    """Draw three pipelines of two levels each: regions, with slots of their own if they are `apart`."""
    counted = []
    for name in NAMES:
        source = ScriptedSource(split_evenly(RECORDS, 2), (2,))
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), f"source {name}").uid(f"source {name}")
        if apart:
            numbers = numbers.slot_sharing_group(name)
        stream = numbers.map(Stumble(name)).key_by(lambda n: n % MODULUS).process(Count()).uid(f"count {name}")
        stream.add_sink(Till(name)).uid(f"till {name}")
        stream.add_sink(Note(name)).uid(f"note {name}")
        counted.append(stream)
    return counted


def restarted(run: Run) -> set[str]:
    """Return the pipelines of which a subtask was restarted; check that all of their subtasks were."""
    statistics = run.handle.view.statistics
    assert statistics is not None
    lives, graph = statistics.lives.all(), statistics.graph
    hit = {region for subtask, region in regions(graph).items() if lives[subtask].attempt > 0}
    again = {subtask for subtask, region in regions(graph).items() if region in hit}
    assert all(lives[subtask].attempt > 0 for subtask in again)
    return {name for name in NAMES for of in again if f"source {name}" in graph.vertices[of.vertex].name}


def assert_exact(*, once: set[str]) -> None:
    """Assert that every record was committed once, and that the pipelines which went on have seen each once."""
    for name in NAMES:
        committed = Counter(value for of, values in COMMITTED.values() if of == name for value in values)
        assert committed == EXPECTED, name
        seen = Counter(value for of, value in SEEN if of == name)
        assert seen == EXPECTED if name in once else set(seen) == set(EXPECTED), name


@pytest.mark.parametrize("apart", [True, False], ids=["slots apart", "slots shared"])
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("at", [1, 8, 23])
def test_a_failing_pipeline_goes_back_and_the_others_go_on(apart: bool, turns: int, at: int) -> None:
    env = environment()
    collected = pipelines(env, apart=apart)[1]
    AHEAD["a"] = {at}
    run = run_scripted(collected, Script(checkpoints=[False, True], turns=turns))
    assert run.handle.progress().restarts == 1
    assert restarted(run) == {"a"}
    assert_exact(once={"b", "c"})
    assert Counter(run.records) == EXPECTED


@pytest.mark.parametrize("turns", range(4))
def test_what_was_collected_of_the_failed_pipeline_is_collected_anew(turns: int) -> None:
    env = environment()
    collected = pipelines(env)[0]
    AHEAD["a"] = {11}
    run = run_scripted(collected, Script(checkpoints=[False, False, True], turns=turns))
    assert restarted(run) == {"a"}
    assert Counter(run.records) == EXPECTED


@pytest.mark.parametrize(
    "keys", [{}, {"unaligned": True}, {"max_concurrent_checkpoints": 3}], ids=["aligned", "unaligned", "concurrent"]
)
@pytest.mark.parametrize(
    "crash",
    [*(Crash("in-epoch", n) for n in (1, 2, 3, 5, 8, 13, 21, 30)), *(Crash("in-notify", n) for n in (1, 2, 3, 5, 8))],
    ids=str,
)
def test_whichever_slot_is_killed_only_its_region_restarts(keys: dict[str, Any], crash: Crash) -> None:
    """A later crash takes everything, and shows that the checkpoints after the region's restart are consistent."""
    for turns in range(3):
        run = run_killed(keys, turns, crash)
        assert run.handle.progress().restarts == 1
        hit = restarted(run)
        assert len(hit) == 1
        assert_exact(once=set(NAMES) - hit)
        run_killed(keys, turns, crash, Crash("after-epoch", 3))
        assert_exact(once=set())


def run_killed(keys: dict[str, Any], turns: int, *crashes: Crash) -> Run:
    SEEN.clear()
    COMMITTED.clear()
    env = environment(**keys)
    collected = pipelines(env)[turns]
    script = Script(checkpoints=[False, True, True], crashes=crashes, kills_one_slot=True, turns=turns)
    run = run_scripted(collected, script)
    assert Counter(run.records) == EXPECTED
    return run


@pytest.mark.parametrize("turns", range(3))
def test_the_others_run_while_a_region_waits_for_its_restart(turns: int) -> None:
    env = environment(delay_ms=100)
    pipelines(env)
    AHEAD["a"] = {0}
    run = run_scripted(env, Script(checkpoints=[False] * 9 + [True], turns=turns))
    again = SEEN.index(("opened again", "a"))
    seen_before = Counter(name for name, _ in SEEN[:again])
    assert seen_before["b"] == seen_before["c"] == len(RECORDS), "all of their input, in the time of the delay"
    assert restarted(run) == {"a"}
    assert_exact(once={"b", "c"})
    assert run.handle.progress().restarts == 1


@pytest.mark.parametrize("turns", range(3))
def test_a_region_that_fails_while_another_waits_restarts_with_it(turns: int) -> None:
    env = environment(delay_ms=100)
    pipelines(env)
    AHEAD["a"], AHEAD["b"] = {0}, {23}
    run = run_scripted(env, Script(checkpoints=[False] * 9 + [True], turns=turns))
    assert run.handle.progress().restarts == 2, "the restart strategy is asked for each"
    assert run.handle.progress().attempt == 1
    assert restarted(run) == {"a", "b"}
    assert_exact(once={"c"})


@pytest.mark.parametrize("apart", [True, False], ids=["slots apart", "slots shared"])
def test_a_region_that_cannot_be_opened_again_restarts_alone(apart: bool) -> None:
    env = environment()
    pipelines(env, apart=apart)
    AHEAD["a"] = {3, "opened again"}
    run = run_scripted(env, Script(checkpoints=[False, True], turns=1))
    assert run.handle.progress().restarts == 2
    assert restarted(run) == {"a"}
    assert_exact(once={"b", "c"})


def test_no_checkpoint_is_taken_while_a_region_waits_and_the_one_in_flight_is_aborted() -> None:
    env = environment(delay_ms=50)
    pipelines(env)
    script = Script(checkpoints=[False, True], crashes=[Crash("in-epoch", 14)], kills_one_slot=True, turns=2)
    run = run_scripted(env, script)
    carried = [order.checkpoint_id for order in run.epochs]
    assert run.handle.progress().checkpoints_failed == 1
    assert carried.count(1) == 1, "an aborted checkpoint is never completed by another attempt"
    behind = carried[carried.index(1) + 1 :]
    assert behind[0] is None, "marks go on in the other regions, without a checkpoint"
    assert_exact(once=set(NAMES) - restarted(run))


@pytest.mark.parametrize("turns", range(3))
def test_the_records_that_the_other_regions_have_read_stay_counted(turns: int) -> None:
    env = environment(delay_ms=100)
    pipelines(env)
    AHEAD["a"] = {23}
    run = run_scripted(env, Script(checkpoints=[False] * 9 + [True], turns=turns))
    assert run.handle.progress().records_read == len(NAMES) * len(RECORDS)


class Hears(MapFunction, CheckpointListener):
    """Notes of which aborted checkpoints it hears, and in which attempt."""

    def __init__(self, name):
        self.name = name

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        pass

    def notify_checkpoint_aborted(self, checkpoint_id):
        HEARD.append((self.name, self.attempt, checkpoint_id))


@pytest.mark.parametrize("turns", [None, 0, 1], ids=["epochs", "continuous", "in another order"])
@pytest.mark.parametrize("delay_ms", [0, 50])
def test_the_regions_that_go_on_hear_of_the_checkpoint_that_the_failure_has_aborted(
    turns: int | None, delay_ms: int
) -> None:
    for nth in (4, 5, 6):  # of the slots that take part in the second epoch, which carries the first checkpoint
        HEARD.clear()
        env = environment(delay_ms=delay_ms, parallelism=1)
        for name in NAMES:
            source = ScriptedSource([RECORDS], (2,))
            numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), f"source {name}")
            numbers.slot_sharing_group(name).map(Hears(name)).add_sink(Note(name))
        script = Script(checkpoints=[False, True], crashes=[Crash("in-epoch", nth)], kills_one_slot=True, turns=turns)
        run = run_scripted(env, script)
        assert run.handle.progress().checkpoints_failed == 1
        assert sorted(HEARD) == [(name, 0, 1) for name in NAMES if name not in restarted(run)]


def test_the_restart_does_not_wait_for_marks_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_ms: list[float] = []

    def back_pressured(
        engine: ContinuousScriptedEngine, order: MarkOrder, within_s: float
    ) -> EpochResult[MarkAck] | None:
        waited_ms.append(within_s * 1000)
        engine._clock.advance(round(within_s * 1000))
        return None

    monkeypatch.setattr(ContinuousScriptedEngine, "run_others", back_pressured)
    env = environment(delay_ms=100)
    pipelines(env)
    AHEAD["a"] = {8}
    run = run_scripted(env, Script(checkpoints=[False] * 9 + [True], turns=1))
    assert waited_ms == [100], "the delay, and not longer"
    assert restarted(run) == {"a"}
    assert_exact(once={"b", "c"})


def test_with_full_failover_everything_goes_back() -> None:
    env = environment()
    full = Configuration()
    full.set_string("jobmanager.execution.failover-strategy", "full")
    env.configure(full)
    pipelines(env)
    AHEAD["a"] = {8}
    run = run_scripted(env, Script(checkpoints=[False, True], turns=1))
    assert restarted(run) == set(NAMES)
    assert_exact(once=set())


def test_the_slices_of_a_job_without_exchanges_fail_one_by_one() -> None:
    env = environment(parallelism=3)
    source = ScriptedSource([[n, n + 3, n + 6] for n in range(3)], (1,))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "slices").map(Stumble("a"))
    AHEAD["a"] = {4}
    numbers.add_sink(Note("slice"))
    run = run_scripted(numbers, Script(checkpoints=[False] * 20 + [True], turns=4))
    assert sorted(run.records) == list(range(9))
    seen = Counter(value for _, value in SEEN)
    assert all(seen[n] == 1 for n in range(9) if n % 3 != 1)
    statistics = run.handle.view.statistics
    assert statistics is not None
    assert {of for of, life in statistics.lives.all().items() if life.attempt} == {SubtaskId(0, 1)}
