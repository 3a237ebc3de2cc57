"""Crashes and other parallelisms do not change the results of connected streams and of streams with broadcast rules.

The tests draw the epochs as well: the records of the two streams that share an epoch determine their order, also in a
run without crashes. A few lines of plain Python compute the expected results.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Types
from ekorn.common.job_status import JobStatus
from ekorn.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction, KeyedCoProcessFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.testing.by_epoch import by_epoch
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted
from tests.conformance.disturbed_jobs import (
    POINTS,
    checkpoints,
    counted,
    environment,
    folder,
    newest_checkpoint,
    scripts,
)
from tests.conformance.external_system import ExternalSystem, TransactionalSink
from tests.examples_by_profile import examples

pytestmark = pytest.mark.usefixtures("silent_restarts")

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
LOG = MapStateDescriptor("log")
TOTAL = ValueStateDescriptor("total", Types.INT(), 0)


# ------------------------------------------------------------------------------- events beside rules that change


class Weigh(KeyedBroadcastProcessFunction):
    """Sums, per key, numbers times the weight of the present rules; a reset clears the sums of all keys."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value, ctx):
        rules = dict(ctx.get_broadcast_state(RULES).items())
        self.total.update(self.total.value() + value[1] * sum(rules.values()))
        ctx.timer_service().register_event_time_timer(value[1])
        yield value[0], self.total.value(), sorted(rules.items()), len(list(ctx.get_broadcast_state(LOG).keys()))

    def process_broadcast_element(self, value, ctx):
        rules, log = ctx.get_broadcast_state(RULES), ctx.get_broadcast_state(LOG)
        name, weight = value
        log.put(len(list(log.keys())), {"changeable": [name]})
        found = []
        if name == "reset":
            ctx.apply_to_keyed_state(
                TOTAL, lambda key, state: (found.append((key, "reset", state.value())), state.clear())
            )
        elif weight:
            rules.put(name, weight)
        else:
            rules.remove(name)
        return found

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), "timer", timestamp


def weighed(epochs):
    """Compute the results of `Weigh` without streams."""
    results: list[tuple[Any, ...]] = []
    rules, seen, totals, timers = {}, 0, {}, {}
    for changes, events in epochs:
        for name, weight in changes:
            seen += 1
            if name == "reset":
                results += [(key, "reset", total) for key, total in totals.items()]
                totals.clear()
            elif weight:
                rules[name] = weight
            else:
                rules.pop(name, None)
        for key, number in events:
            totals[key] = totals.get(key, 0) + number * sum(rules.values())
            timers[number, key] = None
            results.append((key, totals[key], sorted(rules.items()), seen))
    return results + [(key, "timer", number) for number, key in sorted(timers, key=lambda timer: timer[0])]


def draw_weigh(env, epochs):
    rules = by_epoch(env, [changes for changes, _ in epochs], "rules")
    events = by_epoch(env, [events for _, events in epochs], "events")
    return events.key_by(lambda v: v[0]).connect(rules.broadcast(RULES, LOG)).process(Weigh()).uid("weigh")


# -------------------------------------------------------------------------------------------------- two streams


class Match(KeyedCoProcessFunction):
    """Lets each record of a key wait for a record of the other stream."""

    def open(self, runtime_context):
        self.waiting = [runtime_context.get_list_state(ListStateDescriptor(name)) for name in ("left", "right")]

    def process_element1(self, value, ctx):
        return self._meet(0, value, ctx)

    def process_element2(self, value, ctx):
        return self._meet(1, value, ctx)

    def _meet(self, side, value, ctx):
        others = list(self.waiting[1 - side].get())
        if others:
            yield value[0], "pair", side, others[0], value[1]
            self.waiting[1 - side].update(others[1:])
        else:
            self.waiting[side].add(value[1])
            ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), "timer", timestamp


def matched(epochs):
    """Compute the results of `Match` without streams; in an epoch, the records of the first stream come first."""
    results: list[tuple[Any, ...]] = []
    waiting, timers = {}, {}
    for runs in epochs:
        for side in (0, 1):
            for key, number in runs[side]:
                mine, others = waiting.setdefault((side, key), []), waiting.setdefault((1 - side, key), [])
                if others:
                    results.append((key, "pair", side, others.pop(0), number))
                else:
                    mine.append(number)
                    timers[number, key] = None
    return results + [(key, "timer", number) for number, key in sorted(timers, key=lambda timer: timer[0])]


def draw_match(env, epochs):
    left, right = (by_epoch(env, [runs[side] for runs in epochs], f"side-{side}") for side in (0, 1))
    return left.connect(right).key_by(lambda v: v[0], lambda v: v[0]).process(Match()).uid("match")


# ---------------------------------------------------------------------------------------------- the properties

keys = st.sampled_from(["a", "b", "c", 7, ("t", 1)])
events = st.lists(st.tuples(keys, st.integers(0, 20)), max_size=4)
changes = st.lists(st.tuples(st.sampled_from(["x", "y", "z", "reset"]), st.integers(0, 3)), max_size=3)
PROGRAMS = {
    "rules": (draw_weigh, weighed, st.lists(st.tuples(changes, events), min_size=1, max_size=7)),
    "two streams": (draw_match, matched, st.lists(st.tuples(events, events), min_size=1, max_size=7)),
}


def by_key(results):
    """Return the results of each key, in order; timers of one time and resets have no order between keys."""
    found = {}
    for key, *rest in results:
        found.setdefault(repr(key), []).append(rest)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@given(data=st.data(), script=scripts, parallelism=st.integers(1, 3))
@settings(max_examples=examples(12))
def test_crashes_change_nothing(name, data, script, parallelism):
    draw, model, epochs = PROGRAMS[name]
    drawn = data.draw(epochs)
    run = run_scripted(draw(environment(parallelism=parallelism), drawn), script)
    assert run.status is JobStatus.FINISHED
    assert by_key(run.records) == by_key(model(drawn))


@pytest.mark.parametrize("name", PROGRAMS)
@given(
    data=st.data(),
    deaths=st.lists(st.builds(Crash, st.sampled_from(POINTS), st.integers(1, 6)), min_size=1, max_size=3),
    checkpoints=checkpoints,
    parallelisms=st.lists(st.integers(1, 4), min_size=4, max_size=4),
)
@settings(max_examples=examples(8))
def test_a_new_driver_at_another_parallelism_goes_on(name, data, deaths, checkpoints, parallelisms):
    draw, model, epochs = PROGRAMS[name]
    drawn, system, newest = data.draw(epochs), ExternalSystem(), None
    with folder() as directory:
        for death, parallelism in zip([*deaths, None], parallelisms, strict=False):
            env = environment(directory, parallelism)
            env.set_max_parallelism(8)
            draw(env, drawn).add_sink(TransactionalSink(system)).uid("sink")
            script = Script(checkpoints, [death] if death else [], driver_dies=True)
            try:
                run_scripted(env, script, **({"restore_path": newest} if newest else {}))
                break
            except DriverDied:
                newest = newest_checkpoint(directory) or newest
    assert counted(system.records) == counted(model(drawn))


# ------------------------------------------------------------------------------- who gets which copy of the state


class Copies(BroadcastProcessFunction):
    """Writes the index of the subtask, so that the copies of the state can be told apart."""

    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()

    def process_element(self, value, ctx):
        yield self.index, dict(ctx.get_broadcast_state(LOG).items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LOG).put(value, self.index)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(2, 5, [0, 1, 0, 1, 0]), (3, 2, [0, 1]), (3, 3, [0, 1, 2]), (1, 3, [0, 0, 0]), (4, 1, [0])],
)
def test_after_rescaling_a_subtask_has_the_copy_of_its_number_or_one_in_turn(before, after, expected):
    def draw(env):
        rules = by_epoch(env, [["rule"], [], []], "rules")
        data = by_epoch(env, [[], [], [0] * 10], "data")
        return data.rebalance().connect(rules.broadcast(LOG)).process(Copies()).uid("copies")

    with folder() as directory:
        env = environment(directory, before)
        draw(env).add_sink(TransactionalSink(ExternalSystem())).uid("sink")
        with pytest.raises(DriverDied):
            run_scripted(env, Script(crashes=[Crash("after-notify", 1)], driver_dies=True))
        (checkpoint,) = Path(directory).glob("*/chk-*")
        found = run_scripted(
            draw(environment(directory, after)), restore_path=str(checkpoint), allow_non_restored_state=True
        )
    assert dict(sorted((index, copy["rule"]) for index, copy in found.records)) == dict(enumerate(expected))
