"""A bounded broadcast input has been read before the first record of the other input, also in continuous jobs."""

from typing import Any

import pytest

from ekorn.common import Types
from ekorn.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.state import MapStateDescriptor
from ekorn.testing.scripted import ContinuousScriptedEngine, Crash, Script, run_scripted
from tests.conformance.disturbed_jobs import environment

pytestmark = pytest.mark.usefixtures("silent_restarts")

RULES = list(range(40))
EVENTS = list(range(300))
SEEN = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class Rules:
    """Emits how many rules there are when an event comes."""

    def process_element(self, value: int, ctx: Any) -> Any:
        yield value, len(list(ctx.get_broadcast_state(SEEN).keys()))

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        ctx.get_broadcast_state(SEEN).put(value, value)


class CountRules(Rules, BroadcastProcessFunction):
    pass


class CountRulesOfKeys(Rules, KeyedBroadcastProcessFunction):
    pass


def drawn(env: StreamExecutionEnvironment, *, keyed: bool, chain: bool) -> DataStream:
    rules: Any = env.from_collection(RULES, Types.LONG())
    if chain:  # an operator between the source and the broadcast, behind an exchange
        rules = rules.key_by(lambda rule: rule).map(lambda rule: rule, Types.LONG())
    events: Any = env.from_collection(EVENTS, Types.LONG()).rebalance().map(lambda event: event, Types.LONG())
    if keyed:
        events = events.key_by(lambda event: event % 7, Types.LONG())
    found: DataStream = events.connect(rules.broadcast(SEEN)).process(CountRulesOfKeys() if keyed else CountRules())
    return found


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize(("keyed", "chain"), [(False, False), (True, True)])
@pytest.mark.parametrize("unaligned", [False, True])
def test_every_event_sees_all_rules_whoever_takes_turns(turns, keyed, chain, unaligned):
    env = environment(parallelism=3)
    env.get_checkpoint_config().enable_unaligned_checkpoints(unaligned)
    run = run_scripted(drawn(env, keyed=keyed, chain=chain), Script(crashes=[Crash("after-epoch", 2)], turns=turns))
    assert isinstance(run.engine, ContinuousScriptedEngine)
    assert sorted(run.records) == [(event, len(RULES)) for event in EVENTS]
