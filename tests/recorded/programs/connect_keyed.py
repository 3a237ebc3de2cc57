"""Two connected keyed streams: shared keyed state and timers."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from pyflink.datastream.window import TumblingEventTimeWindows
from tests.recorded.family import recorded


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


class Join(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.INT()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.STRING()))

    def flat_map1(self, value):
        self.left.add(value[1])
        return [(value[0], value[1], word) for word in self.right.get()]

    def flat_map2(self, value):
        self.right.add(value[1])
        return [(value[0], number, value[1]) for number in self.left.get()]


LEFT = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]
RIGHT = [("b", "x"), ("a", "y"), ("d", "z"), ("a", "w")]


class Waiting(KeyedCoProcessFunction):
    """Both sides wait in one state until the timer of their key fires at the end of the input."""

    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_map_state(
            MapStateDescriptor("waiting", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.waiting.put(value[1], ("first", value[2]))
        ctx.timer_service().register_event_time_timer(value[1])

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        self.waiting.put(value[1], ("second", value[2]))
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp, self.waiting.get(timestamp), len(list(self.waiting.keys()))


@recorded(ordered=False)
def connect_keyed_anew(env):
    """Keys of connected keyed streams may be chosen anew."""
    left = env.from_collection(LEFT).key_by(lambda value: value[1])
    right = env.from_collection(RIGHT).key_by(lambda value: value[1])
    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).flat_map(Join())


@recorded(ordered=False)
def connect_keyed_contexts(env):
    """What contexts of a keyed co-process function tell."""

    class Facts(KeyedCoProcessFunction):
        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(value[1] + 100)
            yield 1, value, ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            yield 2, value, ctx.get_current_key(), ctx.timestamp(), ctx.timer_service().current_watermark()

        def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
            yield (timestamp, ctx.get_current_key(), ctx.timestamp(), ctx.time_domain().name,
                   ctx.timer_service().current_watermark())

    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0], Types.STRING())
    return keyed.process(Facts())


@recorded(ordered=False)
def connect_keyed_function_without_keys(env):
    """A keyed co-process function on streams without keys, with no state and no timers."""

    class Both(KeyedCoProcessFunction):
        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            yield 1, value

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            yield 2, value

    return env.from_collection([1, 2]).connect(env.from_collection(["a"])).process(Both())


@recorded(ordered=False)
def connect_keyed_join(env):
    """A join of two keyed streams by two list states: each pair of a key once."""
    left, right = env.from_collection(LEFT), env.from_collection(RIGHT)
    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).flat_map(Join())


@recorded(ordered=False)
def connect_keyed_map_state(env):
    """A keyed co-map has a state per key that both sides see: every record counts once."""

    class Count(CoMapFunction):
        def open(self, runtime_context: RuntimeContext):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def counted(self, key):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            return key, count

        def map1(self, value):
            return self.counted(value[0])

        def map2(self, value):
            return self.counted(value)

    left = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("a", 4)])
    right = env.from_collection(["b", "a", "c", "b"])
    return left.connect(right).key_by(lambda value: value[0], lambda value: value).map(Count())


@recorded(ordered=False)
def connect_keyed_output_timestamps(env):
    """What a keyed co-process function emits has the time of its record or of its timer."""

    class Timed(KeyedCoProcessFunction):
        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            ctx.timer_service().register_event_time_timer(value[1] + 30)
            yield "first"

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            yield "second"

        def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
            yield "timer"

    class Times(ProcessFunction):
        def process_element(self, value, ctx: ProcessFunction.Context):
            yield value, ctx.timestamp()

    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0])
    return keyed.process(Timed()).process(Times())


@recorded()
def connect_keyed_side_output_of_timer(env):
    """A timer of connected streams emits to a side output."""

    ALERTS = OutputTag("alerts", Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))

    class Sum(KeyedCoProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.sum = runtime_context.get_reducing_state(
                ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
            )

        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            self.sum.add(value[2])
            ctx.timer_service().register_event_time_timer(1000 + len(value[0]))

        process_element2 = process_element1

        def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
            yield ALERTS, (ctx.get_current_key(), timestamp, self.sum.get())
            yield "main"

    left = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8)])
    right = timed(env, [("bb", 16, 16), ("a", 5, 32), ("ccc", 7, 64)])
    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0])
    return keyed.process(Sum()).get_side_output(ALERTS)


@recorded()
def connect_keyed_state_kinds(env):
    """All kinds of state, filled by both sides and read by a timer."""

    class Average(AggregateFunction):
        def create_accumulator(self):
            return 0, 0

        def add(self, value, accumulator):
            return accumulator[0] + value, accumulator[1] + 1

        def get_result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, a, b):
            return a[0] + b[0], a[1] + b[1]

    class Kinds(KeyedCoProcessFunction):
        def open(self, runtime_context: RuntimeContext):
            self.largest = runtime_context.get_state(ValueStateDescriptor("largest", Types.INT()))
            self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
            self.sides = runtime_context.get_map_state(MapStateDescriptor("sides", Types.STRING(), Types.INT()))
            self.sum = runtime_context.get_reducing_state(
                ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
            )
            self.average = runtime_context.get_aggregating_state(
                AggregatingStateDescriptor("average", Average(), Types.TUPLE([Types.INT(), Types.INT()]))
            )

        def keep(self, side, number):
            self.largest.update(max(self.largest.value() or 0, number))
            self.all.add(number)
            self.sides.put(side, (self.sides.get(side) or 0) + number)
            self.sum.add(number)
            self.average.add(number)

        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            self.keep("first", value[2])
            ctx.timer_service().register_event_time_timer(100 + len(value[0]))

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            self.keep("second", value[2])
            ctx.timer_service().register_event_time_timer(100 + len(value[0]))

        def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
            yield (ctx.get_current_key(), self.largest.value(), sorted(self.all.get()), sorted(self.sides.items()),
                   self.sum.get(), self.average.get())
            self.all.clear()
            self.sides.clear()

    left = timed(env, [("a", 3, 1), ("bb", 14, 2), ("a", 12, 4), ("bb", 21, 8)])
    right = timed(env, [("bb", 16, 16), ("a", 5, 32), ("ccc", 7, 64)])
    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).process(Kinds())


@recorded(ordered=False)
def connect_keyed_streams(env):
    """Two keyed streams connected are keyed already."""
    left, right = env.from_collection(LEFT), env.from_collection(RIGHT)
    return left.key_by(lambda value: value[0]).connect(right.key_by(lambda value: value[0])).flat_map(Join())


@recorded(ordered=False)
def connect_keyed_then_window(env):
    """What connected streams emit goes into windows by its time."""

    class Both(KeyedCoProcessFunction):
        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            yield value[0], 1, value[2]

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            yield value[0], 2, value[2]

    class Show(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, context.window().end, sorted(element[1:] for element in elements)

    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0])
    windows = keyed.process(Both()).key_by(lambda value: value[0])
    return windows.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(Show())


@recorded()
def connect_keyed_timers(env):
    """Timers of both sides fire in the order of their times, with the state that both sides filled."""
    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).process(Waiting())


@recorded(mode="BATCH")
def connect_keyed_timers_batch(env):
    """In a batch job both sides of a key are there before its timers fire, key by key."""

    class Waiting(KeyedCoProcessFunction):
        """Both sides wait in one state until the timer of their key fires at the end of the input."""

        def open(self, runtime_context: RuntimeContext):
            self.waiting = runtime_context.get_map_state(
                MapStateDescriptor("waiting", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
            )

        def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
            self.waiting.put(value[1], ("first", value[2]))
            ctx.timer_service().register_event_time_timer(value[1])

        def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
            self.waiting.put(value[1], ("second", value[2]))
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
            yield ctx.get_current_key(), timestamp, self.waiting.get(timestamp)

    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0], Types.STRING())
    return keyed.process(Waiting())


@recorded(parallelism=2, ordered=False)
def connect_keyed_timers_two_subtasks(env):
    """Timers of connected streams in two subtasks."""
    left = timed(env, [("a", 3, 1), ("b", 14, 2), ("a", 12, 4), ("b", 21, 8)])
    right = timed(env, [("b", 16, 16), ("a", 5, 32), ("c", 7, 64), ("b", 1, 128)])

    return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).process(Waiting())


@recorded(parallelism=2, ordered=False)
def connect_keyed_two_subtasks(env):
    """Records of a key meet in one subtask, whichever side they come from."""
    left, right = env.from_collection(LEFT).rebalance(), env.from_collection(RIGHT).rebalance()
    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0], Types.STRING())
    return keyed.flat_map(Join())
