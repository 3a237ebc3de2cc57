"""Broadcast state: written by the broadcast side, read by the other side, equal on every subtask."""

import pytest

from ekorn.common import Configuration, Types
from ekorn.common.time import Time
from ekorn.datastream import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from ekorn.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from ekorn.errors import InvalidProgramError, JobExecutionError, UnsupportedOperationError
from ekorn.testing.by_epoch import by_epoch
from ekorn.testing.local_run import collect_locally
from ekorn.testing.scripted import run_scripted
from tests.program.rules import BOTH_MODES, NAMES, RULES, KeyedScale, Scale, beside, beside_keyed, first


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


# ----------------------------------------------------------------------------------------- who sees what, and when


@BOTH_MODES
def test_the_broadcast_records_of_an_epoch_come_first(env, mode):
    env.set_runtime_mode(mode)
    connected = beside(env, [("a", 1), ("b", 2), ("c", 3)], [("a", 10), ("b", 100), ("a", 20)])
    assert collect_locally(connected.process(Scale())) == [("a", 20), ("b", 200), ("c", 3)]


@BOTH_MODES
def test_keyed_state_goes_with_broadcast_state(env, mode):
    env.set_runtime_mode(mode)
    connected = beside_keyed(env, [("b", 1), ("a", 2), ("b", 3)], [("a", 10), ("b", 100)])
    assert sorted(collect_locally(connected.process(KeyedScale()))) == [("a", 20, 1), ("b", 100, 1), ("b", 300, 2)]


@BOTH_MODES
@pytest.mark.parametrize("parallelism", [2, 3])
def test_every_subtask_sees_every_rule(env, mode, parallelism):
    env.set_runtime_mode(mode).set_parallelism(parallelism)
    keys = [f"k{n}" for n in range(20)]
    rules = [(key, n) for n, key in enumerate(keys, start=1)]
    expected = [(key, n, 1) for n, key in enumerate(keys, start=1)]
    found = collect_locally(beside_keyed(env, [(key, 1) for key in keys], rules).process(KeyedScale()))
    assert sorted(found) == sorted(expected)
    found = collect_locally(beside(env, [(key, 1) for key in keys], rules).process(Scale()))
    assert sorted(found) == sorted((key, n) for key, n, _ in expected)


def test_rules_hold_from_their_epoch_on(env):
    data = by_epoch(env, [[("a", 1)], [("a", 1)], [("a", 1)], [("a", 1)]], "data")
    rules = by_epoch(env, [[], [("a", 5)], [], [("a", 7)]], "rules")
    found = run_scripted(data.connect(rules.broadcast(RULES)).process(Scale())).records
    assert found == [("a", 1), ("a", 5), ("a", 5), ("a", 7)]


def test_in_batch_mode_rules_of_any_epoch_come_first(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    for draw in (lambda d: d, lambda d: d.key_by(first)):
        data = by_epoch(env, [[("a", 1)], [("b", 2)], [("a", 3)], []], "data")
        rules = by_epoch(env, [[], [("a", 5)], [], [("b", 7)]], "rules")
        function = Scale() if draw(data) is data else KeyedScale()
        found = run_scripted(draw(data).connect(rules.broadcast(RULES)).process(function)).records
        assert sorted(f[:2] for f in found) == [("a", 5), ("a", 15), ("b", 14)]


def test_in_batch_mode_much_is_kept_on_disk(env):
    env.configure(Configuration().set_string("ekorn.batch.records-in-memory", "300"))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    data = [("a", n) for n in range(2_000)]
    assert collect_locally(beside(env, data, [("a", 2)]).process(Scale())) == [("a", 2 * n) for n in range(2_000)]


class Opened(KeySelector):
    def open(self, runtime_context):
        self.field = 0

    def get_key(self, value):
        return value[self.field]


@BOTH_MODES
def test_a_key_selector_is_opened(env, mode):
    env.set_runtime_mode(mode)
    data = env.from_collection([("a", 2)]).key_by(Opened())
    connected = data.connect(env.from_collection([("a", 10)]).broadcast(RULES))
    assert collect_locally(connected.process(KeyedScale())) == [("a", 20, 1)]


# ----------------------------------------------------------------------------------------------------- the state


class Everything(BroadcastProcessFunction):
    """Changes the states as broadcast records say, and emits what a record sees of them."""

    def process_element(self, value, ctx):
        rules, names = ctx.get_broadcast_state(RULES), ctx.get_broadcast_state(NAMES)
        yield sorted(rules.items()), sorted(names.items())
        yield sorted(rules.keys()), sorted(rules.values()), sorted(rules), rules.is_empty()
        yield rules.get(value), rules[value], rules.contains(value), value in rules

    def process_broadcast_element(self, value, ctx):
        for descriptor, call, *arguments in value:
            getattr(ctx.get_broadcast_state(descriptor), call)(*arguments)


@pytest.mark.parametrize(
    ("calls", "rules", "names"),
    [
        ([], {}, {}),
        ([(RULES, "put", "a", 1)], {"a": 1}, {}),
        ([(RULES, "put", "a", None)], {"a": None}, {}),
        ([(RULES, "put_all", {"a": 1, "b": 2}), (NAMES, "put", 1, "one")], {"a": 1, "b": 2}, {1: "one"}),
        ([(RULES, "put_all", {"a": 1, "b": 2}), (RULES, "remove", "a"), (RULES, "remove", "x")], {"b": 2}, {}),
        ([(RULES, "__setitem__", "a", 3), (RULES, "__setitem__", "b", 4), (RULES, "__delitem__", "b")], {"a": 3}, {}),
        ([(NAMES, "put", 1, "one"), (RULES, "put", "a", 1), (RULES, "clear")], {}, {1: "one"}),
    ],
)
def test_several_states_and_what_can_be_done_with_them(env, calls, rules, names):
    connected = beside(env, ["a"], [calls], RULES, NAMES)
    assert collect_locally(connected.process(Everything())) == [
        (sorted(rules.items()), sorted(names.items())),
        (sorted(rules), sorted(rules.values()), sorted(rules), not rules),
        (rules.get("a"), rules.get("a"), "a" in rules, "a" in rules),
    ]


LISTS = MapStateDescriptor("lists")


class Spoil(BroadcastProcessFunction):
    """Changes objects after putting them into state and after reading them, which must not change the state."""

    def process_element(self, value, ctx):
        lists = ctx.get_broadcast_state(LISTS)
        for found in (lists.get("x"), lists["x"], *lists.values(), *(v for _, v in lists.items())):
            found.append("changed by a reader")
        yield lists.get("x")

    def process_broadcast_element(self, value, ctx):
        lists = ctx.get_broadcast_state(LISTS)
        lists.put("x", value)
        value.append("changed after put")
        lists.get("x").append("changed by a reader")
        yield lists.get("x")


def test_state_is_by_value(env):
    assert collect_locally(beside(env, [1, 2], [[0]], LISTS).process(Spoil())) == [[0], [0], [0]]


class Writes(BroadcastProcessFunction):
    def __init__(self, write):
        self.write = write

    def process_element(self, value, ctx):
        self.write(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value, ctx):
        pass


@pytest.mark.parametrize(
    "write",
    [
        lambda rules: rules.put("a", 1),
        lambda rules: rules.put_all({"a": 1}),
        lambda rules: rules.remove("a"),
        lambda rules: rules.clear(),
        lambda rules: rules.__setitem__("a", 1),
        lambda rules: rules.__delitem__("a"),
    ],
)
def test_the_other_side_cannot_write(env, write):
    with pytest.raises(JobExecutionError, match=r"broadcast state 'rules' can only be read here; change it in"):
        collect_locally(beside(env, [1], []).process(Writes(write)))


class AsksForOther(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.get_broadcast_state(NAMES)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(NAMES)


@pytest.mark.parametrize(("data", "rules"), [([1], []), ([], [1])])
def test_a_state_that_was_not_given_to_broadcast_is_refused(env, data, rules):
    with pytest.raises(JobExecutionError, match=r"broadcast\(\) was not given the state 'names', .*'rules'"):
        collect_locally(beside(env, data, rules).process(AsksForOther()))


def test_a_descriptor_of_the_same_name_is_the_same_state(env):
    class Again(Scale):
        def process_element(self, value, ctx):
            yield ctx.get_broadcast_state(MapStateDescriptor("rules")).get(value)

    assert collect_locally(beside(env, ["a"], [("a", 1)]).process(Again())) == [1]


# ------------------------------------------------------------------------------------------------------- errors


class JustKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        pass


@pytest.mark.parametrize(
    ("keyed", "function", "message"),
    [
        (True, Scale(), "needs a KeyedBroadcastProcessFunction, got Scale, a BroadcastProcessFunction"),
        (False, KeyedScale(), "needs a BroadcastProcessFunction, got KeyedScale, a KeyedBroadcastProcessFunction"),
        (False, JustKeyed(), "needs a BroadcastProcessFunction, got JustKeyed, a KeyedProcessFunction"),
        (False, Scale, "Scale is a class; pass an instance of it"),
        (False, lambda v, ctx: v, "needs a BroadcastProcessFunction"),
    ],
)
def test_wrong_functions_are_refused_where_they_are_given(env, keyed, function, message):
    with pytest.raises(TypeError, match=message):
        (beside_keyed if keyed else beside)(env, [("a", 1)], []).process(function)


def test_descriptors_are_checked_where_they_are_given(env):
    stream = env.from_collection([1])
    with pytest.raises(TypeError, match=r"broadcast\(\) takes MapStateDescriptors, got ValueStateDescriptor"):
        stream.broadcast(ValueStateDescriptor("v", Types.INT()))
    with pytest.raises(TypeError, match=r"broadcast\(\) takes MapStateDescriptors, got None"):
        stream.broadcast(None, RULES)
    with pytest.raises(InvalidProgramError, match="two states called 'rules'"):
        stream.broadcast(RULES, NAMES, MapStateDescriptor("rules"))
    expiring = MapStateDescriptor("expiring")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(InvalidProgramError, match="'expiring' has a time to live"):
        stream.broadcast(expiring)


def test_a_keyed_stream_is_not_broadcast(env):
    with pytest.raises(UnsupportedOperationError, match=r"broadcast\(\) on a keyed stream"):
        env.from_collection([(1, 2)]).key_by(first).broadcast(RULES)


def test_streams_of_two_environments_cannot_be_connected(env):
    other = StreamExecutionEnvironment.get_execution_environment().from_collection([1]).broadcast(RULES)
    with pytest.raises(InvalidProgramError, match="same environment"):
        env.from_collection([1]).connect(other)


def test_without_descriptors_broadcast_is_a_partitioning(env):
    env.set_parallelism(3)
    assert collect_locally(env.from_collection([1, 2]).broadcast().map(lambda v: v)) == [1, 2, 1, 2, 1, 2]


def test_an_error_names_the_operator_and_the_record(env):
    class Fails(Scale):
        def process_broadcast_element(self, value, ctx):
            raise ValueError("no such rule")

    with pytest.raises(JobExecutionError, match=r"'Co-Process-Broadcast' .* on record \('r', 1\): ValueError: no such"):
        collect_locally(beside(env, [], [("r", 1)]).process(Fails()))


def test_operators_are_called_as_in_pyflink(env):
    assert beside(env, [], []).process(Scale()).get_name() == "Co-Process-Broadcast"
    assert beside_keyed(env, [], []).process(KeyedScale()).get_name() == "Keyed-Co-Process-Broadcast"
