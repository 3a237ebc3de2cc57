"""A slot that reaches the limit of its memory says so, and its job restarts or fails as its restart strategy says."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from ekorn.common import Configuration, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, RuntimeContext
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobExecutionError

LIMIT_MB = 160


class Hoard(KeyedProcessFunction):
    """Keeps 20 KB for each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.hoard = runtime_context.get_state(ValueStateDescriptor("hoard", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.hoard.update(b"%d" % value + bytes(20_000))
        yield value


@pytest.mark.parametrize("execution", ["epochs", "continuous"])
def test_a_slot_at_its_limit_says_what_fills_it_and_the_restart_strategy_applies(
    execution: str, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = Configuration.from_dict(
        {
            "ekorn.execution": execution,
            "taskmanager.memory.process.size": f"{LIMIT_MB} mb",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1",
            "restart-strategy.fixed-delay.delay": "0 s",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    kept = env.from_sequence(1, 200_000).key_by(lambda n: n % 100_000).process(Hoard()).name("hoarder")
    kept.filter(lambda n: False).print()
    with caplog.at_level(logging.WARNING, "ekorn"), pytest.raises(JobExecutionError) as failed:
        env.execute("hoarding")
    why = failed.value.message
    assert re.match(rf"slot \d has ended, because it uses \S+ MiB of the {LIMIT_MB}.0 MiB that it may use", why)
    assert "largest states: 'hoard' of operator 'hoarder'" in why
    assert "raise taskmanager.memory.process.size" in why
    assert failed.value.restarts == 1
    assert any("the memory of slot" in each and "is short" in each for each in caplog.messages), "the soft limit"
    (restart,) = [each for each in caplog.messages if "restarts in 0 ms" in each]
    assert "slot 0 has ended, because it uses" in restart
