"""A keyed stream connected with a broadcast one: the state of all keys, timers, and side outputs of both sides."""

from typing import Any

import pytest

from ekorn.common import Types
from ekorn.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedStateFunction,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeDomain,
)
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.errors import JobExecutionError
from ekorn.testing.by_epoch import by_epoch, timed
from ekorn.testing.local_run import collect_locally
from ekorn.testing.scripted import run_scripted
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tests.program.rules import RULES, Scale, beside, beside_keyed, first


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


# ------------------------------------------------------------------------------------- the states of all keys


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


ALL_KINDS = {
    "value": (ValueStateDescriptor("s", Types.INT()), lambda s, v: s.update(v), lambda s: s.value()),
    "list": (ListStateDescriptor("s", Types.INT()), lambda s, v: s.add(v), lambda s: list(s.get())[-1]),
    "map": (MapStateDescriptor("s"), lambda s, v: s.put("v", v), lambda s: s.get("v")),
    "reducing": (ReducingStateDescriptor("s", max, Types.INT()), lambda s, v: s.add(v), lambda s: s.get()),
    "aggregating": (AggregatingStateDescriptor("s", Sum(), Types.INT()), lambda s, v: s.add(v), lambda s: s.get()),
    "folding": (FoldingStateDescriptor("s", 0, lambda a, v: a + v), lambda s, v: s.add(v), lambda s: s.get()),
}


class Visit(KeyedBroadcastProcessFunction):
    """Keeps a number per key. A broadcast record emits all numbers and clears the odd ones."""

    def __init__(self, descriptor, write, read):
        self.descriptor, self.write, self.read = descriptor, write, read

    def open(self, runtime_context):
        get = {
            ValueStateDescriptor: "get_state",
            ListStateDescriptor: "get_list_state",
            MapStateDescriptor: "get_map_state",
            ReducingStateDescriptor: "get_reducing_state",
            AggregatingStateDescriptor: "get_aggregating_state",
            FoldingStateDescriptor: "get_folding_state",
        }[type(self.descriptor)]
        self.state = getattr(runtime_context, get)(self.descriptor)

    def process_element(self, value, ctx):
        self.write(self.state, value[1])

    def process_broadcast_element(self, value, ctx):
        found = []

        def visit(key, state):
            assert state is self.state
            found.append((value, key, self.read(state)))
            if self.read(state) % 2:
                state.clear()

        ctx.apply_to_keyed_state(self.descriptor, visit)
        return found


DATA: list[list[Any]] = [[("a", 1), (("t", 1), 2), (7, 4)], [("b", 5)], []]


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_broadcast_record_can_visit_the_state_of_every_key(env, kind, parallelism):
    env.set_parallelism(parallelism)
    rules = by_epoch(env, [["none yet"], ["first"], ["second", "third"]], "rules").broadcast(RULES)
    keyed = by_epoch(env, DATA, "data").key_by(first)
    found = run_scripted(keyed.connect(rules).process(Visit(*ALL_KINDS[kind]))).records
    assert sorted(found, key=repr) == sorted(
        [
            *[("first", key, number) for key, number in DATA[0]],
            *[("second", key, number) for key, number in [*DATA[0][1:], *DATA[1]]],
            *[("third", key, number) for key, number in DATA[0][1:]],
        ],
        key=repr,
    )


class Double(KeyedStateFunction):
    def __init__(self, found):
        self.found = found

    def process(self, key, state):
        state.update(2 * state.value())
        self.found.append((key, state.value()))


class VisitWithObject(Visit):
    def process_broadcast_element(self, value, ctx):
        found = []
        ctx.apply_to_keyed_state(self.descriptor, Double(found))
        return found


def test_an_object_may_visit_the_state_of_every_key(env):
    rules = by_epoch(env, [[], ["rule", "again"]], "rules").broadcast(RULES)
    keyed = by_epoch(env, [[("a", 1), ("b", 3)], []], "data").key_by(first)
    found = run_scripted(keyed.connect(rules).process(VisitWithObject(*ALL_KINDS["value"]))).records
    assert sorted(found) == [("a", 2), ("a", 4), ("b", 6), ("b", 12)]


def test_in_batch_mode_there_are_no_keys_to_visit_yet(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert collect_locally(beside_keyed(env, DATA[0], ["rule"]).process(Visit(*ALL_KINDS["value"]))) == []


class Misuse(KeyedBroadcastProcessFunction):
    """Makes a call in `process_broadcast_element` that is refused there."""

    def __init__(self, misuse):
        self.misuse = misuse

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("s", Types.INT()))
        self.timers = None

    def process_element(self, value, ctx):
        self.state.update(1)
        self.timers = ctx.timer_service()

    def process_broadcast_element(self, value, ctx):
        self.misuse(self, ctx)


def generator(key, state):
    yield key


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda self, ctx: ctx.timer_service(), "timers belong to a key, and a broadcast record has none"),
        (lambda self, ctx: self.timers.register_event_time_timer(5), "there is no current key"),
        (lambda self, ctx: self.timers.register_processing_time_timer(5), "there is no current key"),
        (lambda self, ctx: ctx.get_current_key(), "a broadcast record has no key"),
        (lambda self, ctx: self.state.value(), r"there is no current key; .* process_broadcast_element\(\)"),
        (lambda self, ctx: self.state.update(1), "there is no current key"),
        (lambda self, ctx: ctx.apply_to_keyed_state(ValueStateDescriptor("s", Types.INT()), None), "takes no results"),
        (lambda self, ctx: ctx.apply_to_keyed_state(ValueStateDescriptor("s"), generator), "takes no results"),
        (lambda self, ctx: ctx.apply_to_keyed_state(ListStateDescriptor("s"), print), "declared twice"),
        (lambda self, ctx: ctx.apply_to_keyed_state("s", print), "needs the descriptor of a keyed state, got 's'"),
    ],
)
def test_what_needs_a_key_is_refused_on_the_broadcast_side(env, misuse, message):
    data, rules = by_epoch(env, [[("a", 1)], []], "data"), by_epoch(env, [[], ["rule"]], "rules")
    with pytest.raises(JobExecutionError, match=message):
        run_scripted(data.key_by(first).connect(rules.broadcast(RULES)).process(Misuse(misuse)))


def test_after_a_visit_there_is_no_key_again(env):
    def visit_then_read(self, ctx):
        ctx.apply_to_keyed_state(ValueStateDescriptor("s", Types.INT()), lambda key, state: state.value())
        self.state.value()

    data, rules = by_epoch(env, [[("a", 1)], []], "data"), by_epoch(env, [[], ["rule"]], "rules")
    with pytest.raises(JobExecutionError, match="there is no current key"):
        run_scripted(data.key_by(first).connect(rules.broadcast(RULES)).process(Misuse(visit_then_read)))


def test_without_keys_there_are_no_states_to_visit(env):
    class Visits(Scale):
        def process_broadcast_element(self, value, ctx):
            ctx.apply_to_keyed_state(ValueStateDescriptor("s"), print)

    with pytest.raises(JobExecutionError, match=r"the stream connected to the broadcast stream has no keys"):
        collect_locally(beside(env, [], [1]).process(Visits()))


# --------------------------------------------------------------------------------------------- time and timers


class Timed(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])
        yield "element", value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time() > 0

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule", value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time() > 0

    def on_timer(self, timestamp, ctx):
        rules = sorted(ctx.get_broadcast_state(RULES).items())
        yield "fired", ctx.get_current_key(), ctx.timestamp(), ctx.time_domain(), ctx.current_watermark(), rules
        if timestamp == 5:
            ctx.timer_service().register_event_time_timer(6)


def test_the_keyed_side_has_timers_which_see_the_rules(env):
    data = timed(env.from_collection([(("a", 5), 1, 2), (("b", 9), 3, None)]))
    rules = timed(env.from_collection([(("r", 1), 4, 7)]))
    found = collect_locally(data.key_by(first).connect(rules.broadcast(RULES)).process(Timed()))
    event, seen = TimeDomain.EVENT_TIME, [("r", 1)]
    assert found == [
        ("rule", ("r", 1), 4, MIN_TIMESTAMP, True),
        ("element", ("a", 5), 1, MIN_TIMESTAMP, True),
        ("element", ("b", 9), 3, 2, True),  # the rules have ended, so the data say what time it is
        ("fired", "a", 5, event, MAX_TIMESTAMP, seen),
        ("fired", "a", 6, event, MAX_TIMESTAMP, seen),
        ("fired", "b", 9, event, MAX_TIMESTAMP, seen),
    ]


def test_in_batch_mode_timers_fire_behind_their_key(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    found = collect_locally(beside_keyed(env, [("b", 9), ("a", 7)], [("r", 1)]).process(Timed()))
    assert [f[:2] for f in found] == [
        ("rule", ("r", 1)), ("element", ("a", 7)), ("fired", "a"), ("element", ("b", 9)), ("fired", "b"),
    ]  # fmt: skip
    assert found[2][5] == [("r", 1)]


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp()


def test_results_have_the_time_of_their_record_or_timer(env):
    data, rules = timed(env.from_collection([(("a", 5), 1, None)])), timed(env.from_collection([(("r", 1), 4, None)]))
    connected = data.key_by(first).connect(rules.broadcast(RULES))
    assert collect_locally(connected.process(Timed()).process(Times())) == [
        ("rule", 4), ("element", 1), ("fired", 5), ("fired", 6),
    ]  # fmt: skip


def test_without_keys_there_are_no_timers(env):
    class Registers(Scale):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

    with pytest.raises(JobExecutionError, match="timers need a keyed stream"):
        collect_locally(beside(env, [1], []).process(Registers()))


# ------------------------------------------------------------------------------------------------ side outputs

SIDE = OutputTag("side")


class Aside(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(1)
        yield SIDE, ("element", value)

    def process_broadcast_element(self, value, ctx):
        yield SIDE, ("rule", value)
        yield value

    def on_timer(self, timestamp, ctx):
        yield OutputTag("side"), ("timer", ctx.get_current_key())


class AsideWithoutKeys(BroadcastProcessFunction):
    process_broadcast_element = Aside.process_broadcast_element

    def process_element(self, value, ctx):
        yield SIDE, ("element", value)


def test_all_methods_have_side_outputs(env):
    results = beside_keyed(env, [("a", 1)], ["r"]).process(Aside())
    assert collect_locally(results.get_side_output(SIDE)) == [("rule", "r"), ("element", ("a", 1)), ("timer", "a")]
    results = beside(env, [("a", 1)], ["r"]).process(AsideWithoutKeys())
    assert collect_locally(results.get_side_output(SIDE)) == [("rule", "r"), ("element", ("a", 1))]
    assert collect_locally(beside(env, [("a", 1)], ["r"]).process(AsideWithoutKeys())) == ["r"]
