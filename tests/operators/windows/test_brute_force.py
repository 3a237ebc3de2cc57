"""The window operators against the brute-force evaluator, on random streams and programs."""

import tempfile

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.common import Time
from ekorn.datastream import OutputTag
from ekorn.datastream import window as w
from ekorn.datastream.functions import AggregateFunction, ProcessWindowFunction
from ekorn.datastream.window import CountEvictor, DeltaEvictor, TimeEvictor, TimeWindow
from tests.examples_by_profile import examples
from tests.operators.windows.brute_force import delta, evaluate
from tests.operators.windows.local_run import Run, collected, collected_with_crashes, environment, graph_of, timed

LATE = OutputTag("late")


def ms(n):
    return Time.milliseconds(n)


ASSIGNERS = {
    "tumbling": lambda size, offset: w.TumblingEventTimeWindows.of(ms(size), ms(offset)),
    "sliding": lambda size, slide, offset: w.SlidingEventTimeWindows.of(ms(size), ms(slide), ms(offset)),
    "session": lambda gap: w.EventTimeSessionWindows.with_gap(ms(gap)),
    "global": w.GlobalWindows.create,
}
TRIGGERS = {
    "event": w.EventTimeTrigger,
    "count": w.CountTrigger,
    "continuous": w.ContinuousEventTimeTrigger,
    "delta": lambda threshold: w.DeltaTrigger.of(threshold, delta),
    "never": w.NeverTrigger,
    "purging": lambda nested: w.PurgingTrigger.of(made(TRIGGERS, nested)),
}
EVICTORS = {
    "count": CountEvictor.of,
    "time": lambda size, after: TimeEvictor.of(ms(size), after),
    "delta": lambda threshold, after: DeltaEvictor.of(threshold, delta, after),
}


class SubclassedTrigger(w.EventTimeTrigger):
    """The default trigger as a subclass, which the triggered window operator runs."""


def made(makers, described):
    return makers[described[0]](*described[1:])


# ------------------------------------------------------------------------------------------- random programs

small = st.integers(1, 8)
tumbling = small.flatmap(lambda size: st.tuples(st.just("tumbling"), st.just(size), st.integers(1 - size, size - 1)))
sliding = st.tuples(small, small).flatmap(
    lambda s: st.tuples(st.just("sliding"), st.just(s[0]), st.just(s[1]), st.integers(1 - s[1], s[1] - 1))
)
sessions = st.tuples(st.just("session"), small)
global_windows = st.just(("global",))
assigners = st.one_of(tumbling, sliding, sessions, global_windows)

merging_triggers = st.one_of(
    st.just(("event",)),
    st.tuples(st.just("count"), st.integers(1, 4)),
    st.tuples(st.just("continuous"), st.integers(1, 5)),
)
any_triggers = st.one_of(merging_triggers, st.tuples(st.just("delta"), st.integers(0, 5)), st.just(("never",)))


def triggers_for(assigner):
    plain = merging_triggers if assigner[0] == "session" else any_triggers
    if assigner[0] == "global":
        plain = plain.filter(lambda trigger: trigger[0] not in ("event", "continuous"))
    return st.one_of(plain, st.tuples(st.just("purging"), plain))


evictors = st.one_of(
    st.none(), st.none(), st.tuples(st.sampled_from(["count", "time", "delta"]), st.integers(0, 4), st.booleans())
)

# Timestamps and watermarks are independent, so records are out of order and late.
streams = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-5, 30), st.none() | st.integers(-8, 30)), min_size=1, max_size=25
)
programs = assigners.flatmap(
    lambda assigner: st.tuples(st.just(assigner), triggers_for(assigner), evictors, st.sampled_from([0, 0, 1, 4]))
)


def events_of(stream):
    """Return events (key, value, timestamp, watermark). Values are (key, number) and all different."""
    return [(key, (key, i), time, after) for i, (key, time, after) in enumerate(stream)]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        shown = (window.start, window.end) if isinstance(window, TimeWindow) else "global"
        yield key, shown, list(elements)


class Collecting(AggregateFunction):
    """Collects all records in an accumulator that changes in place."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class ShowOne(Show):
    def process(self, key, context, elements):
        (only,) = elements
        yield from super().process(key, context, only)


def program(stream, assigner, trigger, evictor, lateness, *, incremental=False, triggered=False):
    windowed = stream.key_by(lambda v: v[0]).window(made(ASSIGNERS, assigner)).allowed_lateness(lateness)
    asked = SubclassedTrigger() if triggered and trigger == ("event",) else made(TRIGGERS, trigger)
    windowed = windowed.trigger(asked).side_output_late_data(LATE)
    if evictor is not None:
        windowed = windowed.evictor(made(EVICTORS, evictor))
    return windowed.aggregate(Collecting(), ShowOne()) if incremental else windowed.process(Show())


def outcome(records, key):
    return [(window, values) for k, window, values in records if k == key]


BACKENDS = st.sampled_from(["hashmap", "hashmap", "rocksdb"])


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(streams, programs, st.booleans(), st.booleans(), BACKENDS)
def test_windows_give_what_the_reference_says(stream, described, incremental, triggered, state_backend):
    events = events_of(stream)
    expected = evaluate(events, *described)
    timed_stream = timed(environment(), [(v, time, after) for _, v, time, after in events])
    result = program(timed_stream, *described, incremental=incremental, triggered=triggered)
    late = result.get_side_output(LATE).map(lambda v: ("late", None, v))
    records = collected(result.union(late), state_backend=state_backend)
    for key, wanted in expected.items():
        assert outcome([r for r in records if r[0] != "late"], key) == wanted.fired
        assert [v for tag, _, v in records if tag == "late" and v[0] == key] == wanted.late


default_programs = st.tuples(
    st.one_of(tumbling, sliding, sessions), st.just(("event",)), st.none(), st.sampled_from([0, 1, 4])
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(streams, default_programs, st.integers(0, 2), st.integers(1, 10), BACKENDS)
def test_windows_with_their_default_trigger_give_what_the_reference_says(
    stream, described, how, epoch_records, state_backend
):
    events = events_of(stream)
    expected = evaluate(events, *described)
    source = timed(environment(), [(v, time, after) for _, v, time, after in events])
    windowed = source.key_by(lambda v: v[0]).window(made(ASSIGNERS, described[0])).side_output_late_data(LATE)
    windowed = windowed.allowed_lateness(described[3])
    if how == 0:
        result = windowed.process(Show())
    elif how == 1:
        result = windowed.aggregate(Collecting(), ShowOne())
    else:
        windowed = source.map(lambda v: [v]).key_by(lambda v: v[0][0]).window(made(ASSIGNERS, described[0]))
        result = windowed.allowed_lateness(described[3]).reduce(lambda x, y: x + y, ShowOne())
    records = collected(result, max_records=epoch_records, state_backend=state_backend)
    for key, wanted in expected.items():
        assert outcome(records, key) == wanted.fired


# ------------------------------------------------------------------------------------------- crashes and rescaling

ordered_streams = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 6), st.booleans()), min_size=1, max_size=30
)


def in_order(stream):
    """Return events in order of time: none is late when the watermark starts again after a restore."""
    events, now = [], 0
    for i, (key, step, marks) in enumerate(stream):
        now += step
        events.append((key, (key, i), now, now - 1 if marks else None))
    return events


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    ordered_streams,
    programs,
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 8),
    st.sets(st.integers(1, 6), max_size=3),
    st.lists(st.sampled_from(["hashmap", "rocksdb"]), min_size=1, max_size=3),
)
def test_a_crash_and_a_restart_change_nothing_whatever_the_backend(  # noqa: PLR0917
    stream, described, how, epoch_records, crashes, backends
):
    events = in_order(stream)

    def build(env):
        source = timed(env, [(v, time, after) for _, v, time, after in events])
        return program(source, *described, incremental=how[0], triggered=how[1])

    records = collected_with_crashes(build, max_records=epoch_records, crash_after=crashes, state_backends=backends)
    for key, wanted in evaluate(events, *described).items():
        assert outcome(records, key) == wanted.fired


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    ordered_streams,
    programs,
    st.booleans(),
    st.integers(1, 10),
    st.sampled_from([(1, 2), (2, 1), (3, 2), (2, 3)]),
    st.sampled_from([("hashmap", "hashmap"), ("rocksdb", "rocksdb"), ("hashmap", "rocksdb"), ("rocksdb", "hashmap")]),
)
def test_windows_move_to_another_parallelism_and_backend_with_their_keys(  # noqa: PLR0917
    stream, described, incremental, cut, parallelisms, backends
):
    from ekorn.checkpoint.restore_plan import plan_restore

    events = in_order(stream)

    def graph(parallelism):
        env = environment(parallelism, checkpoints=True)
        env.set_max_parallelism(8)
        source = timed(env, [(v, time, after) for _, v, time, after in events])
        return graph_of(program(source, *described, incremental=incremental).uid("window"))

    with tempfile.TemporaryDirectory() as directory:
        before = Run(graph(parallelisms[0]), directory=directory, state_backend=backends[0])
        before.deploy()
        before.checkpoint(1, cut)
        if not before.finished:
            after = Run(graph(parallelisms[1]), directory=directory, state_backend=backends[1])
            after.attempt = 1
            after.deploy(plan_restore(after.graph, before.metadata, directory, allow_non_restored_state=False))
            while not after.finished:
                after.step()
            after.close()
            before.records += after.records
        before.close()
    for key, wanted in evaluate(events, *described).items():
        assert outcome(before.records, key) == wanted.fired
