"""Timers of keyed process functions: identity, order, both domains, checkpoints, BATCH mode."""

import tempfile
from itertools import repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.datastream import KeyedProcessFunction, OutputTag, ProcessFunction, TimeDomain
from ekorn.errors import UserFunctionError
from ekorn.state.heap.heap_timers import HeapTimers
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tests.examples_by_profile import examples
from tests.operators.windows.local_run import Run, collected, collected_with_crashes, environment, graph_of, timed


class Reference(KeyedProcessFunction):
    """The example of the reference: a timer at ts + 1, repeated every 2 while below 8."""

    def process_element(self, value, ctx):
        yield f"E {value} (W={word(ctx.timer_service().current_watermark())})"
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)

    def on_timer(self, timestamp, ctx):
        if timestamp < 8:
            ctx.timer_service().register_event_time_timer(timestamp + 2)
        yield f"T {ctx.get_current_key()}@{timestamp} (W={word(ctx.timer_service().current_watermark())})"


def word(watermark):
    return {MIN_TIMESTAMP: "MIN", MAX_TIMESTAMP: "MAX"}.get(watermark, watermark)


def test_the_example_of_the_reference():
    stream = timed(environment(), [("a5", 5, 5), ("b7", 7, 7), ("a6", 6, 6)])
    assert collected(stream.key_by(lambda v: v[0]).process(Reference())) == [
        "E a5 (W=MIN)",
        "E b7 (W=5)",
        "T a@6 (W=7)",
        "E a6 (W=7)",
        "T a@7 (W=MAX)",
        "T b@8 (W=MAX)",
        "T a@8 (W=MAX)",
        "T a@9 (W=MAX)",
    ]


class Ask(KeyedProcessFunction):
    """Makes the calls that its records name, and emits when its timers fire."""

    def process_element(self, value, ctx):
        for name, time in value[1]:
            getattr(ctx.timer_service(), name)(time)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.time_domain(), ctx.timestamp()


@pytest.mark.parametrize("call", ["register_event_time_timer", "register_processing_time_timer"])
def test_a_timer_that_no_clock_reaches_is_refused(call):
    last = [("a", [(call, MAX_TIMESTAMP)])]
    assert len(collected(timed(environment(), [(last[0], 1, 1)]).key_by(lambda v: v[0]).process(Ask()))) <= 1
    for time_ms in (MAX_TIMESTAMP + 1, MIN_TIMESTAMP - 1):
        stream = timed(environment(), [(("a", [(call, time_ms)]), 1, 1)]).key_by(lambda v: v[0]).process(Ask())
        with pytest.raises(UserFunctionError, match=rf"a timer at {time_ms} ms is out of range: timestamps go from"):
            collected(stream)


def test_timers_out_of_range_in_old_savepoints_are_dropped():
    table = HeapTimers("t", tracked=True)
    table.load({("a", 5): None, ("b", MAX_TIMESTAMP + 1): None})
    assert table.take_all() == [("a", 5)]


EVENT, PROCESSING = "register_event_time_timer", "register_processing_time_timer"


def fired(*calls, key="k"):
    stream = timed(environment(), [((key, list(calls)), 0, None)])
    return [(r[1], r[2]) for r in collected(stream.key_by(lambda v: v[0]).process(Ask()))]


def test_the_same_timer_twice_fires_once():
    assert fired((EVENT, 5), (EVENT, 5)) == [(5, TimeDomain.EVENT_TIME)]


def test_timers_fire_in_the_order_of_their_times():
    assert [t for t, _ in fired((EVENT, 9), (EVENT, 3), (EVENT, 5))] == [3, 5, 9]


def test_a_deleted_timer_does_not_fire():
    assert fired((EVENT, 5), (EVENT, 6), ("delete_event_time_timer", 5)) == [(6, TimeDomain.EVENT_TIME)]


def test_deleting_an_unknown_timer_changes_nothing():
    assert fired((EVENT, 5), ("delete_event_time_timer", 6), ("delete_processing_time_timer", 5)) == [
        (5, TimeDomain.EVENT_TIME)
    ]


def test_a_timer_at_the_end_of_time_fires_at_the_end_of_the_input():
    assert fired((EVENT, MAX_TIMESTAMP)) == [(MAX_TIMESTAMP, TimeDomain.EVENT_TIME)]


def test_processing_time_timers_are_dropped_at_the_end_of_the_input():
    assert fired((PROCESSING, 10**15)) == []


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(UserFunctionError, match="str"):
        fired((EVENT, "soon"))


def test_timers_need_keys():
    class Plain(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

    with pytest.raises(UserFunctionError, match="key_by"):
        collected(environment().from_collection([1]).process(Plain()))


class Late(KeyedProcessFunction):
    late = OutputTag("late")

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp, ctx):
        yield self.late, ("side", timestamp)
        yield "main", timestamp


def test_timers_emit_to_side_outputs():
    main = timed(environment(), [("a", 1, None)]).key_by(lambda v: v).process(Late())
    assert collected(main.get_side_output(Late.late)) == [("side", 11)]


class Stamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_what_an_event_timer_emits_has_the_timers_time():
    stream = timed(environment(), [("a", 1, None)]).key_by(lambda v: v).process(Late())
    assert collected(stream.process(Stamps())) == [(("main", 11), 11)]


class Wait(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.timer_service().current_processing_time()


def waiting(records, *, directory=None, hold=1):
    """Return a job whose source has one record more than is read, so that its input has not ended."""
    env = environment(checkpoints=directory is not None)
    stream = env.from_collection([*records, *[("hold", 10**15)] * hold]).key_by(lambda v: v[0]).process(Wait())
    run = Run(graph_of(stream), directory=directory)
    run.deploy()
    return run


def test_a_processing_time_timer_fires_when_the_clock_has_passed_it_without_any_record():
    run = waiting([("a", 100), ("b", 50)])
    run.step(max_records=2)
    assert min(a.next_timer_ms for a in run.acks if a.next_timer_ms is not None) == 51
    run.clock.set_ms(50)
    assert run.step(max_records=0) == []
    run.clock.set_ms(51)
    assert run.step(max_records=0) == [("b", 50, 51)]
    run.clock.set_ms(1000)
    assert run.step(max_records=0) == [("a", 100, 1000)]
    assert all(a.next_timer_ms is None for a in run.acks)
    run.close()


def test_overdue_processing_time_timers_fire_right_after_a_restore():
    with tempfile.TemporaryDirectory() as directory:
        run = waiting([("a", 100), ("b", 50)], directory=directory, hold=2)
        plan = run.checkpoint(1, max_records=2)
        run.clock.set_ms(1000)
        run.attempt += 1
        run.deploy(plan)
        assert run.step(max_records=1) == [("b", 50, 1000), ("a", 100, 1000)]
        run.close()


class Repeating(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 3)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 4)
        ctx.timer_service().delete_event_time_timer(value[1])
        yield "E", value, ctx.timestamp()

    def on_timer(self, timestamp, ctx):
        if timestamp % 5 == 0:
            ctx.timer_service().register_event_time_timer(timestamp + 2)
        yield "T", ctx.get_current_key(), timestamp


events = st.lists(
    st.tuples(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), st.integers(0, 20)), min_size=1, max_size=30
)


@settings(max_examples=examples(60), deadline=None)
@given(events, st.integers(1, 7), st.sets(st.integers(1, 8), max_size=3), st.sampled_from([1, 2]))
def test_a_crash_changes_nothing(records, epoch_records, crashes, parallelism):
    def build(env):
        # There is no watermark before the end. Watermarks are not part of checkpoints: timers would fire in another
        # order after the restore.
        stream = timed(env, [(v, t, None) for v, t in records])
        return stream.key_by(lambda v: v[0]).process(Repeating())

    crashed = collected_with_crashes(build, max_records=epoch_records, crash_after=crashes, parallelism=parallelism)
    assert sorted(crashed) == sorted(collected(build(environment())))


class InBatch(KeyedProcessFunction):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_processing_time_timer(value[1])
        timers.register_event_time_timer(value[1] + 100)
        timers.register_event_time_timer(value[1])
        yield "E", value, word(timers.current_watermark())

    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        yield (
            "T",
            ctx.get_current_key(),
            timestamp,
            ctx.time_domain().name,
            word(ctx.timer_service().current_watermark()),
        )


def test_in_batch_mode_all_timers_of_a_key_fire_after_its_last_record():
    stream = environment(batch=True).from_collection([("b", 7), ("a", 5), ("b", 6)])
    event, processing = "EVENT_TIME", "PROCESSING_TIME"
    assert collected(stream.key_by(lambda v: v[0]).process(InBatch())) == [
        ("E", ("a", 5), "MIN"),
        ("T", "a", 5, event, "MAX"),
        ("T", "a", 105, event, "MAX"),
        ("T", "a", 5, processing, "MAX"),
        ("E", ("b", 7), "MIN"),
        ("E", ("b", 6), "MIN"),
        ("T", "b", 6, event, "MAX"),
        ("T", "b", 7, event, "MAX"),
        ("T", "b", 106, event, "MAX"),
        ("T", "b", 107, event, "MAX"),
        ("T", "b", 6, processing, "MAX"),
        ("T", "b", 7, processing, "MAX"),
    ]


# ---------------------------------------------------------------------------------------------- the table itself

steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "fire", "snapshot"]), st.sampled_from("abcd"), st.integers(0, 12)),
    max_size=60,
)


def fired_by(table, time):
    """Return the timers that fire up to a time, with their keys, in the order in which they fire."""
    found = []
    table.fire(time, lambda key, at: found.append((at, key)), relief=repeat(True))
    return found


@settings(max_examples=examples(400), deadline=None)
@given(steps)
def test_a_table_of_timers_is_a_set_of_pairs_fired_in_order(steps):
    table = HeapTimers("t", tracked=True)
    model: set[tuple[int, str]] = set()
    saved: set[tuple[str, int]] = set()
    for step, key, time in steps:
        if step == "add":
            table.add(key, time)
            model.add((time, key))
        elif step == "remove":
            table.remove(key, time)
            model.discard((time, key))
        elif step == "fire":
            found = fired_by(table, time)
            due = {timer for timer in model if timer[0] <= time}
            assert set(found) == due and [t for t, _ in found] == sorted(t for t, _ in due)
            model -= due
        else:
            entries = table.some(table.take_changed())
            saved = (saved | set(entries.keys)) - set(entries.gone)
            assert saved == {(k, t) for t, k in model} == set(table.whole().keys)
        assert table.next_ms() == min((t for t, _ in model), default=None)
        assert len(table) == len(model)


def test_deleted_timers_leave_nothing_behind():
    table = HeapTimers("t", tracked=False)
    for time in range(100_000):
        table.add("k", time)
        table.remove("k", time - 1)
    assert len(table) == 1
    assert len(table._heap) < 5000


def test_a_timer_may_delete_another_one_of_its_own_time():
    table = HeapTimers("t", tracked=True, windowed=True)
    table.add(("k", (0, 5)), 4)
    table.add(("k", (1, 5)), 4)
    fired = []

    def fire(entry, time):
        fired.append(entry)
        table.remove(("k", (1, 5)), 4)

    table.fire(4, fire, relief=repeat(True))
    assert fired == [("k", (0, 5))]
    assert table.whole().keys == []
