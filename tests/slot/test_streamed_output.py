"""Output leaves a slot while a subtask is still emitting: a connection that takes no more bytes stops the subtask."""

import pytest

from ekorn.clock import SystemClock
from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import AsyncDataStream
from ekorn.datastream.functions import (
    AllWindowFunction,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoProcessFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from ekorn.datastream.state import MapStateDescriptor
from ekorn.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
)
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import EpochOrder
from ekorn.slot.host import SlotHost
from ekorn.subtask.wire.frames import Blob
from tests.slot.small_job import deployment, graph

LARGEST_BLOB = 16 << 20
KILOBYTE = b"x" * 1_000
MANY = 40_000

left = []  # the sizes of the blobs that have left the emitting subtask
left_at_last_result = []  # how many bytes had left when a function had yielded its last result


def run(tmp_path, draw, emitting):
    """Run one epoch of the vertices up to `emitting`; return the bytes that this one sent while it emitted, and all."""
    of = graph(draw)
    host = SlotHost(0, SystemClock(), lambda event: None, str(tmp_path / "slot"))
    host.deploy(deployment(of), [SubtaskId(vertex.id, 0) for vertex in of.vertices])
    inboxes = {vertex.id: [] for vertex in of.vertices}
    for vertex in range(emitting + 1):
        sent = []
        left.clear()

        def send(blob, sent=sent):
            left.append(blob.size_bytes)
            sent.append(blob)

        answers = host.run(SubtaskId(vertex, 0), 0, EpochOrder(0), inboxes[vertex], send)
        sent += [item for item in answers if isinstance(item, Blob)]
        for blob in sent:
            inboxes[of.exchanges[blob.exchange].target].append(blob)
    host.shutdown()
    sizes = [blob.size_bytes for blob in sent]
    assert max(sizes) <= LARGEST_BLOB
    return sum(left), sum(sizes)


def many_results(*arguments):
    for _ in range(MANY):
        yield KILOBYTE
    left_at_last_result.append(sum(left))


def onward(stream):
    stream.key_by(len).map(len).print()


def stamped(env, values=(1,)):
    time_of = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, old: value)
    return env.from_collection(list(values)).assign_timestamps_and_watermarks(time_of)


# ----------------------------------------------------------------------------------- one call that yields many results


class FlatMap(FlatMapFunction):
    def flat_map(self, value):
        return many_results()


class GeneratorFlatMap(FlatMapFunction):
    def flat_map(self, value):
        yield from many_results()


class Grow(MapFunction):
    """Makes a kilobyte of every number, and takes note when the last of them has come."""

    def map(self, value):
        if value == MANY - 1:
            left_at_last_result.append(sum(left))
        return KILOBYTE


class Process(ProcessFunction):
    def process_element(self, value, ctx):
        yield from many_results()


class KeyedProcess(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return many_results()


class OnTimer(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        return many_results()


class CoFlatMap(CoFlatMapFunction):
    def flat_map1(self, value):
        return many_results()

    def flat_map2(self, value):
        return []


class CoProcess(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield from many_results()

    def process_element2(self, value, ctx):
        return []


class KeyedCoProcess(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        return []

    def process_element2(self, value, ctx):
        yield from many_results()


class Broadcast(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        return []

    def process_broadcast_element(self, value, ctx):
        yield from many_results()


class Window(ProcessWindowFunction):
    def process(self, key, context, elements):
        return many_results()


class AllWindow(AllWindowFunction):
    def apply(self, window, inputs):
        return many_results()


class Join(ProcessJoinFunction):
    def process_element(self, left_value, right_value, ctx):
        yield from many_results()


def one(value):
    return 1


def joined(env):
    left_stream, right_stream = (stamped(env, [5]).key_by(one) for _ in range(2))
    return left_stream.interval_join(right_stream).between(Time.milliseconds(-1), Time.milliseconds(1)).process(Join())


SINGLE_CALLS = {
    "flat map": (lambda env: env.from_collection([1]).flat_map(FlatMap()), 0),
    "flat map that is a generator": (lambda env: env.from_collection([1]).flat_map(GeneratorFlatMap()), 0),
    "flat map before a map": (lambda env: env.from_collection([1]).flat_map(FlatMap()).map(lambda v: v), 0),
    "list whose records grow in a map": (
        lambda env: env.from_collection([1]).flat_map(lambda v: list(range(MANY))).map(Grow()),
        0,
    ),
    "process": (lambda env: env.from_collection([1]).process(Process()), 0),
    "keyed process": (lambda env: env.from_collection([1]).key_by(one).process(KeyedProcess()), 1),
    "timer": (lambda env: stamped(env).key_by(one).process(OnTimer()), 1),
    "co-flat-map": (lambda env: env.from_collection([1]).connect(env.from_collection([2])).flat_map(CoFlatMap()), 2),
    "co-process": (lambda env: env.from_collection([1]).connect(env.from_collection([2])).process(CoProcess()), 2),
    "keyed co-process": (
        lambda env: (
            env.from_collection([1]).key_by(one).connect(env.from_collection([2]).key_by(one)).process(KeyedCoProcess())
        ),
        2,
    ),
    "broadcast": (
        lambda env: (
            env.from_collection([1])
            .connect(env.from_collection([2]).broadcast(MapStateDescriptor("m")))
            .process(Broadcast())
        ),
        2,
    ),
    "window": (
        lambda env: (
            stamped(env).key_by(one).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Window())
        ),
        1,
    ),
    "session": (
        lambda env: (
            stamped(env).key_by(one).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).process(Window())
        ),
        1,
    ),
    "triggered window": (
        lambda env: (
            env.from_collection([1])
            .key_by(one)
            .window(GlobalWindows.create())
            .trigger(CountTrigger.of(1))
            .process(Window())
        ),
        1,
    ),
    "window over all": (
        lambda env: stamped(env).window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).apply(AllWindow()),
        1,
    ),
    "interval join": (joined, 2),
}


@pytest.mark.parametrize("name", SINGLE_CALLS)
def test_results_of_one_call_leave_while_the_function_still_yields(tmp_path, name):
    draw, emitting = SINGLE_CALLS[name]
    left_at_last_result.clear()
    _, total = run(tmp_path, lambda env: onward(draw(env)), emitting)
    assert total > MANY * 1_000
    assert left_at_last_result[0] > 0.7 * total


# --------------------------------------------------------------------------------- many calls between two input blobs


class Kilobyte(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [KILOBYTE]


class LateKilobyte(KeyedProcessFunction):
    """Emits a kilobyte for every key when its timer fires; `spread` puts every timer at a time of its own."""

    def __init__(self, spread):
        self.spread = spread

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(MANY + (value if self.spread else 0))

    def on_timer(self, timestamp, ctx):
        return [KILOBYTE]


class Answer(AsyncFunction):
    async def async_invoke(self, value):
        return [KILOBYTE] * MANY


def windowed(env, assigner):
    stream = stamped(env, range(MANY)).key_by(lambda v: v).window(assigner)
    return stream.process(Kilobyte())


MANY_CALLS = {
    "fan-out as lists": (
        lambda env: env.from_collection(range(20)).flat_map(lambda v: [(n, b"x" * 500) for n in range(8_000)]),
        0,
    ),
    "timers of one time": (
        lambda env: stamped(env, range(MANY)).key_by(lambda v: v).process(LateKilobyte(spread=False)),
        1,
    ),
    "timers of many times": (
        lambda env: stamped(env, range(MANY)).key_by(lambda v: v).process(LateKilobyte(spread=True)),
        1,
    ),
    "a window of many keys": (lambda env: windowed(env, TumblingEventTimeWindows.of(Time.milliseconds(MANY))), 1),
    "sessions of many keys": (lambda env: windowed(env, EventTimeSessionWindows.with_gap(Time.seconds(100))), 1),
    "windows of many keys with a trigger": (
        lambda env: (
            stamped(env, range(MANY))
            .key_by(lambda v: v)
            .window(TumblingEventTimeWindows.of(Time.milliseconds(MANY)))
            .evictor(CountEvictor.of(5))
            .process(Kilobyte())
        ),
        1,
    ),
    "answers to requests": (
        lambda env: AsyncDataStream.ordered_wait(env.from_collection([1]), Answer(), Time.seconds(20)),
        0,
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", MANY_CALLS)
def test_most_output_leaves_while_a_subtask_emits(tmp_path, name):
    draw, emitting = MANY_CALLS[name]
    streamed, total = run(tmp_path, lambda env: onward(draw(env)), emitting)
    assert total > 30 << 20
    assert streamed > 0.7 * total
