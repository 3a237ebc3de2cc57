"""Unions, diamonds, and deep and wide graphs."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


@recorded()
def deep_chain_of_exchanges(env):
    """Twelve functions, with an exchange between each two."""
    stream = env.from_collection([1, 2, 3])
    for _ in range(12):
        stream = stream.map(lambda value: value + 1).rebalance()
    return stream.map(lambda value: value * 100)


@recorded()
def deep_keyed_chain(env):
    """Sums of sums: keyed streams one behind the other."""
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4)])
    for _ in range(5):
        stream = stream.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return stream


@recorded(mode="BATCH")
def diamond_broadcast(env):
    """A stream whose own sum is broadcast to it."""

    SUMS = MapStateDescriptor("sums", Types.STRING(), Types.INT())

    class Share(BroadcastProcessFunction):
        def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
            yield value, ctx.get_broadcast_state(SUMS).get("all")

        def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
            ctx.get_broadcast_state(SUMS).put("all", value)

    stream = env.from_collection([1, 2, 3, 4])
    total = stream.key_by(lambda value: "all").reduce(lambda a, b: a + b)
    return stream.connect(total.broadcast(SUMS)).process(Share())


@recorded(ordered=False)
def diamond_connect(env):
    """Two ways from one stream that meet in a keyed co-function."""

    class Join(CoFlatMapFunction):
        def open(self, runtime_context: RuntimeContext):
            self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.STRING()))
            self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.STRING()))

        def flat_map1(self, value):
            self.left.update(value[1])
            if self.right.value() is not None:
                yield value[0], value[1], self.right.value()

        def flat_map2(self, value):
            self.right.update(value[1])
            if self.left.value() is not None:
                yield value[0], self.left.value(), value[1]

    stream = env.from_collection([1, 2, 3, 4])
    words = stream.map(lambda value: (value, "x" * value))
    signs = stream.filter(lambda value: value != 3).map(lambda value: (value, "even" if value % 2 == 0 else "odd"))
    return words.connect(signs).key_by(lambda value: value[0], lambda value: value[0]).flat_map(Join())


@recorded(ordered=False)
def diamond_of_diamonds(env):
    """A stream that is split and united four times over."""
    stream = env.from_collection([0, 1])
    for _ in range(4):
        stream = stream.map(lambda value: value * 2).union(stream.map(lambda value: value * 2 + 1))
    return stream.map(lambda value: value)


@recorded(ordered=False)
def diamond_union(env):
    """Two ways from one stream that meet in a union."""
    stream = env.from_collection([1, 2, 3]).map(lambda value: value * 10)
    return stream.map(lambda value: value + 1).union(stream.filter(lambda value: value > 10)).map(lambda value: -value)


@recorded(ordered=False)
def two_consumers(env):
    """Two consumers of one stream see all of its records each."""
    numbers = env.from_collection([1, 2, 3]).map(lambda x: x * 10)
    return numbers.map(lambda x: ("left", x)).union(numbers.map(lambda x: ("right", x)))


@recorded(ordered=False)
def union_of_many(env):
    """A union of twenty streams."""
    streams = [env.from_collection([(n, m) for m in range(3)]) for n in range(20)]
    return streams[0].union(*streams[1:]).map(lambda value: value)


@recorded(ordered=False)
def union_of_three(env):
    """A union holds the records of all its streams."""
    first = env.from_collection([1, 2])
    return first.union(env.from_collection([2, 3]), env.from_collection([4])).map(lambda x: x)


@recorded()
def union_of_types(env):
    """Streams of different types cannot be united."""
    return env.from_collection([1], Types.INT()).union(env.from_collection(["a"], Types.STRING()))


@recorded(ordered=False)
def union_of_unions(env):
    """Unions of unions hold every record as often as it comes in."""
    a, b, c = (env.from_collection([name + "1", name + "2"]) for name in "abc")
    return a.union(b).union(c, a).union(b.union(c)).map(lambda value: value)


@recorded()
def union_timers(env):
    """Timers behind a union fire when both inputs have ended."""

    class Timed(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT()))

        def process_element(self, value, ctx: KeyedProcessFunction.Context):
            self.sum.update((self.sum.value() or 0) + value[2])
            ctx.timer_service().register_event_time_timer(100 + len(value[0]))

        def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp, self.sum.value(), ctx.timer_service().current_watermark()

    first = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8)])
    second = timed(env, [("bb", 500, 16), ("a", 400, 32), ("ccc", 300, 64)])
    return first.union(second).key_by(lambda value: value[0]).process(Timed())


@recorded()
def union_typed_and_untyped(env):
    """Nor a typed and an untyped one."""
    return env.from_collection([1], Types.INT()).union(env.from_collection([2]))


@recorded(ordered=False)
def union_windows(env):
    """Windows behind a union hold records of both inputs."""

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, context.window().end, sorted(element[2] for element in elements)

    first = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    second = timed(env, [("b", 16, 16), ("a", 4, 32), ("c", 3, 64)])
    keyed = first.union(second).key_by(lambda value: value[0])
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded(ordered=False)
def union_with_itself(env):
    """A stream united with itself gives every record twice."""
    letters = env.from_collection(["a", "b"])
    return letters.union(letters).map(lambda x: x)


@recorded()
def union_with_nothing(env):
    """A union of one stream."""
    return env.from_collection([1, 2]).union().map(lambda x: x)


@recorded(ordered=False)
def wide_fan_out(env):
    """Sixteen readers of one stream."""
    stream = env.from_collection([1, 2, 3]).map(lambda value: value * 1000)
    branches = [stream.map(lambda value, n=n: value + n) for n in range(16)]
    return branches[0].union(*branches[1:])
