"""The order of the records of two connected streams in both modes, and how a plan shows them."""

import itertools

import pytest

from ekorn.common import Configuration
from ekorn.datastream import (
    CoFlatMapFunction,
    KeyedCoProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from ekorn.graph.plan import explain
from ekorn.testing.by_epoch import by_epoch, timed
from ekorn.testing.local_run import collect_locally
from ekorn.testing.scripted import run_scripted
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tests.program.two_streams import CountBoth, Sides, both, first, last_counts


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def test_blobs_of_the_two_sides_take_turns_and_the_order_is_the_same_in_every_run(env):
    def run():
        left, right = env.from_sequence(1, 50_000), env.from_sequence(-50_000, -1)
        return run_scripted(left.connect(right).flat_map(Numbers())).records

    found = run()
    assert [v for v in found if v > 0] == list(range(1, 50_001))
    assert [v for v in found if v < 0] == list(range(-50_000, 0))
    switches = sum((one < 0) is not (other < 0) for one, other in itertools.pairwise(found))
    assert found[0] > 0
    assert 4 < switches < 100
    assert run() == found


class Numbers(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value

    flat_map2 = flat_map1


def test_a_side_that_comes_in_a_later_epoch_comes_later(env):
    left = by_epoch(env, [[("a", 1)], [], [("a", 4)]], "left")
    right = by_epoch(env, [[("a", 2)], [("a", 3)], [("a", 5)]], "right")
    found = run_scripted(left.connect(right).key_by(first, first).process(CountBoth())).records
    assert [(f[0], f[2]) for f in found] == [("left", 1), ("right", 2), ("right", 3), ("left", 4), ("right", 5)]


# -------------------------------------------------------------------------------------------------- BATCH mode


def test_in_batch_mode_all_records_of_a_key_come_before_the_next_key(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert [(f[1], f[2], f[3]) for f in collect_locally(both(env).key_by(first, first).process(CountBoth()))] == [
        ("a", 1, 1), ("a", 10, 2), ("a", 2, 3), ("a", 30, 4), ("a", 4, 5), ("a", 50, 6), ("a", 60, 7),
        ("b", 3, 1), ("b", 20, 2), ("b", 5, 3), ("c", 40, 1),
    ]  # fmt: skip  # as PyFlink 2.3 gives them


class InTime(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        ctx.timer_service().register_event_time_timer(100)
        yield 1, value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx):
        yield 2, value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx):
        yield "fired", ctx.get_current_key(), ctx.timer_service().current_watermark()


def test_in_batch_mode_the_two_sides_of_a_key_are_merged_by_time(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    left = [("a", 1), ("a", 5), ("b", 3), ("a", 9), ("b", 5)]
    right = [("a", 1), ("b", 2), ("a", 5), ("c", 4), ("a", 7), ("a", 5)]
    one, other = (timed(env.from_collection([(v, v[1], None) for v in values])) for values in (left, right))
    found = collect_locally(one.connect(other).key_by(first, first).process(InTime()))
    assert [(f[0], f[2]) if f[0] != "fired" else f for f in found] == [
        (1, 1), (2, 1), (1, 5), (2, 5), (2, 5), (2, 7), (1, 9), ("fired", "a", MAX_TIMESTAMP),
        (2, 2), (1, 3), (1, 5), ("fired", "b", MAX_TIMESTAMP), (2, 4),
    ]  # fmt: skip  # as PyFlink 2.3 gives them
    assert {f[3] for f in found if f[0] != "fired"} == {MIN_TIMESTAMP}


def test_in_batch_mode_two_sides_without_keys_take_turns(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    found = collect_locally(both(env).process(Sides()))
    assert [f[:2] for f in found] == [
        (1, ("a", 1)), (2, ("a", 10)), (1, ("a", 2)), (2, ("b", 20)), (1, ("b", 3)), (2, ("a", 30)),
        (1, ("a", 4)), (2, ("c", 40)), (1, ("b", 5)), (2, ("a", 50)), (2, ("a", 60)),
    ]  # fmt: skip  # as PyFlink 2.3 gives them


@pytest.mark.parametrize("keyed", [True, False])
def test_in_batch_mode_much_is_kept_on_disk(env, keyed):
    env.configure(Configuration().set_string("ekorn.batch.records-in-memory", "700"))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    left, right = [(n % 7, n) for n in range(5_000)], [(n % 5, -n) for n in range(1, 5_000)]
    connected = both(env, left, right)
    if keyed:
        found = collect_locally(connected.key_by(first, first).process(CountBoth()))
        assert [f[2] for f in found if f[0] == "left" and f[1] == 3] == list(range(3, 5_000, 7))
        assert last_counts(found) == {k: len([v for v in left + right if v[0] == k]) for k in range(7)}
    else:
        found = [f[1] for f in collect_locally(connected.process(Sides()))]
        assert found[::2] == left
        assert found[1::2] == right


# --------------------------------------------------------------------------------------------------------- plan


def test_a_plan_tells_the_inputs_apart(env):
    both(env).key_by(first, lambda v: v[0]).process(CountBoth())
    shown = explain(env.job_graph("job"))
    assert "-> [2] input 1 HASH by first" in shown
    assert "-> [2] input 2 HASH by <lambda>" in shown
    assert "Keyed Co-Process, per key first" in shown
