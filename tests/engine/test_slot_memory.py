"""The memory of slots that are processes: their limit, what they say at it, and what the job does then."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest

from ekorn.common import Configuration, Types
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, RuntimeContext
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.errors import JobExecutionError
from ekorn.testing.process_engine import on_process_engine

LIMIT = {"taskmanager.memory.process.size": "120 mb"}


def job(settings: dict[str, str], restarts: int = 0) -> StreamExecutionEnvironment:
    strategy = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": str(restarts),
        "restart-strategy.fixed-delay.delay": "0 s",
    }
    configuration = Configuration.from_dict(strategy | settings)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


class Hoard(KeyedProcessFunction):
    """Keeps 20 KB for each key, and little in another state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.hoard = runtime_context.get_state(ValueStateDescriptor("hoard", Types.PICKLED_BYTE_ARRAY()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.hoard.update(b"%d" % value + bytes(20_000))
        self.seen.put(value, value)


def hoarding(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_sequence(1, 50_000).key_by(lambda n: n).process(Hoard()).name("hoarder")


@pytest.mark.heavy
@pytest.mark.parametrize("registering", [False, True])
@pytest.mark.parametrize("continuous", [False, True])
def test_a_slot_at_its_limit_ends_with_what_fills_it_and_the_job_restarts(
    registering: bool, continuous: bool, caplog: pytest.LogCaptureFixture
) -> None:
    env = job(LIMIT, restarts=1)
    hoarding(env).print()
    engine = on_process_engine(registering=registering, continuous=continuous)
    with engine, caplog.at_level(logging.WARNING, "ekorn"), pytest.raises(JobExecutionError) as failed:
        env.execute("hoarding")
    why = failed.value.message
    assert why.startswith("slot 0 has ended, because it uses ") and "of the 120.0 MiB that it may use" in why
    assert "is state on the heap" in why and "largest states: 'hoard' of operator 'hoarder' (about " in why
    assert why.index("'hoard'") < why.index("'seen'"), "the largest comes first"
    assert "raise taskmanager.memory.process.size, use more slots, or keep state in RocksDB" in why
    assert failed.value.restarts == 1
    (restart,) = [each for each in caplog.messages if "restarts in 0 ms" in each]
    assert "slot 0 has ended" in restart
    (warning,) = [each for each in caplog.messages if "is short" in each]
    assert warning.startswith("operator 'hoarder': the memory of slot 0 is short: it uses ")


@pytest.mark.heavy
def test_a_setting_that_is_too_small_again_and_again_is_blamed(caplog: pytest.LogCaptureFixture) -> None:
    env = job(LIMIT, restarts=3)
    hoarding(env).print()
    with on_process_engine(), caplog.at_level(logging.WARNING, "ekorn"), pytest.raises(JobExecutionError):
        env.execute("hoarding")
    (advice,) = [each for each in caplog.messages if "restarts do not help" in each]
    assert "the same failure ended 3 attempts in a row" in advice
    assert "raise taskmanager.memory.process.size and start the program again" in advice


@pytest.mark.heavy
def test_objects_of_a_function_count_and_a_restart_begins_without_them(caplog: pytest.LogCaptureFixture) -> None:
    """The first attempt keeps 200 MB outside of state. The second attempt is in a new process, and keeps nothing."""
    env = job(LIMIT, restarts=1)
    first = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"hoarded-{os.getpid()}")
    kept: list[bytes] = []

    def keep(number: int) -> int:
        if number == 0 and not os.path.exists(first):
            with open(first, "w"):
                pass
            kept.extend(b"%d" % each + bytes(20_000) for each in range(10_000_000))
        return number

    numbers = env.from_sequence(0, 9).map(keep).name("keeper")
    try:
        logged = caplog.at_level(logging.WARNING, "ekorn")
        with on_process_engine(), logged, numbers.execute_and_collect("keeping") as found:
            assert sorted(found) == list(range(10))
    finally:
        os.unlink(first)
    (restart,) = [each for each in caplog.messages if "restarts in 0 ms" in each]
    assert "largest objects: 'kept' of operator 'keeper' (about " in restart and "or keep less in functions" in restart


@pytest.mark.heavy
def test_state_in_rocksdb_stays_within_managed_memory() -> None:
    """300 MB of state in a slot that may use 220 MB."""
    env = job({"taskmanager.memory.process.size": "220 mb", "state.backend.type": "rocksdb"})
    count = hoarding_little(env)
    with on_process_engine(), count.execute_and_collect("on disk") as found:
        assert sum(found) == 15_000


class HoardOnce(Hoard):
    """Keeps 20 KB for each key, and tells of each."""

    def process_element(self, value: int, ctx: Any) -> Any:
        self.hoard.update(os.urandom(20_000))
        yield 1


def hoarding_little(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_sequence(1, 15_000).key_by(lambda n: n).process(HoardOnce()).name("hoarder")
